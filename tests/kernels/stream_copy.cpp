// Stores past the caches: which launches take them, and that they write what others do.
#include "../../kernels/stream_copy.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <type_traits>

#include "../../core/random.h"
#include "../../core/tape.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/launch.cuh"
#include "../../kernels/layer_norm.h"
#include "../bits.h"

using namespace keel;

TEST_CASE("stream_copy: every byte, and no other, wherever it begins and ends") {
  std::string source(400, '\0');
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 7 + 1);
  for (std::size_t from : {0u, 1u, 63u})
    for (std::size_t to = 0; to < 70; ++to)
      for (std::size_t bytes = 0; bytes < 260; bytes += bytes < 4 ? 1 : 9) {
        std::string target(400, '?'), wanted = target;
        wanted.replace(to, bytes, source.substr(from, bytes));
        stream_copy(target.data() + to, source.data() + from, bytes);
        stream_fence();
        REQUIRE(target == wanted);
      }
}

TEST_CASE("a streaming group stores what the other stores") {
  for (int64_t n : {0, 1, 31, 512, 513, 5000})
    for (int64_t offset : {0, 1, 5}) {
      std::vector<double> a(static_cast<std::size_t>(n + offset + 1), -1), b = a;
      const auto square = [](auto i) { return static_cast<double>(i * i); };
      HostGroup().store(n, a.data() + offset, square);
      StreamingHostGroup().store(n, b.data() + offset, square);
      stream_fence();
      CHECK(a == b);
    }
}

#if !defined(KEEL_CPU_GROUP_HEADER) && !defined(KEEL_EMULATED_CUDA)  // they have other groups

namespace {

struct Results {
  Tensor out, d_x;
};

Results layer_norm_of(const Tensor& x, const Tensor& gain, const Tensor& bias,
                      const Tensor& d_out) {
  Tape tape;
  GradientSink gradients;
  const Var leaf = tape.leaf(x);
  const Var out = layer_norm_relu(leaf, tape.leaf(gain), tape.leaf(bias));
  tape.backward(out, d_out, gradients);
  return {out.value(), gradients[leaf]};
}

/// Says whether its launch streams.
template <bool Rereads>
struct AsksItsGroup {
  using Scalar = float;
  static constexpr bool kRereads = Rereads;
  std::atomic<int>* streaming;
  template <class Group>
  void operator()(Group, int64_t) const {
    *streaming += std::is_same_v<Group, StreamingHostGroup>;
  }
};

// Chunks of a launch that streamed, all or none.
template <bool Rereads = true>
int streaming_chunks(int64_t chunks, int64_t chunk_rows, int64_t cols) {
  std::atomic<int> streaming = 0;
  launch_chunks(Device::cpu(), chunks, chunk_rows, cols, AsksItsGroup<Rereads>{&streaming});
  return streaming;
}

}  // namespace

TEST_CASE("launches stream where rows are long, read whole first, and beyond the caches in all") {
  CHECK(streaming_chunks(2048, 1, 4096) == 2048);  // 32 MiB
  CHECK(streaming_chunks(128, 16, 4096) == 128);
  CHECK(streaming_chunks(2047, 1, 4096) == 0);
  CHECK(streaming_chunks(8192, 16, 3071) == 0);  // less than 12 KiB a row
  CHECK(streaming_chunks<false>(2048, 1, 4096) == 0);
}

TEST_CASE("layer_norm of a tensor beyond the caches: the bits of its rows by themselves") {
  constexpr std::int64_t kRows = 2100, kCols = 4099, kBlock = 300;  // rows begin anywhere in a line
  const Tensor x = normal({kRows, kCols}, {1, 0}), d_out = normal({kRows, kCols}, {2, 0});
  const Tensor gain = normal({kCols}, {3, 0}), bias = normal({kCols}, {4, 0});
  const Results all = layer_norm_of(x, gain, bias, d_out);
  for (std::int64_t row = 0; row < kRows; row += kBlock) {
    const auto rows = [&](const Tensor& t) { return t.slice(row, row + kBlock); };
    const Results some = layer_norm_of(rows(x), gain, bias, rows(d_out));
    CHECK(same_bits(rows(all.out), some.out));
    CHECK(same_bits(rows(all.d_x), some.d_x));
  }
}

#endif

#include "factor_gram.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include "factor_gram_block.h"
#include "factor_gram_check.h"
#include "factor_gram_panels.h"
#include "factor_gram_tensor.h"
#include "launch.cuh"

namespace keel {
namespace {

/// One piece of u or v [n, cols] into columns [first, first + cols) of panels of `depth` columns.
template <class T>
struct PackPanels {
  using Scalar = T;
  static constexpr int kWidest = GramTile<T>::kPanel;  // on a GPU
  int64_t n, cols, width, first, depth;
  const T* from;
  T* panels;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {  // a column of a panel
    const int64_t panel = row / cols, k = row % cols;
    const T* source = from + panel * width * cols + k;
    const int64_t here = n - panel * width;
    g.store(width, panels + (panel * depth + first + k) * width,
            [&](auto r) { return r < here ? source[r * cols] : T(0); });
  }
};

/// The same into panels whose chunks are laid out for tensor cores.
struct PackTensorPanels {
  using Scalar = float;
  static constexpr int kWidest = PackPanels<float>::kWidest;
  PackPanels<float> plain;

  template <class Group>
  KEEL_HD void operator()(Group g, int64_t row) const {
    const int64_t panel = row / plain.cols, k = row % plain.cols, column = plain.first + k;
    const float* source = plain.from + panel * plain.width * plain.cols + k;
    const int64_t here = plain.n - panel * plain.width;
    constexpr int kChunk = GramTile<float>::kChunk;
    const int within = static_cast<int>(column % kChunk);
    float* chunk = plain.panels + (panel * plain.depth + column - within) * plain.width;
    g.each(plain.width, [&](auto r) {
      chunk[TensorProduct::at(static_cast<int>(r), within)] =
          r < here ? TensorProduct::packed(source[r * plain.cols]) : 0;
    });
  }
};

struct Panels {
  Tensor data;
  int64_t depth;
};

/// Panels of `width` rows, their columns and their number rounded up: as one body wants them.
struct PanelFormat {
  int64_t width, whole_depth = 1, whole_count = 1;
  GramProduct product = GramProduct::fma;
};

int64_t round_up(int64_t size, int64_t whole) { return (size + whole - 1) / whole * whole; }

// Factors packed so far: matrices and terms share them.
class Packer {
 public:
  Packer(DType dtype, Device device) : dtype_(dtype), device_(device) {}

  template <class T>
  const Panels& pack(std::span<const Tensor> pieces, PanelFormat format) {
    Key key{format.width, {}};
    for (const Tensor& piece : pieces)
      key.second.emplace_back(piece.data<T>(), piece.size(0), piece.size(1));
    const auto [at, fresh] = packed_.try_emplace(std::move(key));
    if (fresh) at->second = packed<T>(pieces, format);
    return at->second;
  }

 private:
  using Key = std::pair<int64_t, std::vector<std::tuple<const void*, int64_t, int64_t>>>;

  template <class T>
  Panels packed(std::span<const Tensor> pieces, PanelFormat format) const {
    const int64_t n = pieces[0].size(0), width = format.width;
    const int64_t count = round_up((n + width - 1) / width, format.whole_count);
    int64_t cols = 0;
    for (const Tensor& piece : pieces) cols += piece.size(1);
    const int64_t depth = round_up(cols, format.whole_depth);
    const Panels panels{Tensor::empty({count * depth * width}, dtype_, device_), depth};
    T* to = panels.data.data<T>();
    int64_t first = 0;
    const auto add = [&](int64_t rows, int64_t piece_cols, const T* from) {
      const PackPanels<T> plain{rows, piece_cols, width, first, depth, from, to};
      if constexpr (std::is_same_v<T, float>)
        if (format.product == GramProduct::tensor)
          launch_rows(device_, count * piece_cols, width, PackTensorPanels{plain});
      if (format.product == GramProduct::fma)
        launch_rows(device_, count * piece_cols, width, plain);
      first += piece_cols;
    };
    for (const Tensor& piece : pieces) add(n, piece.size(1), piece.data<T>());
    add(0, depth - cols, to);  // no rows: zeros
    return panels;
  }

  DType dtype_;
  Device device_;
  std::map<Key, Panels> packed_;
};

template <class T>
std::vector<PackedTerm<T>> packed_terms(const GramMatrix& matrix, PanelFormat left,
                                        PanelFormat right, Packer& packer) {
  std::vector<PackedTerm<T>> terms;
  for (const GramTerm& term : matrix.terms) {
    const Panels& u = packer.pack<T>(term.left.u, left);
    PackedTerm<T> packed{};
    packed.u_depth = u.depth;
    packed.u_left = u.data.data<T>();
    packed.u_right = packer.pack<T>(term.right.u, right).data.template data<T>();
    packed.scale = static_cast<T>(term.scale);
    packed.offset = static_cast<T>(term.offset);
    if (term.left.v.defined()) {
      const Panels& v = packer.pack<T>({&term.left.v, 1}, left);
      packed.v_depth = v.depth;
      packed.v_left = v.data.data<T>();
      packed.v_right = packer.pack<T>({&term.right.v, 1}, right).data.template data<T>();
    }
    terms.push_back(packed);
  }
  return terms;
}

#ifdef KEEL_DEVICE_CODE

template <class T, class Product>
__global__ void __launch_bounds__(Product::kThreads, 2)
    gram_kernel(const PackedTerm<T>* terms, int steps, GramTarget<T> target, int64_t first) {
  using Block = GramBlock<T, Product>;
#ifdef KEEL_EMULATED_CUDA
  T* const shared = static_cast<T*>(emulated::Block::current().dynamic_shared());
#else
  extern __shared__ Wide<float> gram_shared[];
  T* const shared = reinterpret_cast<T*>(gram_shared);
#endif
  const auto place = Block::place(target, first + blockIdx.x);
  if (place.col * Block::kTileCols >= target.cols) return;  // behind the last row's diagonal
  const Block block(terms, steps, target, place);
  typename Block::Thread thread;
  block.begin(thread, static_cast<int>(threadIdx.x), shared);
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<Block::kStages - 2>();
    __syncthreads();
    block.step(thread, step, shared);
  }
  block.end(thread);
}

// A GPU that drives a display ends a kernel that keeps it for seconds. Multiply-adds of a launch,
// of which an RTX 3090 should do as many in double in a quarter of a second (556 GFLOP/s), in
// float32 in less; but blocks enough to fill a GPU several times.
#ifdef KEEL_EMULATED_CUDA
template <class T>
constexpr int64_t kMostProducts = int64_t{1} << 18;  // small matrices take several launches
constexpr int64_t kFewestBlocks = 1;
#else
template <class T>
constexpr int64_t kMostProducts = int64_t{1} << (sizeof(T) == 4 ? 41 : 36);
constexpr int64_t kFewestBlocks = 1024;
#endif

template <class Product, class T>
void run_on_gpu(Device device, const std::vector<PackedTerm<T>>& terms,
                const GramTarget<T>& target) {
  using Block = GramBlock<T, Product>;
  int64_t steps = 0;
  for (const PackedTerm<T>& term : terms) steps += (term.u_depth + term.v_depth) / Block::kChunk;
  check(steps < (int64_t{1} << 31), "factor_gram", "got {} steps, wanted less than 2^31", steps);
  const std::size_t bytes = terms.size() * sizeof(PackedTerm<T>);
  const Storage there(device, std::max<std::size_t>(1, bytes));
  copy_to_device(device, there.data(), terms.data(), bytes);
  const int64_t blocks = Block::blocks(target);
  const int64_t of_block =
      int64_t{Block::kTileRows} * Block::kTileCols * Block::kChunk * std::max<int64_t>(steps, 1);
  const int64_t at_once = std::max(kMostProducts<T> / of_block, kFewestBlocks);
  for (int64_t first = 0; first < blocks; first += at_once)
    launch_kernel_shared(
        device, "factor_gram", gram_kernel<T, Product>, std::min(at_once, blocks - first),
        Block::kThreads, Block::kShared * static_cast<int>(sizeof(T)),
        static_cast<const PackedTerm<T>*>(there.data()), static_cast<int>(steps), target, first);
}

#endif

template <class T>
void run(const GramMatrix& matrix, Packer& packer) {
  const GramTarget<T> target{matrix.into.data<T>() + matrix.offset,
                             matrix.rows,
                             matrix.cols,
                             matrix.row_stride,
                             matrix.col_stride,
                             static_cast<T>(matrix.factor),
                             matrix.lower};
#ifdef KEEL_DEVICE_CODE
  if (runs_device_code(matrix.into.device())) {
    const Device device = matrix.into.device();
    using Tile = GramTile<T>;
    const PanelFormat format{Tile::kPanel, Tile::kChunk, Tile::kRowPanels,
                             std::is_same_v<T, float> ? gram_product(device) : GramProduct::fma};
    const auto terms = packed_terms<T>(matrix, format, format, packer);
    if constexpr (std::is_same_v<T, float>)
      if (format.product == GramProduct::tensor)
        return run_on_gpu<TensorProduct>(device, terms, target);
    return run_on_gpu<FmaProduct<T>>(device, terms, target);
  }
#endif
  const auto terms =
      packed_terms<T>(matrix, {CpuGram<T>::panel_rows()}, {CpuGram<T>::panel_cols()}, packer);
  CpuGram<T>::run(terms, target);
}

}  // namespace

GramMatrix GramMatrix::over(const Tensor& into) {
  check<ShapeError>(into.rank() == 2, "factor_gram", "got into {}, wanted [n, m]", into.shape());
  return {.rows = into.size(0),
          .cols = into.size(1),
          .terms = {},
          .into = into,
          .offset = 0,
          .row_stride = into.size(1),
          .col_stride = 1};
}

#ifdef KEEL_WITH_CUDA

GramProduct gram_product(Device device) {
  if (!runs_device_code(device)) return GramProduct::fma;
  const auto ask = [&](cudaDeviceAttr what) {
    int value = 0;
    cuda_check(cudaDeviceGetAttribute(&value, what, device.index()), "cudaDeviceGetAttribute");
    return value;
  };
  return gram_product(ask(cudaDevAttrComputeCapabilityMajor),
                      ask(cudaDevAttrComputeCapabilityMinor));
}

#else

GramProduct gram_product(Device) { return GramProduct::fma; }

#endif

void factor_gram(std::span<const GramMatrix> matrices) {
  if (matrices.empty()) return;
  for (const GramMatrix& matrix : matrices) {
    check_gram_matrix(matrix);
    check_same_kind("factor_gram", "into", matrix.into, "the first into", matrices[0].into);
  }
  const Tensor& first = matrices[0].into;
  Packer packer(first.dtype(), first.device());
  dispatch(first.dtype(), [&](auto t) {
    for (const GramMatrix& matrix : matrices)
      if (matrix.rows > 0 && matrix.cols > 0) run<decltype(t)>(matrix, packer);
  });
}

}  // namespace keel

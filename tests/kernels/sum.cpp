// Sums down the rows: chunks of 64, and chunks of their sums, in one launch or in several.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/sum.h"
#include "../gpu.h"
#include "../message_of.h"

using namespace keel;
using std::int64_t;

namespace {

struct Size {
  int64_t members, rows, cols;
};

const std::vector<Size> kSizes = {{1, 0, 5},    {1, 1, 1},    {3, 1, 130},  {2, 63, 16},
                                  {1, 64, 129}, {1, 65, 300}, {3, 200, 33}, {1, 1000, 128},
                                  {2, 4096, 3}, {1, 4097, 5}, {2, 8192, 9}, {1, 8193, 3},
                                  {1, 9000, 1}};

/// Down one column: runs of 64 one after another, and runs of their sums likewise.
template <class T>
T column_sum(std::vector<T> values) {
  do {
    std::vector<T> sums;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, values.size()); i += 64) {
      T sum = 0;
      for (std::size_t k = i; k < std::min(values.size(), i + 64); ++k) sum += values[k];
      sums.push_back(sum);
    }
    values = sums;
  } while (values.size() > 1);
  return values[0];
}

template <class T>
std::vector<double> expected(const Size& size, const std::vector<T>& x) {
  std::vector<double> sums;
  for (int64_t m = 0; m < size.members; ++m)
    for (int64_t c = 0; c < size.cols; ++c) {
      std::vector<T> column;
      for (int64_t r = 0; r < size.rows; ++r)
        column.push_back(x[(m * size.rows + r) * size.cols + c]);
      sums.push_back(static_cast<T>(0.7) * column_sum(column));
    }
  return sums;
}

void check_sums(Device device) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Size& size : kSizes) {
      CAPTURE(dtype);
      CAPTURE(size.members);
      CAPTURE(size.rows);
      CAPTURE(size.cols);
      const Tensor x =
          normal({size.members, size.rows, size.cols}, {.seed = 4, .stream = 4}, 1, dtype);
      const auto wanted =
          dispatch(dtype, [&](auto t) { return expected(size, x.to_vector<decltype(t)>()); });
      const Tensor into = Tensor::empty({size.members, size.cols}, dtype, device);
      sum_rows(x.to(device), 0.7, false, into);
      CHECK(into.to_vector<double>() == wanted);
      const Tensor onto = Tensor::full(into.shape(), 2, dtype, device), both = onto.clone();
      sum_rows(x.to(device), 0.7, true, onto);
      accumulate(both, into);
      CHECK(onto.to_vector<double>() == both.to_vector<double>());
      const Tensor half = Tensor::empty(into.shape(), dtype, device), other = half.clone();
      const Tensor y = normal(x.shape(), {.seed = 4, .stream = 5}, 1, dtype);
      sum_rows(y.to(device), x.to(device), 0.7, half, other);
      CHECK(other.to_vector<double>() == wanted);
      sum_rows(y.to(device), 0.7, false, into);
      CHECK(half.to_vector<double>() == into.to_vector<double>());
    }
}

}  // namespace

TEST_CASE("sum_rows: chunks, and chunks of their sums, to the bit") { check_sums(Device::cpu()); }

TEST_CASE("sum_rows on the GPU, in one launch and in several: the same bits") {
  if (!test::gpu_here("sum_rows on the GPU")) return;
  check_sums(Device::cuda());
}

TEST_CASE("sum_rows: a NaN stays in its column") {
  const Tensor x = Tensor::full({100, 3}, 1);
  x.data<float>()[3 * 70 + 1] = std::nanf("");
  const Tensor into = Tensor::empty({3});
  sum_rows(x, 0.5, false, into);
  CHECK(into.data<float>()[0] == 50);
  CHECK(std::isnan(into.data<float>()[1]));
  CHECK(into.data<float>()[2] == 50);
}

TEST_CASE("sum_rows: misfits are refused with sizes") {
  const Tensor x = Tensor::zeros({4, 3}), y = Tensor::zeros({3, 4}), three = Tensor::zeros({3}),
               four = Tensor::zeros({4});
  CHECK(message_of([&] { sum_rows(x, 1, false, four); }) == "sum_rows: got x [4, 3] into [4]");
  CHECK(message_of([&] { sum_rows(x, y, 1, three, three); }) == "sum_rows: got x [3, 4] into [3]");
  CHECK(message_of([&] { sum_rows(x, y, 1, three, four); }) ==
        "sum_rows: got x [4, 3] and y [3, 4], wanted one shape");
}

// The four laws of groups, for the group that this build's CPU uses: HostGroup in test_kernels,
// ThreadGroup in test_threaded. And the launchers: every index once, whatever the shape.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "../../kernels/launch.cuh"

using namespace keel;

namespace {

// Runs body(group) on every member of one CPU group.
template <class Body>
void with_group(Body body) {
#ifdef KEEL_CPU_GROUP_HEADER
  CpuGroup::run(body);
#else
  body(CpuGroup());
#endif
}

const std::vector<int64_t> kLengths = {0, 1, 2, 31, 32, 33, 63, 64, 100, 1000};

struct MarkRows {
  using Scalar = float;
  int* count;
  template <class Group>
  void operator()(Group g, int64_t row) const {
    g.once([&] { count[row] += 1; });
  }
};

struct MarkTiles {
  using Scalar = float;
  int64_t cols;
  int* count;
  template <class Group>
  void operator()(Group g, int64_t row, int64_t first, int64_t n) const {
    g.each(n, [&](auto i) { count[row * cols + first + i] += 1; });
  }
};

struct MarkElements {
  using Scalar = float;
  int* count;
  template <class Group>
  void operator()(Group g, int64_t first, int64_t n) const {
    g.each(n, [&](auto i) { count[first + i] += 1; });
  }
};

/// out[i, j] = |x_i - y_j|^2: what a pairwise kernel looks like.
struct Distances {
  using Scalar = double;
  int64_t cols;
  const double *x, *y;
  double* out;
  template <class Group>
  void operator()(Group g, int64_t i, int64_t first, int64_t n) const {
    g.store(n, out + i * cols + first, [&](auto j) {
      const double difference = x[i] - y[first + j];
      return difference * difference;
    });
  }
};

bool all_once(const std::vector<int>& count) {
  for (int c : count)
    if (c != 1) return false;
  return true;
}

}  // namespace

TEST_CASE("law 1: an index stays with its member, so what each wrote may be read again") {
  for (int64_t n : kLengths) {
    std::vector<int> cell(n), seen(n);
    with_group([&](auto g) {
      g.each(n, [&](auto i) { cell[i] = static_cast<int>(3 * i); });
      g.store(n, cell.data(), [&](auto i) { return cell[i] + 1; });
      auto sums = g.zeros(n, seen.data());
      g.each(n, [&](auto i) { sums[i] += cell[i]; });
      g.flush(n, sums, seen.data());
      auto row = g.take(n, cell.data());
      g.each(n, [&](auto i) { row[i] += 1000; });
      g.flush(n, row, cell.data());
    });
    for (int64_t i = 0; i < n; ++i) {
      CHECK(seen[i] == 3 * i + 1);
      CHECK(cell[i] == 3 * i + 1001);
    }
  }
}

TEST_CASE("law 2: sums are combined in the order of a warp's butterfly, the same every time") {
  for (int64_t n : kLengths) {
    std::vector<float> x(n);
    for (int64_t i = 0; i < n; ++i) x[i] = 1.0f / static_cast<float>(1 + i * i % 97);
    // By the definition: 32 strided partials, folded at distance 16, 8, 4, 2, 1.
    float partial[32] = {};
    for (int64_t i = 0; i < n; ++i) partial[i % 32] += x[i];
    for (int distance = 16; distance > 0; distance /= 2)
      for (int p = 0; p < distance; ++p) partial[p] += partial[p + distance];
    for (int repeat = 0; repeat < 3; ++repeat) {
      float total = -1, both = -1;
      with_group([&](auto g) {
        const float sum = g.sum(n, [&](auto i) { return x[i]; });
        const auto two = g.sum(n, [&](auto i) { return Sums<float, 2>{{x[i], 2 * x[i]}}; });
        g.once([&] {
          total = sum;
          both = two[1];
        });
      });
      CHECK(total == partial[0]);
      CHECK(both == 2 * partial[0]);
    }
  }
}

TEST_CASE("sum and max evaluate f once for each index") {
  for (int64_t n : kLengths) {
    std::vector<int> calls(n);
    double largest = 0;
    with_group([&](auto g) {
      g.sum(n, [&](auto i) {
        calls[i] += 1;
        return 0.0;
      });
      const double m = g.max(n, [&](auto i) { return i == n / 2 ? 5.0 : -1.0; });
      g.once([&] { largest = m; });
    });
    CHECK(all_once(calls));
    CHECK(largest == (n > 0 ? 5.0 : -std::numeric_limits<double>::infinity()));
  }
}

TEST_CASE("every member sees the same sum, and once runs once") {
  int ran = 0;
  std::vector<double> seen(32, -1);
  with_group([&](auto g) {
    const double total = g.sum(64, [](auto i) { return static_cast<double>(i); });
    g.each(32, [&](auto i) { seen[i] = total; });
    g.once([&] { ++ran; });
  });
  CHECK(ran == 1);
  for (double s : seen) CHECK(s == 2016);
}

TEST_CASE("launchers visit every row, tile, element and pair once") {
  const Device cpu;
  for (int64_t rows : {0, 1, 5, 300})
    for (int64_t cols : {0, 1, 127, 128, 129, 1000}) {
      CAPTURE(rows);
      CAPTURE(cols);
      std::vector<int> row_count(rows), cells(rows * cols), elements(rows * cols);
      launch_rows(cpu, rows, cols, MarkRows{row_count.data()});
      launch_columns(cpu, rows, cols, MarkTiles{cols, cells.data()});
      launch_elements(cpu, rows * cols, MarkElements{elements.data()});
      CHECK((cols == 0 || all_once(row_count)));
      CHECK(all_once(cells));
      CHECK(all_once(elements));
    }
}

TEST_CASE("a pairwise program fills its matrix") {
  const int64_t rows = 7, cols = 519;
  std::vector<double> x(rows), y(cols), out(rows * cols, -1);
  std::iota(x.begin(), x.end(), 0);
  std::iota(y.begin(), y.end(), 0);
  launch_pairs(Device(), rows, cols, Distances{cols, x.data(), y.data(), out.data()});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      REQUIRE(out[i * cols + j] == static_cast<double>((i - j) * (i - j)));
}

#include "infinite_kernel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "../kernels/gemm.h"
#include "kernel_maps.h"
#include "kernel_rounding.h"

namespace keel {
namespace {

using std::int64_t;

// A tile's inner products, work space and result stay in a core's second-level cache, and it is
// small enough for its launch to stay on the thread that runs it. A GPU wants much at once, but of
// sums of Gaussians no more than stays short of what a card that drives a display lets a launch
// take.
constexpr int64_t kTileRows = 64, kTileCols = 256, kSquare = 128, kGpuTile = 2048, kSumsTile = 512;

/// body(task, scratch) for every task, each thread with a scratch of its own; on a GPU in order.
/// The calling thread tells how many tasks were taken: after its own, and at the end.
template <class MakeScratch, class Body, class Tell>
void share_tasks(Device device, int64_t tasks, MakeScratch make_scratch, Body body, Tell tell) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int64_t> next{0};
  std::exception_ptr problem;
  std::mutex mutex;
  const auto work = [&] {
    try {
      const auto scratch = make_scratch();
      for (int64_t task = next++; task < tasks; task = next++) {
        body(task, scratch);
        if (std::this_thread::get_id() == caller) tell(std::min(next.load(), tasks));
      }
    } catch (...) {  // an exception must not leave a parallel region
      next = tasks;
      const std::lock_guard lock(mutex);
      if (!problem) problem = std::current_exception();
    }
  };
  if (tasks == 0) return;
  if (tasks == 1 || device.is_cuda()) {
    work();
  } else {
#pragma omp parallel
    work();
  }
  if (problem) std::rethrow_exception(problem);
  tell(tasks);
}

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Of x.x' / n0, relatively.
double inner_rounding(int64_t width) {
  return kEpsilon * (8 + 2 * std::sqrt(static_cast<double>(width)));
}

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

/// Row of the t-th block of a lower triangle of blocks, row by row.
int64_t triangle_row(int64_t t) {
  auto row = static_cast<int64_t>((std::sqrt(8 * static_cast<double>(t) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > t) --row;
  while ((row + 1) * (row + 2) / 2 <= t) ++row;
  return row;
}

}  // namespace

class InfiniteKernel::Inputs : public Kernel::Points {
 public:
  Inputs(std::shared_ptr<const KernelMaps> maps, Tensor x, Tensor table)
      : maps(std::move(maps)), x(std::move(x)), table(std::move(table)) {}
  int64_t rows() const override { return x.size(0); }

  const std::shared_ptr<const KernelMaps> maps;
  const Tensor x, table;
};

struct InfiniteKernel::Block {
  int64_t row, rows, col, cols;
};

/// What a thread computes a tile in.
struct InfiniteKernel::Scratch {
  Tensor inner, work, out;
  static Tensor part(const Tensor& of, const Block& b) {
    return of.slice(0, b.rows * b.cols).reshape({b.rows, b.cols});
  }
};

InfiniteKernel::InfiniteKernel(Spec spec, int64_t input_width, InfiniteKernelOptions options,
                               KernelOutput output)
    : spec_(std::move(spec)),
      input_width_(input_width),
      options_(std::move(options)),
      output_(output),
      host_maps_(std::make_shared<KernelMaps>(kernel_maps(spec_, input_width, options_))) {
  maps_ =
      device().is_cpu() ? host_maps_ : std::make_shared<KernelMaps>(host_maps_->host(), device());
}

InfiniteKernel::InfiniteKernel(std::string_view spec, int64_t input_width,
                               InfiniteKernelOptions options, KernelOutput output)
    : InfiniteKernel(parse_spec(spec), input_width, std::move(options), output) {}

std::shared_ptr<const Kernel::Points> InfiniteKernel::points(const Tensor& x) const {
  check<ShapeError>(x.rank() == 2 && x.size(1) == input_width_ && x.dtype() == DType::f64,
                    "infinite_kernel", "got x {} {}, wanted [n, {}] float64", name_of(x.dtype()),
                    x.shape(), input_width_);
  check<DeviceError>(x.device() == device(), "infinite_kernel", "got x on {}, wanted {}",
                     x.device(), device());
  const Tensor r = mean_squares(x);
  const std::vector<double> host = r.to_vector<double>();
  for (std::size_t i = 0; i < host.size(); ++i)
    check(host[i] <= kLongest, "infinite_kernel",
          "got |x|^2 / n0 = {} in row {}, wanted a finite one up to {:.3g}", host[i], i, kLongest);
  return std::make_shared<Inputs>(maps_, x.clone(), kernel_table(*maps_, r));
}

const InfiniteKernel::Inputs& InfiniteKernel::inputs(const char* tag, const Points& points) const {
  const auto* mine = dynamic_cast<const Inputs*>(&points);
  check(mine != nullptr && mine->maps == maps_, tag, "got points of another kernel");
  return *mine;
}

int64_t InfiniteKernel::gpu_tile() const { return maps_->has_sums() ? kSumsTile : kGpuTile; }

InfiniteKernel::Scratch InfiniteKernel::scratch(int64_t rows, int64_t cols) const {
  const auto take = [&](int64_t tiles) {
    return Tensor::empty({tiles * rows * cols}, DType::f64, device());
  };
  return {take(1), take(maps_->work_tiles()), {}};
}

void InfiniteKernel::tile(const Inputs& a, const Inputs& b, const Block& block, bool lower,
                          const Scratch& scratch, const Tensor& into, int64_t into_row,
                          int64_t into_col) const {
  KernelTile tile;
  tile.table_a = a.table;
  tile.table_b = b.table;
  tile.row = block.row;
  tile.col = block.col;
  tile.inner = Scratch::part(scratch.inner, block);
  tile.work = scratch.work;
  tile.rounding = inner_rounding(input_width_);
  tile.lower = lower;
  tile.theta = output_ == KernelOutput::ntk;
  gemm(Transpose::no, Transpose::yes, 1 / static_cast<double>(input_width_),
       a.x.slice(block.row, block.row + block.rows), b.x.slice(block.col, block.col + block.cols),
       0, tile.inner);
  kernel_pairs(*maps_, tile, into, into_row, into_col);
}

void InfiniteKernel::fill(const Inputs& a, const Inputs& b, bool lower, const Tensor& into,
                          const WorkProgress& progress) const {
  const int64_t rows = device().is_cpu() ? kTileRows : gpu_tile();
  const int64_t cols = device().is_cpu() ? kTileCols : gpu_tile();
  const int64_t n = a.rows(), m = b.rows(), across = blocks_of(m, cols);
  const int64_t tasks = blocks_of(n, rows) * across;
  share_tasks(
      device(), tasks, [&] { return scratch(rows, cols); },
      [&](int64_t task, const Scratch& scratch) {
        const int64_t i = task / across * rows, j = task % across * cols;
        const Block block{i, std::min(rows, n - i), j, std::min(cols, m - j)};
        if (lower && j >= i + block.rows) return;
        tile(a, b, block, lower, scratch, into, i, j);
      },
      [&](int64_t taken) {
        if (!progress || device().is_cuda()) return;
        const double share = static_cast<double>(taken) / static_cast<double>(tasks);
        progress(lower ? share * share : share);  // later rows are longer
      });
}

void InfiniteKernel::gram(const Points& a, const Points& b, const Tensor& into,
                          const WorkProgress& progress) const {
  check<ShapeError>(into.rank() == 2 && into.size(0) == a.rows() && into.size(1) == b.rows(),
                    "gram", "got into {}, wanted [{}, {}]", into.shape(), a.rows(), b.rows());
  check<DeviceError>(into.device() == device(), "gram", "got into on {}, wanted {}", into.device(),
                     device());
  fill(inputs("gram", a), inputs("gram", b), false, into, progress);
}

void InfiniteKernel::gram_lower(const Points& a, const Tensor& into,
                                const WorkProgress& progress) const {
  check<ShapeError>(into.rank() == 2 && into.size(0) == a.rows() && into.size(1) == a.rows(),
                    "gram_lower", "got into {}, wanted [{}, {}]", into.shape(), a.rows(), a.rows());
  check<DeviceError>(into.device() == device(), "gram_lower", "got into on {}, wanted {}",
                     into.device(), device());
  const Inputs& mine = inputs("gram_lower", a);
  fill(mine, mine, true, into, progress);
}

double InfiniteKernel::rounding(const Points& of) const {
  return Kernel::rounding(of) + kernel_rounding(host_maps_->host(), inputs("rounding", of).table,
                                                inner_rounding(input_width_));
}

Tensor InfiniteKernel::diag(const Points& a) const {
  const Tensor& table = inputs("diag", a).table;
  return table[table.size(0) - (output_ == KernelOutput::ntk ? 1 : 2)].clone();
}

// Runs of tiles add to sums of their own, which are then added in order.
Tensor InfiniteKernel::product(const Points& a, const Tensor& v) const {
  const Inputs& mine = inputs("product", a);
  const int64_t n = a.rows();
  check<ShapeError>(v.rank() == 2 && v.size(0) == n && v.dtype() == DType::f64, "product",
                    "got v {} {}, wanted [{}, k] float64", name_of(v.dtype()), v.shape(), n);
  check<DeviceError>(v.device() == device(), "product", "got v on {}, wanted {}", v.device(),
                     device());
  if (v.elements() == 0) return Tensor::empty(v.shape(), DType::f64, device());
  constexpr int64_t kMostParts = 64, kMostElements = int64_t{1} << 25;
  const int64_t size = device().is_cpu() ? kSquare : gpu_tile(), blocks = blocks_of(n, size);
  const int64_t tiles = blocks * (blocks + 1) / 2;
  const int64_t room = kMostElements / v.elements();
  const int64_t parts =
      device().is_cpu() ? std::clamp<int64_t>(room, 1, std::min(tiles, kMostParts)) : 1;
  const Tensor sums = Tensor::zeros({parts, n, v.size(1)}, DType::f64, device());

  const auto make_scratch = [&] {
    Scratch made = scratch(size, size);
    made.out = Tensor::empty({size * size}, DType::f64, device());
    return made;
  };
  const auto add_part = [&](int64_t part, const Scratch& scratch) {
    const auto rows_of = [&](const Tensor& x, int64_t begin, int64_t rows) {
      return x.slice(begin, begin + rows);
    };
    const Tensor sum = sums[part];
    for (int64_t t = tiles * part / parts; t < tiles * (part + 1) / parts; ++t) {
      const int64_t row = triangle_row(t), i = row * size, j = (t - row * (row + 1) / 2) * size;
      const Block block{i, std::min(size, n - i), j, std::min(size, n - j)};
      const Tensor theta = Scratch::part(scratch.out, block);
      tile(mine, mine, block, false, scratch, theta, 0, 0);
      gemm(Transpose::no, Transpose::no, 1, theta, rows_of(v, j, block.cols), 1,
           rows_of(sum, i, block.rows));
      if (i != j)
        gemm(Transpose::yes, Transpose::no, 1, theta, rows_of(v, i, block.rows), 1,
             rows_of(sum, j, block.cols));
    }
  };
  share_tasks(device(), parts, make_scratch, add_part, [](int64_t) {});
  for (int64_t part = 1; part < parts; ++part) accumulate(sums[0], sums[part]);
  return parts == 1 ? sums[0] : sums[0].clone();
}

double InfiniteKernel::diagonal(double r) const { return entry(r, r, r); }

double InfiniteKernel::entry(double r, double r2, double c) const {
  check(r >= 0 && r <= kLongest && r2 >= 0 && r2 <= kLongest, "entry",
        "got |x|^2 / n0 = {} and {}, wanted from 0 to {:.3g}", r, r2, kLongest);
  check(std::abs(c) <= std::sqrt(r) * std::sqrt(r2) * (1 + 1e-12), "entry",
        "got x.x' / n0 = {}, wanted at most {} in size, as |x| |x'| / n0 is", c,
        std::sqrt(r) * std::sqrt(r2));
  const Tensor table = kernel_table(*host_maps_, Tensor::from(std::vector<double>{r, r2}, {2}));
  const Tensor value = Tensor::empty({1, 1}, DType::f64);
  KernelTile tile;
  tile.table_a = tile.table_b = table;
  tile.col = 1;
  tile.inner = Tensor::full({1, 1}, c, DType::f64);
  tile.work = Tensor::empty({host_maps_->work_tiles()}, DType::f64);
  tile.theta = output_ == KernelOutput::ntk;
  kernel_pairs(*host_maps_, tile, value, 0, 0);
  return value.item();
}

Supremum InfiniteKernel::supremum(double farthest) const {
  const double r = farthest * farthest / static_cast<double>(input_width_);
  return supremum_of(host_maps_->host(), output_ == KernelOutput::ntk, r);
}

}  // namespace keel

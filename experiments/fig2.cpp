// Figure 2: the kernels of the four nets over a square of one-dimensional inputs, at initialisation
// and in the limit of infinite width.
#include <algorithm>
#include <cmath>

#include "../ntk/infinite_kernel.h"
#include "../ntk/jacobian.h"
#include "npy.h"
#include "progress_bar.h"
#include "reproduce.h"
#include "statistics.h"
#include "text_table.h"
#include "toy_figure.h"

namespace keel {
namespace {

constexpr std::int64_t kGrid = 201;  // odd, so that 0 is one of the points
constexpr std::int64_t kFarPoints = 21;

using Values = std::vector<double>;

// One parameterisation of one net.
struct KernelPanel {
  ToyNet net;
  Parameterisation parameterisation;
  Tensor empirical, infinite;  // [grid, grid] float64: the mean over seeds, and the limit
  Estimate exponent;           // of the mean of Theta(x, x) and Theta(-x, -x), one a seed
  double infinite_exponent = 0;

  const char* parameterisation_name() const {
    return parameterisation == Parameterisation::ntk ? "ntk" : "standard";
  }
};

// x, then -x.
Values both_sides(Values x) {
  const std::size_t count = x.size();
  for (std::size_t i = 0; i < count; ++i) x.push_back(-x[i]);
  return x;
}

// Slope of log Theta(x, x) over log |x|, from the diagonal at both_sides(x).
double growth(const Values& x, const double* diagonal) {
  Values log_x, log_theta;
  for (std::size_t i = 0; i < x.size(); ++i) {
    log_x.push_back(std::log(x[i]));
    log_theta.push_back(std::log((diagonal[i] + diagonal[i + x.size()]) / 2));
  }
  return least_squares_slope(log_x, log_theta);
}

KernelPanel make_panel(const ToyNet& toy, Parameterisation parameterisation, std::int64_t seeds,
                       const Context& context) {
  const Tensor grid = rows_of(evenly_spaced(-kCurveEnd, kCurveEnd, kGrid), 1).to(context.device);
  const Values far = log_spaced(kFarBegin, kFarEnd, kFarPoints);
  const Tensor ends = rows_of(both_sides(far), 1).to(context.device);
  KernelPanel panel{toy, parameterisation, {}, {}, {}, 0};

  NetOptions options;
  options.parameterisation = parameterisation;
  options.members = seeds;
  options.seed = context.options.seed;
  options.dtype = DType::f64;
  options.device = context.device;
  const Net net(toy.spec, 1, options);
  const Jacobian jacobian(net, grid);
  panel.empirical = jacobian.gram(jacobian, OutputMode::trace, true).to(Device::cpu());
  const Values diagonals = Jacobian(net, ends).diag().to_vector<double>();
  Values exponents;
  for (std::int64_t s = 0; s < seeds; ++s)
    exponents.push_back(
        growth(far, diagonals.data() + static_cast<std::size_t>(s) * 2 * far.size()));
  panel.exponent = mean_with_interval(exponents);

  InfiniteKernelOptions limit;
  limit.parameterisation = parameterisation;
  limit.device = context.device;
  const InfiniteKernel kernel(toy.spec, 1, limit);
  const Tensor infinite = Tensor::empty({kGrid, kGrid}, DType::f64, context.device);
  const auto points = kernel.points(grid);
  kernel.gram(*points, *points, infinite);
  panel.infinite = infinite.to(Device::cpu());
  panel.infinite_exponent =
      growth(far, kernel.diag(*kernel.points(ends)).to_vector<double>().data());
  return panel;
}

// Correlation of Theta(x, x') with the sign of x x': 1 for a perfect chessboard.
double chessboard(const Tensor& kernel) {
  const Values theta = kernel.to_vector<double>();
  Values sign;
  for (std::int64_t i = 0; i < kGrid; ++i)
    for (std::int64_t j = 0; j < kGrid; ++j) {
      const std::int64_t a = i - kGrid / 2, b = j - kGrid / 2;
      sign.push_back(a * b > 0 ? 1 : a * b < 0 ? -1 : 0);
    }
  const double n = static_cast<double>(theta.size());
  double mean = 0, cross = 0, squares = 0, signs = 0;
  for (double value : theta) mean += value / n;
  for (std::size_t i = 0; i < theta.size(); ++i) {
    cross += (theta[i] - mean) * sign[i];
    squares += (theta[i] - mean) * (theta[i] - mean);
    signs += sign[i] * sign[i];
  }
  return cross / std::sqrt(squares * signs);
}

Json kernel_numbers(const Tensor& kernel) {
  const Values values = kernel.to_vector<double>();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"smallest", *least},
          {"largest", *most},
          {"corner_same_sign", values.back()},
          {"corner_opposite_sign", values[kGrid - 1]},
          {"chessboard_correlation", chessboard(kernel)}};
}

Json panel_json(const KernelPanel& panel) {
  Json empirical = kernel_numbers(panel.empirical), infinite = kernel_numbers(panel.infinite);
  empirical["growth_exponent"] = panel.exponent.mean;
  empirical["growth_exponent_ci"] = panel.exponent.half_width;
  infinite["growth_exponent"] = panel.infinite_exponent;
  return {{"net", panel.net.net},
          {"spec", panel.net.spec},
          {"parameterisation", panel.parameterisation_name()},
          {"empirical", empirical},
          {"infinite", infinite},
          {"relative_distance", relative_distance(panel.empirical.to_vector<double>(),
                                                  panel.infinite.to_vector<double>())}};
}

std::string panel_table(const Json& panels) {
  std::vector<std::vector<std::string>> rows = {
      {"parameterisation", "net", "Theta(25,25)", "Theta(25,-25)", "infinite (25,25)",
       "infinite (25,-25)", "distance", "growth", "chessboard"}};
  const auto number = [](const Json& json) { return json.get<double>(); };
  for (const Json& panel : panels) {
    const Json &empirical = panel["empirical"], &infinite = panel["infinite"];
    rows.push_back({panel["parameterisation"], panel["net"],
                    brief(number(empirical["corner_same_sign"]), 4),
                    brief(number(empirical["corner_opposite_sign"]), 4),
                    brief(number(infinite["corner_same_sign"]), 4),
                    brief(number(infinite["corner_opposite_sign"]), 4),
                    brief(number(panel["relative_distance"]), 2),
                    fmt::format("{:.3f}", number(empirical["growth_exponent"])),
                    fmt::format("{:.2f}", number(empirical["chessboard_correlation"]))});
  }
  return text_table(rows, 2);
}

}  // namespace

Reproduced reproduce_fig2(const Context& context, const ReproduceOptions& chosen,
                          const OutputFolder& folder) {
  const std::int64_t seeds = chosen.seeds.value_or(5);
  const std::vector<std::string> nets = {"standard", "ln_first", "ln_second", "ln_every"};
  Json panels = Json::array();
  ProgressBar bar("fig2", static_cast<std::int64_t>(2 * nets.size()), context.shows_progress());
  std::int64_t done = 0;
  for (const auto parameterisation : {Parameterisation::standard, Parameterisation::ntk})
    for (const std::string& net : nets) {
      const KernelPanel panel = make_panel(toy_net(net, "relu"), parameterisation, seeds, context);
      const std::string name = fmt::format("{}_{}", net, panel.parameterisation_name());
      write_npy(folder.path(name + "_empirical.npy").string(), panel.empirical);
      write_npy(folder.path(name + "_infinite.npy").string(), panel.infinite);
      panels.push_back(panel_json(panel));
      bar.update(++done);
    }
  Reproduced result;
  result.numbers = {
      {"figure", "fig2"},
      {"grid_points", kGrid},
      {"grid_range", {-kCurveEnd, kCurveEnd}},
      {"initialisation", "weights N(0, 2 / fan_in), biases N(0, 0.01)"},
      {"layernorm", "before the activation, trainable gain and bias, eps 1e-5"},
      {"growth_exponent", "slope of log Theta(x, x) over log |x|, |x| from 100 to 10000"},
      {"seeds", seeds},
      {"first_seed", context.options.seed},
      {"panels", panels}};
  result.table = fmt::format(
      "fig2: Theta at initialisation on [{}, {}]^2, mean of {} {}, beside the limit of infinite "
      "width\n{}",
      -kCurveEnd, kCurveEnd, seeds, seeds == 1 ? "seed" : "seeds", panel_table(panels));
  return result;
}

}  // namespace keel

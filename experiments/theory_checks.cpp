#include "theory_checks.h"

#include <algorithm>
#include <cmath>

#include "../core/max_or_nan.h"
#include "../core/random.h"
#include "../kernels/cholesky.h"
#include "../kernels/gemm.h"
#include "../kernels/layer_norm.h"
#include "../kernels/solve_lower.h"
#include "../nn/streams.h"
#include "../ntk/jacobian.h"
#include "statistics.h"
#include "text_table.h"

namespace keel {
namespace {

// Diagonals of two hidden layers, r = |x|^2 / n0, b = sigma_b^2: see docs/kernels.md.
double diagonal_formula(const std::string& net, double r, double b) {
  if (net == "standard") return 3 * r + 6 * b;
  if (net == "ln_first") return 3 + 3 * b;
  if (net == "ln_second") return 1 + b + (2 * r + 3 * b) / (r + 2 * b);
  return 1 + b + (2 + b) / (1 + b);
}

const char* formula_text(const std::string& net) {
  if (net == "standard") return "3 r + 6 b";
  if (net == "ln_first") return "3 + 3 b";
  if (net == "ln_second") return "1 + b + (2 r + 3 b)/(r + 2 b)";
  return "1 + b + (2 + b)/(1 + b)";
}

NetOptions finite_options(const Context& context, std::int64_t members) {
  NetOptions options;
  options.parameterisation = Parameterisation::ntk;
  options.members = members;
  options.seed = context.options.seed;
  options.dtype = DType::f64;
  options.device = context.device;
  options.first_sigma_w2 = 1;
  options.sigma_b2 = kTheorySigmaB2;
  return options;
}

}  // namespace

std::vector<Check> check_diagonals() {
  std::vector<Check> checks;
  for (const TheoryNet& net : theory_nets()) {
    const auto kernel = theory_kernel(net, 1, Device::cpu());
    double worst = 0;
    for (double r : {0.0, 1e-6, 0.1, 1.0, 10.0, 1e3, 1e6, 1e12}) {
      const double wanted = diagonal_formula(net.name, r, kTheorySigmaB2);
      worst = max_or_nan(worst, std::abs(kernel->diagonal(r) - wanted) / wanted);
    }
    Check check;
    check.statement =
        fmt::format("{}: Theta(x,x) = {}, r = |x|^2/n0", net.label, formula_text(net.name));
    check.measured = fmt::format("relative error at most {:.1e}", worst);
    check.holds = worst < 1e-12;
    check.numbers = {{"net", net.name}, {"largest_relative_error", worst}};
    checks.push_back(std::move(check));
  }
  return checks;
}

std::vector<Check> check_growth() {
  std::vector<Check> checks;
  const std::vector<double> x = log_spaced(1e2, 1e6, 41);
  for (const TheoryNet& net : theory_nets()) {
    const auto kernel = theory_kernel(net, 1, Device::cpu());
    std::vector<double> log_x, log_theta;
    for (double at : x) {
      log_x.push_back(std::log(at));
      log_theta.push_back(std::log(kernel->diagonal(at * at)));
    }
    const double slope = least_squares_slope(log_x, log_theta);
    const Supremum supremum = kernel->supremum();
    Check check;
    check.statement = fmt::format("{}: Theta(x,x) {}", net.label,
                                  net.bounded ? "is bounded" : "grows as |x|^2, without bound");
    check.measured = fmt::format("growth exponent {:.4f}", slope);
    if (supremum.bounded)
      check.measured += fmt::format(", supremum {}", brief_outward(supremum.value, 6, 1));
    check.holds = supremum.bounded == net.bounded && std::abs(slope - (net.bounded ? 0 : 2)) < 1e-3;
    check.numbers = {{"net", net.name},
                     {"growth_exponent", slope},
                     {"bounded", supremum.bounded},
                     {"supremum", supremum.bounded ? supremum.value : INFINITY}};
    checks.push_back(std::move(check));
  }
  return checks;
}

namespace {
const std::vector<std::int64_t> kWidths = {64, 128, 256, 512, 1024};

std::vector<TheoryNet> widened_nets() {
  std::vector<TheoryNet> nets = theory_nets();
  nets.push_back({"ln_after", "LN after the first ReLU", true});
  return nets;
}
}  // namespace

std::int64_t convergence_nets(std::int64_t seeds) {
  return static_cast<std::int64_t>(widened_nets().size() * kWidths.size()) * seeds;
}

std::vector<Check> check_convergence(std::int64_t seeds, const Context& context,
                                     const std::function<void()>& progress) {
  constexpr std::int64_t kInputs = 3, kRows = 6;
  const Tensor x =
      normal({kRows, kInputs}, {context.options.seed, streams::inputs()}, 1, DType::f64)
          .to(context.device);
  std::vector<Check> checks;
  for (const TheoryNet& net : widened_nets()) {
    const auto kernel = theory_kernel(net, kInputs, context.device);
    const Tensor limit = Tensor::empty({kRows, kRows}, DType::f64, context.device);
    const auto points = kernel->points(x);
    kernel->gram(*points, *points, limit);
    std::vector<double> log_width, log_distance, distances;
    std::vector<std::vector<double>> log_by_seed(static_cast<std::size_t>(seeds));
    for (std::int64_t width : kWidths) {
      double squares = 0;
      for (std::int64_t s = 0; s < seeds; ++s, progress()) {
        NetOptions options = finite_options(context, 1);
        options.seed += static_cast<std::uint64_t>(s);
        const Jacobian jacobian(Net(net.spec(width), kInputs, options), x);
        const double distance =
            relative_distance(jacobian.gram().to_vector<double>(), limit.to_vector<double>());
        log_by_seed[static_cast<std::size_t>(s)].push_back(std::log(distance));
        squares += distance * distance / static_cast<double>(seeds);
      }
      distances.push_back(std::sqrt(squares));
      log_width.push_back(std::log(static_cast<double>(width)));
      log_distance.push_back(std::log(distances.back()));
    }
    const double rate = least_squares_slope(log_width, log_distance);
    std::vector<double> rates;
    for (const auto& one : log_by_seed) rates.push_back(least_squares_slope(log_width, one));
    const double interval = seeds > 1 ? mean_with_interval(rates).half_width
                                      : slope_half_width(log_width, log_distance);
    Check check;
    check.statement =
        fmt::format("{}: Theta of nets of width w tends to its limit as w^-1/2", net.label);
    check.measured = fmt::format("rate {:.2f} +- {:.2f}; distance {} at w = {}, {} at w = {}", rate,
                                 interval, brief(distances.front(), 2), kWidths.front(),
                                 brief(distances.back(), 2), kWidths.back());
    // Widths are finite, so the rate need not be the limit's; seeds are few, so it has an error.
    check.holds = rate < -0.25 && std::abs(rate + 0.5) < 0.15 + interval;
    check.numbers = {{"net", net.name},   {"spec", net.spec(kWidths.back())},
                     {"rate", rate},      {"rate_interval", interval},
                     {"widths", kWidths}, {"relative_distances", distances}};
    checks.push_back(std::move(check));
  }
  return checks;
}

// Theorem 3.1: a data set on which the expected prediction of a net without LN passes any bound.
// Two points of the plane with different targets are enough; the nets with LN learn the same two.
std::vector<Check> check_explosion(Device device) {
  const Tensor x = rows_of({1, 0, 0, 1}, 2).to(device), y = rows_of({1, -1}, 1).to(device);
  constexpr double kWanted = 1e6;
  std::vector<Check> checks;
  for (const TheoryNet& net : theory_nets()) {
    const auto kernel = theory_kernel(net, 2, device);
    RegressionOptions options;
    options.factor = DType::f64;
    const Regression regression(kernel, x, y, options);
    const RowFunction size = prediction_size(regression);
    const Found largest = search_largest(size, 2, x.to(Device::cpu()));
    const auto beyond = exceed(size, largest.x, kWanted);
    std::vector<double> log_t, log_f;
    for (double t : log_spaced(1e2, 1e6, 21)) {
      log_t.push_back(std::log(t));
      log_f.push_back(std::log(size(rows_of({t, -t}, 2))[0]));
    }
    const double slope = least_squares_slope(log_t, log_f);
    Check check;
    check.numbers = {{"net", net.name},
                     {"x", {{1, 0}, {0, 1}}},
                     {"y", {1, -1}},
                     {"growth_exponent", slope},
                     {"largest_found", largest.value}};
    if (!net.bounded) {
      check.statement = fmt::format(
          "{}: trained on f(1,0) = 1, f(0,1) = -1, E f passes any bound (Theorem 3.1)", net.label);
      check.holds = beyond.has_value() && std::abs(slope - 1) < 1e-3;
      if (beyond) {
        const double distance = beyond->distance();
        check.measured = fmt::format("grows as |x|^{:.4f}; passes {:g} at |x| = {}", slope, kWanted,
                                     brief(distance, 3));
        check.numbers["exceeds"] = kWanted;
        check.numbers["exceeds_at"] = beyond->x;
      }
    } else {
      const Certificate certificate = certify(regression, kernel->supremum().value);
      check.statement =
          fmt::format("{}: trained on the same two points, |E f| is bounded", net.label);
      check.measured = fmt::format("largest found {}, certificate {}", brief(largest.value, 4),
                                   brief_outward(certificate.bound, 4, 1));
      check.holds = !beyond && largest.value <= certificate.bound;
      check.numbers["certificate"] = certificate.bound;
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

std::vector<Check> check_certificates(const std::vector<ToyRegression>& regressions) {
  std::vector<Check> checks;
  for (const ToyRegression& one : regressions) {
    if (!one.net->bounded) continue;
    const Certificate& certificate = one.certificate;
    Check check;
    check.statement =
        fmt::format("{}, {}: |E f(x)| <= sqrt(C y^T (Theta + ridge I)^-1 y) for all x",
                    one.data->name, one.net->label);
    check.measured =
        fmt::format("largest found {}, certificate {}, loose form {}", brief(one.largest.value, 4),
                    brief_outward(certificate.bound, 4, 1), brief_outward(certificate.loose, 3, 1));
    check.holds = one.largest.value <= certificate.bound &&
                  certificate.tight <= certificate.bound && certificate.bound <= certificate.loose;
    check.numbers = {{"dataset", one.data->name},
                     {"net", one.net->name},
                     {"largest_found", one.largest.value},
                     {"largest_found_at", one.largest.x},
                     {"certificate", certificate.bound},
                     {"certificate_tight", certificate.tight},
                     {"certificate_loose", certificate.loose},
                     {"train_mse", one.train_mse}};
    checks.push_back(std::move(check));
  }
  return checks;
}

// Proposition 3.4: it is training, not LN alone, that bounds. Among the weights that fit the data
// exactly there are some with any prediction asked for at a point: the read-out is solved for it.
std::vector<Check> check_minimisers(const Context& context) {
  constexpr std::int64_t kWidth = 128, kRows = 10, kInputs = 2;
  constexpr double kAt = 20;  // (20, 20): far from the data, which are standard normal
  std::vector<double> x =
      normal({kRows, kInputs}, {context.options.seed, streams::inputs()}, 1, DType::f64)
          .to_vector<double>();
  x.insert(x.end(), {kAt, kAt});
  const TheoryNet& every = theory_nets()[3];
  Net net(every.spec(kWidth), kInputs, finite_options(context, 1));
  const Tensor inputs = rows_of(x, kInputs).to(context.device);

  // The last dense layer's factor holds what it reads: the features phi of every input.
  Tape tape;
  JacobianSink sink;
  const std::vector<Var> leaves = net.leaves(tape);
  const Var output = net.forward(inputs, leaves);
  tape.backward(output, Tensor::full(output.shape(), 1, DType::f64, context.device), sink);
  const Slot readout = leaves[leaves.size() - 2].slot();
  const Outer* last = nullptr;
  for (const JacobianSink::Factor& factor : sink.factors())
    if (factor.leaf == readout) last = std::get_if<Outer>(&factor.block);
  keel::check(last != nullptr, "theory", "the read-out has no factor");
  const std::int64_t n = kRows + 1;
  const Tensor gram = Tensor::empty({n, n}, DType::f64, context.device);
  gemm(Transpose::no, Transpose::yes, 1, last->input, last->input, 0, gram);
  keel::check(!cholesky(gram), "theory", "the features of {} points are not independent", n);

  const ParameterLayout& layout = net.layout();
  const std::size_t weight = layout.entries().size() - 2;
  fill(layout.view(net.flat(), weight + 1), 0);  // the read-out's bias
  std::vector<Check> checks;
  for (double wanted : {1e2, 1e4, 1e6}) {
    std::vector<double> y;
    for (std::size_t row = 0; row < kRows; ++row)
      y.push_back(std::sin(x[2 * row]) + x[2 * row + 1]);
    y.push_back(wanted);
    const Tensor c = rows_of(y, 1).to(context.device);
    solve_lower(gram, c);
    solve_lower_transposed(gram, c);
    // w = phi^T (phi phi^T)^-1 y, over the scale that the NTK parameterisation puts before it.
    gemm(Transpose::yes, Transpose::no, 1 / layout.entries()[weight].scale, c, last->input, 0,
         layout.view(net.flat(), weight));
    const std::vector<double> f = net.predict(inputs).to_vector<double>();
    const double root = rmse(std::span(f).first(kRows), std::span(y).first(kRows));
    Check check;
    check.statement = fmt::format(
        "LN every, width {0}: a minimiser of the loss with f({1}, {1}) = {2:g} (Proposition 3.4)",
        kWidth, kAt, wanted);
    check.measured = fmt::format("training MSE {0:.1e}, f({1}, {1}) = {2}", root * root, kAt,
                                 brief(f.back(), 6));
    check.holds = root * root < 1e-10 && std::abs(f.back() / wanted - 1) < 1e-6;
    check.numbers = {{"spec", every.spec(kWidth)},
                     {"train_mse", root * root},
                     {"x", {kAt, kAt}},
                     {"wanted", wanted},
                     {"prediction", f.back()}};
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace keel

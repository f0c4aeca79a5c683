#include "precise_net.h"

#include <cmath>
#include <limits>

#include "../core/max_or_nan.h"
#include "../kernels/elu.h"
#include "../kernels/gelu.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// high + low, |low| at most half a digit of high (Dekker 1971, Numer. Math. 18, 224-242).
struct Wide {
  double high = 0, low = 0;
};

// a + b, exactly.
Wide sum_of(double a, double b) {
  const double sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

Wide operator+(const Wide& a, const Wide& b) {
  const Wide high = sum_of(a.high, b.high), low = sum_of(a.low, b.low);
  const Wide near = sum_of(high.high, high.low + low.high);
  return sum_of(near.high, near.low + low.low);
}

Wide operator*(const Wide& a, double b) {
  const double product = a.high * b;
  return sum_of(product, std::fma(a.low, b, std::fma(a.high, b, -product)));
}

Wide operator/(const Wide& a, double b) {
  const double first = a.high / b;
  const Wide left = a + Wide{first, 0} * -b;
  return sum_of(first, left.high / b);
}

std::vector<Wide> dense(const Vector& weight, const Vector& bias, const std::vector<Wide>& x) {
  std::vector<Wide> out(bias.size());
  for (std::size_t o = 0; o < out.size(); ++o) {
    out[o].high = bias[o];
    for (std::size_t j = 0; j < x.size(); ++j) out[o] = out[o] + x[j] * weight[o * x.size() + j];
  }
  return out;
}

// Less their mean if `centred`; over their deviation, or else their root mean square.
void standardise(std::vector<Wide>& x, double eps, bool centred) {
  const auto n = static_cast<double>(x.size());
  double largest = 0;
  for (const Wide& value : x) largest = max_or_nan(largest, std::abs(value.high));
  if (largest < std::numeric_limits<double>::min()) largest = 0;  // as layer_norm has it
  // In a unit, a power of two, in which no square leaves double.
  const double unit = largest > 0 ? std::exp2(std::ilogb(largest)) : 1;
  for (Wide& value : x) value = largest == 0 ? Wide{} : Wide{value.high / unit, value.low / unit};
  const Wide first = centred ? x[0] : Wide{};  // relative to it a constant row is exactly 0
  Wide mean;
  for (Wide& value : x) mean = mean + (value = value + first * -1);
  mean = centred ? mean / n : Wide{};
  double squares = 0;
  for (Wide& value : x) {
    value = value + mean * -1;
    squares += value.high * value.high / n;
  }
  const double deviation = std::hypot(std::sqrt(squares), std::sqrt(eps) / unit);
  for (Wide& value : x) value = {deviation == 0 ? 0 : value.high / deviation, 0};
}

Wide activated(const LayerSpec& phi, const Wide& z) {
  switch (phi.kind) {
    case LayerKind::relu:
      return z.high > 0 ? z : Wide{};
    case LayerKind::leakyrelu:
      return z.high > 0 ? z : z * phi.slope;
    case LayerKind::gelu:
      if (phi.by_tanh)
        return z * (1 / (1 + std::exp(-z.high * (kGeluLinear + kGeluCubic * z.high * z.high))));
      return z * (0.5 * std::erfc(-z.high / std::sqrt(2.0)));
    case LayerKind::tanh:
      return {std::tanh(z.high), 0};
    case LayerKind::sigmoid:
      return {1 / (1 + std::exp(-z.high)), 0};
    case LayerKind::softplus:  // z or 0, and ln(1 + exp(-|z|))
      return (z.high > 0 ? z : Wide{}) + Wide{std::log1p(std::exp(-std::abs(z.high))), 0};
    case LayerKind::elu:
      return z.high > 0 ? z : Wide{phi.alpha * std::expm1(z.high), 0};
    case LayerKind::selu:
      return z.high > 0 ? z * kSeluScale : Wide{kSeluScale * kSeluAlpha * std::expm1(z.high), 0};
    case LayerKind::silu:
      return z * (1 / (1 + std::exp(-phi.beta * z.high)));
    default:
      fail("precise_net", "got {}, wanted an activation", name_of(phi.kind));
  }
}

}  // namespace

std::vector<double> evaluate_precisely(const Net& net, const std::vector<double>& x) {
  check<ShapeError>(net.members() == 1 && static_cast<std::int64_t>(x.size()) == net.input_width(),
                    "evaluate_precisely", "got {} numbers for {} members of {} inputs, wanted one",
                    x.size(), net.members(), net.input_width());
  net.check_rows_apart("evaluate_precisely");
  std::vector<Wide> values, kept;
  for (double value : x) values.push_back({value, 0});
  std::size_t p = 0;
  for (const LayerSpec& layer : net.spec()) {
    if (layer.kind == LayerKind::dense) {
      values = dense(net.values(p), net.values(p + 1), values);
      p += 2;
    } else if (normalises_rows(layer.kind)) {
      const bool centred = layer.kind == LayerKind::layernorm;
      standardise(values, layer.eps, centred);
      if (!layer.affine) continue;
      const Vector gain = net.values(p), bias = centred ? net.values(p + 1) : Vector(gain.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = values[i] * gain[i] + Wide{bias[i], 0};
      p += centred ? 2 : 1;
    } else if (layer.kind == LayerKind::prelu) {
      const Vector slopes = net.values(p++);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!(values[i].high > 0)) values[i] = values[i] * slopes[layer.per_unit ? i : 0];
    } else if (layer.kind == LayerKind::residual) {
      kept = values;
    } else if (layer.kind == LayerKind::add) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = values[i] + kept[i];
    } else {
      for (Wide& value : values) value = activated(layer, value);
    }
  }
  std::vector<double> result;
  for (const Wide& value : values) result.push_back(value.high);
  return result;
}

}  // namespace keel

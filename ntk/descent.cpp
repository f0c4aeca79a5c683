#include "descent.h"

#include <algorithm>
#include <cmath>

#include "norm_image.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

struct Start {
  Vector x, unit;  // multipliers to start from, and the size of a step of each
};

double slope(const Units& units, std::size_t j) {
  const double low = units.origin[j] + units.scale[j] * units.low[j];
  const double high = units.origin[j] + units.scale[j] * units.high[j];
  if (!(high > low)) return 0;
  return (units.phi(j)(high) - units.phi(j)(low)) / (high - low);
}

// 0 where there is none: a step of that size changes nothing.
double quotient(double a, double b) {
  const double result = a / b;
  return std::isfinite(result) ? result : 0;
}

// Of a coupling, to a layer whose units' weights times scales are about `mean`. None, but for a
// slack that keeps what it leaves small.
void couple_to(const CouplingPlace& place, double mean, double scale, std::size_t count,
               Start& start) {
  constexpr double kSlack = 0.05;
  const double linear = quotient(mean, scale), square = quotient(linear, scale);
  for (std::size_t i = 0; i < count; ++i) {
    start.unit[place.theta + i] = square;
    start.unit[place.shift + i] = linear;
    if (place.crosses) start.unit[place.cross + i] = linear;
  }
  start.x[place.slack] = std::log(std::max(kSlack * square, 1e-300));
  start.unit[place.slack] = 1;
}

// Lines: chords over each unit's interval. Parabolas, of the first units: those of |y|, which is at
// most (y^2 sqrt(k) + 1/sqrt(k)) / 2, as y is about 1/sqrt(k), and at least y^2.
Start start_of(const Multipliers& at, const std::vector<Units>& layers, const Vector& v,
               std::int64_t rank) {
  Start start{Vector(at.size), Vector(at.size)};
  Vector w = v;
  const double root = std::sqrt(std::max<double>(1, static_cast<double>(rank)));
  for (std::size_t l = at.sigma.size(); l-- > 0;) {
    const Units& all = layers[l];
    const auto n = static_cast<double>(all.size());
    double mean = 0, scale = 0, kappas = 0;
    for (std::size_t j = 0; j < all.size(); ++j) {
      const double size = w[j] * all.phi(j).spread(all.scale[j]);
      mean += std::abs(size) / n;
      scale += all.scale[j] / n;
      start.x[at.sigma[l] + j] = w[j] * all.scale[j] * slope(all, j);
      const bool bent = !all.passes(j) && all.origin[j] + all.scale[j] * all.low[j] < 0 &&
                        all.origin[j] + all.scale[j] * all.high[j] > 0;
      const double kappa = !bent ? 0 : size > 0 ? size * root / 4 : size / 2;
      if (l == 0 && at.kappas > 1) start.x[at.coupling[0].kappa + j] = kappa;
      kappas += kappa / n;
    }
    for (std::size_t j = 0; j < all.size(); ++j) start.unit[at.sigma[l] + j] = mean;
    if (l + 1 < at.sigma.size()) couple_to(at.coupling[l + 1], mean, scale, all.size(), start);
    if (l == 0) {
      const std::size_t first = at.coupling[0].kappa;
      if (at.kappas == 1) start.x[first] = std::max(kappas, 0.0);
      for (std::size_t j = 0; j < at.kappas; ++j)
        start.unit[first + j] = mean * std::max(1.0, root / 4);
      start.unit[at.half] = mean * std::sqrt(n);
      if (at.sided) start.unit[at.side] = mean * std::sqrt(n);
      if (at.curved) start.unit[at.quadric] = mean * std::sqrt(n);
      break;
    }
    const double step = quotient(quotient(mean, scale), scale);
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (all.passes(j) && l + 1 == at.sigma.size()) continue;  // it is linear: nothing to bend
      start.x[at.coupling[l].kappa + j] = 1e-3 * step;
      start.unit[at.coupling[l].kappa + j] = step;
    }
    Vector before(layers[l - 1].size());
    for (std::size_t j = 0; j < all.size(); ++j)
      for (std::size_t i = 0; i < before.size() && all.scale[j] > 0; ++i)
        before[i] +=
            start.x[at.sigma[l] + j] / all.scale[j] * all.from.weight[j * before.size() + i];
    w = std::move(before);
  }
  return start;
}

// Adam's steps (Kingma and Ba 2015), ever shorter, from `longest`.
Descent minimise(const TailDual& dual, const Vector& v, double constant, const Start& start,
                 const DescentSteps& steps, double longest) {
  constexpr double kLast = 5e-4, kMean = 0.9, kSquare = 0.99;
  constexpr double kCoarse = 3e-3, kFine = 1e-7;
  const Multipliers& at = dual.multipliers();
  const Vector& unit = start.unit;
  Vector x = start.x, gradient, mean(at.size), square(at.size), alpha;
  std::vector<Coupling> couplings;
  double price = 1e300;
  const TailDual::Also also{.couplings = &couplings, .alpha = &alpha, .price = &price};
  Descent best{dual(v, constant, x, kCoarse, gradient, also), x};
  // Of multipliers that move at every step, and of those that do not.
  double fades[2] = {1, 1}, square_fades[2] = {1, 1};
  for (std::int64_t step = 0; step < steps.count && !raised(steps.stop); ++step) {
    const double part = static_cast<double>(step) / static_cast<double>(steps.count);
    const double length = longest * std::pow(kLast / longest, part);
    const bool couples = step % steps.to_couplings == 0;
    for (std::size_t rare = 0; rare < (couples ? 2 : 1); ++rare) {
      fades[rare] *= kMean;
      square_fades[rare] *= kSquare;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t rare = at.coupled[i] ? 1 : 0;
      if (rare == 1 && !couples) continue;
      const double d_x = gradient[i] * unit[i];
      mean[i] = kMean * mean[i] + (1 - kMean) * d_x;
      square[i] = kSquare * square[i] + (1 - kSquare) * d_x * d_x;
      if (!(square[i] > 0)) continue;
      x[i] -= length * unit[i] * mean[i] / (1 - fades[rare]) /
              std::sqrt(square[i] / (1 - square_fades[rare]));
      if (at.not_negative[i]) x[i] = std::max(x[i], 0.0);
    }
    const TailDual::Value value = dual(v, constant, x, kCoarse, gradient, also);
    if (value.bound < best.least.bound) best = {value, x};
  }
  const TailDual::Value fine = dual(v, constant, best.x, kFine, gradient);
  if (fine.bound < best.least.bound) best.least = fine;
  return best;
}

// Of lambda as of the first multipliers, and of what S of it has.
void set_image_steps(Start& start, const Multipliers& at, const NormImage& image,
                     std::size_t rank) {
  const double step = 3 * image.step(&start.x[at.image]);
  for (std::size_t i = 0; i < at.size - at.image; ++i)
    start.unit[at.image + i] = i < rank ? start.unit[0] : step;
}

}  // namespace

Descent descend(const TailDual& dual, const std::vector<Units>& layers, const Vector& v,
                double constant, std::int64_t rank, const DescentSteps& steps) {
  return minimise(dual, v, constant, start_of(dual.multipliers(), layers, v, rank), steps, 0.2);
}

Descent descend_with_image(const TailDual& dual, const TailDual& with_image, const NormImage& image,
                           const std::vector<Units>& layers, const Vector& v, double constant,
                           std::int64_t rank, const DescentSteps& steps, const Descent& before) {
  const Multipliers& at = with_image.multipliers();
  Start start = start_of(at, layers, v, rank);
  std::copy(before.x.begin(), before.x.end(), start.x.begin());
  const Vector outside = image.outside(dual.taken(before.x));
  const auto image_at = start.x.begin() + static_cast<std::ptrdiff_t>(at.image);
  std::copy(outside.begin(), outside.end(), image_at);
  set_image_steps(start, at, image, outside.size());
  Descent found = minimise(with_image, v, constant, start, steps, 0.1);
  return found.least.bound < before.least.bound ? found : before;
}

Descent descend_from(const TailDual& dual, const NormImage* image, const std::vector<Units>& layers,
                     const Vector& v, double constant, std::int64_t rank, const DescentSteps& steps,
                     const Vector& from) {
  // Where couplings have to follow, longer steps lose what `from` had.
  const double longest = layers.size() > 1 ? 0.03 : 0.1;
  const Multipliers& at = dual.multipliers();
  Start start = start_of(at, layers, v, rank);
  start.x = from;
  if (image) set_image_steps(start, at, *image, image->rank());
  return minimise(dual, v, constant, start, steps, longest);
}

}  // namespace keel

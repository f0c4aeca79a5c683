#include "cone.h"

#include <algorithm>
#include <cmath>

#include "dot.h"
#include "length.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// Unit generators, row by row.
Vector of_length_one(const Vector& generators, std::size_t cols) {
  Vector result;
  for (std::size_t from = 0; from < generators.size(); from += cols) {
    const double length = length_of(&generators[from], cols);
    for (std::size_t i = 0; length > 0 && i < cols; ++i)
      result.push_back(generators[from + i] / length);
  }
  return result;
}

// Coordinate descent on |rest|^2, rest = target - sum alpha_j g_j, alpha >= 0. Stops where a sweep
// moves nothing by more than `still`.
void sweep(const Vector& generators, std::size_t cols, Vector& alpha, Vector& rest,
           std::int64_t sweeps, double still) {
  for (std::int64_t done = 0; done < sweeps; ++done) {
    double most = 0;
    for (std::size_t j = 0; j < alpha.size(); ++j) {
      const double* generator = &generators[j * cols];
      const double step = std::max(dot(generator, rest.data(), cols), -alpha[j]);
      if (step == 0) continue;
      alpha[j] += step;
      most = std::max(most, std::abs(step));
#pragma omp simd
      for (std::size_t i = 0; i < cols; ++i) rest[i] -= step * generator[i];
    }
    if (most <= still) return;
  }
}

// Towards the point of the generators' hull that is nearest to 0: the plane through 0 with the
// widest margin. It is the least of |sum alpha_j g_j|^2 + (1 - sum alpha_j)^2, scaled.
Vector inward_of(const Vector& generators, std::size_t cols) {
  constexpr std::int64_t kSweeps = 3000;
  const std::size_t count = generators.size() / cols;
  Vector lifted;
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t i = 0; i < cols; ++i)
      lifted.push_back(generators[j * cols + i] * std::sqrt(0.5));
    lifted.push_back(std::sqrt(0.5));
  }
  Vector alpha(count), rest(cols + 1);
  rest[cols] = 1;
  sweep(lifted, cols + 1, alpha, rest, kSweeps, 1e-9);
  Vector inward(cols);
  for (std::size_t i = 0; i < cols; ++i) inward[i] = -rest[i];
  const double length = std::sqrt(dot(inward.data(), inward.data(), cols));
  for (double& part : inward) part /= std::max(length, 1e-300);
  return inward;
}

}  // namespace

Cone::Cone(Vector generators, std::int64_t rank) : rank_(rank) {
  constexpr double kLeast = 1e-4;  // a plane that passes nearer costs more than it gives
  generators_ = of_length_one(generators, cols());
  if (generators_.empty()) return;
  inward_ = inward_of(generators_, cols());
  for (std::size_t from = 0; from < generators_.size(); from += cols())
    margins_.push_back(dot(&generators_[from], inward_.data(), cols()));
  if (!(*std::min_element(margins_.begin(), margins_.end()) > kLeast)) margins_.clear();
}

Vector Cone::project(const Vector& g, Vector& alpha, std::int64_t sweeps) const {
  if (empty()) return g;
  alpha.resize(margins_.size());
  Vector rest = g;
  for (std::size_t j = 0; j < alpha.size(); ++j)
    for (std::size_t i = 0; i < cols() && alpha[j] != 0; ++i)
      rest[i] -= alpha[j] * generators_[j * cols() + i];
  const double size = std::sqrt(dot(g.data(), g.data(), cols()));
  sweep(generators_, cols(), alpha, rest, sweeps, 1e-7 * size);
  // y = -rest + push inward: push makes up for what descent left, and for rounding
  const double rounding = 1e-14 + 4e-16 * static_cast<double>(cols());
  double push = 0;
  for (std::size_t j = 0; j < alpha.size(); ++j)
    push = std::max(
        push, (dot(&generators_[j * cols()], rest.data(), cols()) + rounding * size) / margins_[j]);
  Vector result(cols());
  for (std::size_t i = 0; i < cols(); ++i) result[i] = g[i] - rest[i] + push * inward_[i];
  return dot(result.data(), result.data(), cols()) < size * size ? result : g;
}

}  // namespace keel

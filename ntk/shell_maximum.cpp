#include "shell_maximum.h"

#include <algorithm>
#include <cmath>

namespace keel {
namespace {

double gap(double t, double value) { return std::max(t - value, 1e-300); }

double squared_length(const std::vector<double>& values, const std::vector<double>& g, double t) {
  double sum = 0;
  for (std::size_t i = 0; i < g.size(); ++i)
    if (g[i] != 0) sum += std::pow(g[i] / (2 * gap(t, values[i])), 2);
  return sum;
}

// In the hard case g has next to nothing along the last eigenvector, and u is free to go on along
// it until it is as long as the shell.
void lengthen(std::vector<double>& u, double wanted) {
  double others = 0;
  for (std::size_t i = 0; i + 1 < u.size(); ++i) others += u[i] * u[i];
  const double last = std::sqrt(std::max(wanted * wanted - others, u.back() * u.back()));
  u.back() = u.back() < 0 ? -last : last;
}

}  // namespace

ShellMaximum shell_maximum(const std::vector<double>& values, const std::vector<double>& g,
                           double inner) {
  ShellMaximum result;
  if (g.empty()) return result;
  double length = 0, size = 0;
  for (double part : g) length += part * part;
  length = std::sqrt(length);
  for (double value : values) size = std::max(size, std::abs(value));
  const auto too_small = [&](double t) {
    return squared_length(values, g, t) > (t >= 0 ? 1 : inner * inner);
  };
  // A hair above the eigenvalue, so that what g has of it by rounding alone costs nothing.
  double low = values.back() + 1e-13 * (size + length), high = std::max(low + length, 0.0);
  if (inner == 0) low = std::max(low, 0.0);
  if (too_small(low)) {
    for (int step = 0; step < 60; ++step) {
      const double middle = 0.5 * (low + high);
      (too_small(middle) ? low : high) = middle;
    }
  } else {
    high = low;
  }
  const double t = high;
  result.value = std::max(t, t * inner * inner);
  for (std::size_t i = 0; i < g.size(); ++i) {
    result.u.push_back(g[i] == 0 ? 0 : g[i] / (2 * gap(t, values[i])));
    if (g[i] != 0) result.value += g[i] * g[i] / (4 * gap(t, values[i]));
  }
  if (t == low) lengthen(result.u, t > 0 ? 1 : inner);
  return result;
}

}  // namespace keel

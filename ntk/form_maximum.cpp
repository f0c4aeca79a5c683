#include "form_maximum.h"

#include <algorithm>
#include <cmath>

#include "interval.h"

namespace keel {

FormMaximum::FormMaximum(std::size_t paths, std::size_t each)
    : paths_(paths),
      each_(each),
      own_(paths),
      messages_(paths * paths * each),
      adam_(messages_.size()),
      given_(paths * each) {
  for (std::size_t one = 0; one < paths; ++one)
    for (std::size_t other = one + 1; other < paths; ++other)
      pairs_.push_back({{}, {}, one, other});
}

double FormMaximum::of_path(std::size_t path, const std::vector<double>& linear,
                            const double* form) {
  const std::size_t begin = path * each_;
  const double* along = form + begin * rows();
  double largest = -kInfinity;
  for (std::size_t row = begin + 1; row < begin + each_; ++row) {
    const OnArc arc{linear[begin], linear[row], along[begin], along[row], form[row * rows() + row]};
    const double at_most = arc.at_most() + given_[row];
    if (!std::isfinite(at_most)) return at_most;
    if (at_most <= largest) continue;
    const double more = arc.between() + given_[row];
    for (const Angle& angle : angles())
      if (const double value = arc.at(angle) + more; value > largest) {
        largest = value;
        own_[path] = {begin, row, angle};
      }
  }
  return largest;
}

double FormMaximum::of_pair(Pair& pair, const double* form) const {
  const std::size_t first = pair.one_path * each_, second = pair.other_path * each_;
  const double* along = form + first * rows() + second;
  const double* of_one = &messages_[messages(pair.one_path, pair.other_path)];
  const double* of_other = &messages_[messages(pair.other_path, pair.one_path)];
  double largest = -kInfinity;
  std::size_t best_t = 1, best_s = 1;
  for (std::size_t t = 1; t < each_; ++t) {
    const double* across = along + t * rows();
    for (std::size_t s = 1; s < each_; ++s) {
      const double value = 2 * OfTwoArcs{along[0], along[s], across[0], across[s]}.at_most() -
                           of_one[t] - of_other[s];
      if (value <= largest) continue;
      if (!(value > largest)) return value;  // no number
      largest = value;
      best_t = t;
      best_s = s;
    }
  }
  const double* across = along + best_t * rows();
  const auto [x, y] = OfTwoArcs{along[0], along[best_s], across[0], across[best_s]}.where();
  pair.one = {first, first + best_t, x};
  pair.other = {second, second + best_s, y};
  return largest;
}

double FormMaximum::most(const std::vector<double>& linear, const Tensor& form) {
  std::fill(given_.begin(), given_.end(), 0.0);
  for (std::size_t path = 0; path < paths_; ++path)
    for (std::size_t other = 0; other < paths_; ++other)
      for (std::size_t k = 1; k < each_; ++k)
        given_[path * each_ + k] += messages_[messages(path, other) + k];
  double sum = 0;
  for (std::size_t path = 0; path < paths_; ++path)
    sum += of_path(path, linear, form.data<double>());
  of_pairs_ = 0;
  for (Pair& pair : pairs_) of_pairs_ += of_pair(pair, form.data<double>());
  return sum + of_pairs_;
}

// Downhill: what a place is given costs where its path takes it, and is worth it where a pair does.
void FormMaximum::step(double rate) {
  if (pairs_.empty()) return;
  adam_.next();
  const double size = rate * std::abs(of_pairs_) / static_cast<double>(pairs_.size());
  for (Pair& pair : pairs_)
    for (const bool one : {true, false}) {
      const std::size_t path = one ? pair.one_path : pair.other_path;
      const std::size_t other = one ? pair.other_path : pair.one_path;
      const Turn& of_pair = one ? pair.one : pair.other;
      const std::size_t wanted = of_pair.row - of_pair.first,
                        taken = own_[path].row - own_[path].first;
      const std::size_t at = messages(path, other);
      for (std::size_t k = 1; k < each_; ++k) {
        const double slope = (k == taken ? 1.0 : 0.0) - (k == wanted ? 1.0 : 0.0);
        messages_[at + k] -= size * adam_.up(at + k, slope, 1e-8);
      }
    }
}

}  // namespace keel

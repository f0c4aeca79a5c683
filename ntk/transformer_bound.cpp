#include "transformer_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../core/each_in_parallel.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

constexpr double kMargin = 1e-9;  // of sizes: rounding takes less than 1e-12 of them

/// weight [outputs, inputs] and bias of a dense layer.
struct Affine {
  Vector weight, bias;
  std::size_t inputs() const { return weight.size() / bias.size(); }
  const double* row(std::size_t i) const { return &weight[i * inputs()]; }
};

/// What is to be bounded: w . h. `size` is at least |w| as it would be if nothing cancelled in what
/// w is made of: what it lost to rounding is a small part of that.
struct Direction {
  Vector w, size;
  explicit Direction(std::size_t n) : w(n), size(n) {}

  void add(double factor, double factor_size, const double* row) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] += factor * row[i];
      size[i] += factor_size * std::abs(row[i]);
    }
  }
};

/// The largest value of something, and the sum of the sizes of all that makes it.
struct Most {
  double value = 0, size = 0;
  double bound() const { return value + kMargin * size; }
  Most& operator+=(const Most& other) {
    value += other.value;
    size += other.size;
    return *this;
  }
};

Most along(const Direction& d, const double* values) {
  Most most;
  for (std::size_t i = 0; i < d.w.size(); ++i)
    most += {d.w[i] * values[i], d.size[i] * std::abs(values[i])};
  return most;
}

struct Block {
  Affine attended, taken, hidden, back;  // queries, keys and values; what takes up what they mix
  std::vector<Interval> units{};         // of the hidden ones, before their relu
};

/// Most of w . h over all that can stand at a place of a sequence: linear functions are pulled back
/// through the blocks to what the Layer Norm gives, a relu replaced by a line above it (CROWN:
/// Zhang et al., 2018).
class Bounds {
 public:
  Bounds(const Transformer& net, std::int64_t member)
      : net_(net), member_(member), heads_(static_cast<std::size_t>(net.options().heads)) {
    const Vector weight = next(), bias = next(), places = next();
    gain_ = next();
    bias_ = next();
    for (std::int64_t t = 0; t < net.options().length; ++t)
      planes_.push_back(plane_of(weight, bias, &places[static_cast<std::size_t>(t) * bias.size()]));
    for (std::int64_t b = 0; b < net.options().blocks; ++b) {
      Affine attended = dense(), taken = dense(), hidden = dense(), back = dense();
      blocks_.push_back(
          {std::move(attended), std::move(taken), std::move(hidden), std::move(back)});
      find_units(blocks_.size() - 1);
    }
    last_ = dense();
  }

  Interval outputs() const {
    const auto most = [&](double side) {
      Direction d(gain_.size());
      d.add(side, 1, last_.row(0));
      Most all = before_block(blocks_.size(), d);
      all += {side * last_.bias[0], std::abs(last_.bias[0])};
      return all.bound();
    };
    return {-most(-1), most(1)};
  }

 private:
  Vector next() {
    Vector values = net_.layout().member_view(net_.flat(), at_, member_).to_vector<double>();
    for (double value : values)
      check(std::isfinite(value), "transformer_bound", "got {} in {}, wanted finite numbers", value,
            net_.layout().entries()[at_].name);
    ++at_;
    return values;
  }
  Affine dense() {
    Vector weight = next();
    return {std::move(weight), next()};
  }

  /// Where what the Layer Norm gives at a place lies, times the gain: sin(a) first + cos(a) second,
  /// |a| <= pi / 2, or shorter. Nothing where rounding may have turned them.
  struct Plane {
    Vector first, second;
  };

  // Of weight x + bias + place, whatever x is: half of the plane that centred weight and the rest
  // span, as the rest's share of it is 1.
  Plane plane_of(const Vector& weight, const Vector& bias, const double* place) const {
    constexpr double kClear = 1e-5;  // of what they are differences of: then eleven digits are left
    const std::size_t n = bias.size();
    const auto centred = [n](Vector v) {
      double mean = 0;
      for (double value : v) mean += value / static_cast<double>(n);
      for (double& value : v) value -= mean;
      return v;
    };
    const auto length = [](const Vector& v) {
      double squares = 0;
      for (double value : v) squares += value * value;
      return std::sqrt(squares);
    };
    Vector rest(n);
    for (std::size_t i = 0; i < n; ++i) rest[i] = bias[i] + place[i];
    const double rest_length = length(rest);
    Plane plane{centred(weight), centred(rest)};
    const double first = length(plane.first);
    if (!(first > kClear * length(weight))) return {};
    for (double& value : plane.first) value /= first;
    double share = 0;
    for (std::size_t i = 0; i < n; ++i) share += plane.first[i] * plane.second[i];
    for (std::size_t i = 0; i < n; ++i) plane.second[i] -= share * plane.first[i];
    const double second = length(plane.second);
    if (!(second > kClear * rest_length)) return {};
    const double reach = std::sqrt(static_cast<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
      plane.first[i] *= reach * gain_[i];
      plane.second[i] *= reach * gain_[i] / second;
    }
    return plane;
  }

  double behind_norm_at(const Plane& plane, const Direction& d, double anywhere) const {
    if (plane.first.empty()) return anywhere;
    double first = 0, second = 0;
    for (std::size_t i = 0; i < d.w.size(); ++i) {
      first += d.w[i] * plane.first[i];
      second += d.w[i] * plane.second[i];
    }
    return second > 0 ? std::hypot(first, second) : std::abs(first);
  }

  // h = gain u + bias for any u of mean 0 with |u|^2 <= d, of which each place sees a part.
  Most behind_norm(const Direction& d) const {
    const auto n = static_cast<double>(gain_.size());
    double mean = 0, squares = 0, sizes = 0;
    for (std::size_t i = 0; i < gain_.size(); ++i) mean += d.w[i] * gain_[i] / n;
    for (std::size_t i = 0; i < gain_.size(); ++i) {
      const double centred = d.w[i] * gain_[i] - mean, size = d.size[i] * gain_[i];
      squares += centred * centred;
      sizes += size * size;
    }
    Most most = along(d, bias_.data());
    double largest = 0;
    for (const Plane& plane : planes_)
      largest = std::max(largest, behind_norm_at(plane, d, std::sqrt(n * squares)));
    most += {largest, std::sqrt(n * sizes)};
    return most;
  }

  Most before_block(std::size_t b, const Direction& d) const {
    return b == 0 ? behind_norm(d) : behind_hidden(b - 1, d);
  }

  // h + taken(a). A head of a is a mean, with some weights, of values at several places: of a
  // linear function of one it is at most the largest, whatever queries and keys are.
  Most behind_attention(std::size_t b, const Direction& d) const {
    const Block& block = blocks_[b];
    const std::size_t width = d.w.size(), head_width = width / heads_;
    Most most = before_block(b, d);
    most += along(d, block.taken.bias.data());
    Direction of_values(width);
    for (std::size_t i = 0; i < width; ++i) of_values.add(d.w[i], d.size[i], block.taken.row(i));
    for (std::size_t head = 0; head < heads_; ++head) {
      Direction of_head(width);
      for (std::size_t c = head * head_width; c < (head + 1) * head_width; ++c) {
        const std::size_t value = 2 * width + c;
        of_head.add(of_values.w[c], of_values.size[c], block.attended.row(value));
        most += {of_values.w[c] * block.attended.bias[value],
                 of_values.size[c] * std::abs(block.attended.bias[value])};
      }
      most += before_block(b, of_head);
    }
    return most;
  }

  // h + back(relu(hidden(h))).
  Most behind_hidden(std::size_t b, const Direction& d) const {
    const Block& block = blocks_[b];
    const std::size_t width = d.w.size(), units = block.hidden.bias.size();
    Direction of_units(units);
    for (std::size_t i = 0; i < width; ++i) of_units.add(d.w[i], d.size[i], block.back.row(i));
    Most most = along(d, block.back.bias.data());
    Direction before = d;
    for (std::size_t j = 0; j < units; ++j) {
      const auto [low, high] = block.units[j];
      const double factor = of_units.w[j], size = of_units.size[j];
      // factor relu(z) <= slope z + rest for low <= z <= high.
      double slope = 0, rest = 0;
      if (low >= 0) {
        slope = factor;
      } else if (high > 0) {
        const bool above = factor > 0;  // then the chord, else whichever of 0 and z is closer
        slope = factor * (above ? high / (high - low) : high > -low ? 1 : 0);
        if (above) rest = -slope * low;
      }
      if (slope == 0) {
        most += {0, size * std::max(0.0, high)};
        continue;
      }
      before.add(slope, size, block.hidden.row(j));
      most += {slope * block.hidden.bias[j] + rest,
               size * (std::abs(block.hidden.bias[j]) + std::abs(low))};
    }
    most += behind_attention(b, before);
    return most;
  }

  void find_units(std::size_t b) {
    const Affine& hidden = blocks_[b].hidden;
    std::vector<Interval> units(hidden.bias.size());
    each_in_parallel(units.size(), [&](std::size_t j) {
      const auto most = [&](double side) {
        Direction d(gain_.size());
        d.add(side, 1, hidden.row(j));
        Most all = behind_attention(b, d);
        all += {side * hidden.bias[j], std::abs(hidden.bias[j])};
        return all.bound();
      };
      units[j] = {-most(-1), most(1)};
    });
    blocks_[b].units = std::move(units);
  }

  const Transformer& net_;
  std::int64_t member_;
  std::size_t heads_, at_ = 0;
  Vector gain_, bias_;
  std::vector<Plane> planes_{};  // a place each
  std::vector<Block> blocks_{};
  Affine last_{};
};

}  // namespace

Interval bound_transformer(const Transformer& net, std::int64_t member) {
  check(net.options().layer_norm, "transformer_bound",
        "got a transformer without a Layer Norm, which nothing bounds");
  check(member >= 0 && member < net.members(), "transformer_bound",
        "got member {}, wanted one from 0 to {}", member, net.members() - 1);
  const Interval outputs = Bounds(net, member).outputs();
  check(std::isfinite(outputs.low) && std::isfinite(outputs.high), "transformer_bound",
        "got weights so large that a bound is [{}, {}] in double", outputs.low, outputs.high);
  return outputs;
}

}  // namespace keel

#include "transformer_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../core/each_in_parallel.h"
#include "block_paths.h"
#include "direction.h"
#include "embedding_image.h"
#include "form_bound.h"
#include "parabola_bound.h"

namespace keel {
namespace {

using Vector = std::vector<double>;

// Of the sizes of all that was summed: what rounding can take of a sum of n products is less than
// n + 1 roundings of their sizes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), and
// each level of a block has sums over its width, its hidden units and what both are pulled back to.
// Four times that.
double margin_of(const TransformerOptions& o) {
  constexpr double kRounding = std::numeric_limits<double>::epsilon() / 2;
  const auto levels = static_cast<double>(o.blocks + 1);
  const auto terms = static_cast<double>(2 * o.hidden + 8 * o.width + 100);
  return 4 * kRounding * levels * terms + EmbeddingImage::rounding(o.width);
}

void check_finite(const Interval& bound) {
  check(std::isfinite(bound.low) && std::isfinite(bound.high), "transformer_bound",
        "got weights so large that a bound is [{}, {}] in double", bound.low, bound.high);
}

/// Most of w . h over all that can stand at a place of a sequence: linear functions are pulled back
/// through the blocks to what the Layer Norm gives, a relu replaced by a line above it (CROWN:
/// Zhang et al., 2018) or, in the first block, by a parabola.
class Bounds {
 public:
  Bounds(const Transformer& net, std::int64_t member)
      : net_(net),
        member_(member),
        heads_(static_cast<std::size_t>(net.options().heads)),
        margin_(margin_of(net.options())) {
    const Vector weight = next(), bias = next(), places = next(), gain = next(), shift = next();
    image_.emplace(weight, bias, places, gain, shift);
    blocks_.reserve(static_cast<std::size_t>(net.options().blocks));
    for (std::int64_t b = 0; b < net.options().blocks; ++b) {
      DenseMap attended = dense(), taken = dense(), hidden = dense(), back = dense();
      blocks_.push_back(
          {std::move(attended), std::move(taken), std::move(hidden), std::move(back)});
      find_units(blocks_.size() - 1);
      if (b == 0 && image_->in_planes()) {
        paths_.emplace(*image_, blocks_[0], heads_);
        parabolas_.emplace(*paths_, blocks_[0]);
      }
    }
    last_ = dense();
    find_form();
  }

  Interval outputs() const {
    double ends[2];
    each_in_parallel(2, [&](std::size_t i) {
      const double side = i == 0 ? -1 : 1;
      Direction d(last_.inputs());
      d.add(side, 1, last_.row(0));
      Most all = before_block(blocks_.size(), d);
      all += {side * last_.bias[0], std::abs(last_.bias[0])};
      ends[i] = all.bound(margin_);
    });
    return {-ends[0], ends[1]};
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
  DenseMap dense() {
    Vector weight = next();
    return {std::move(weight), next()};
  }

  Most before_block(std::size_t b, const Direction& d) const {
    return b == 0 ? image_->most(d) : behind_hidden(b - 1, d);
  }

  // h + taken(a). A head of a is a mean, with some weights, of values at several places: of a
  // linear function of one it is at most the largest, whatever queries and keys are.
  Most behind_attention(std::size_t b, const Direction& d) const {
    const BlockMaps& block = blocks_[b];
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

  // h + back(relu(hidden(h))): behind the first block by whichever way is closer.
  Most behind_hidden(std::size_t b, const Direction& d) const {
    const BlockMaps& block = blocks_[b];
    Direction of_units(block.hidden.bias.size());
    for (std::size_t i = 0; i < d.w.size(); ++i) of_units.add(d.w[i], d.size[i], block.back.row(i));
    Most least = above_lines(b, d, of_units);
    const auto improve = [&](const Most& other) {
      if (other.bound(margin_) < least.bound(margin_)) least = other;
    };
    if (b == 0 && parabolas_) improve(parabolas_->most(d, of_units));
    if (form_ && b == form_block_) improve(form_->most(d, of_units, form_steps_));
    return least;
  }

  // A line above each relu.
  Most above_lines(std::size_t b, const Direction& d, const Direction& of_units) const {
    const BlockMaps& block = blocks_[b];
    Most most = along(d, block.back.bias.data());
    Direction before = d;
    for (std::size_t j = 0; j < of_units.w.size(); ++j) {
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
    const DenseMap& hidden = blocks_[b].hidden;
    std::vector<Interval> units(hidden.bias.size());
    each_in_parallel(units.size(), [&](std::size_t j) {
      const auto most = [&](double side) {
        Direction d(hidden.inputs());
        d.add(side, 1, hidden.row(j));
        Most all = behind_attention(b, d);
        all += {side * hidden.bias[j], std::abs(hidden.bias[j])};
        return all.bound(margin_);
      };
      units[j] = {-most(-1), most(1)};
      check_finite(units[j]);
    });
    blocks_[b].units = std::move(units);
  }

  // For the end alone, as it takes its time: behind later blocks it is asked of each head of those.
  void find_form() {
    constexpr int kSteps = 150, kFewest = 10;
    if (!paths_) return;
    form_block_ = std::min<std::size_t>(blocks_.size(), 2) - 1;
    form_steps_ = kSteps;
    for (std::size_t b = form_block_ + 1; b < blocks_.size(); ++b)
      form_steps_ /= static_cast<int>(heads_ + 1);
    if (form_steps_ < kFewest || !FormRows::fits(*paths_, form_block_ + 1)) return;
    form_.emplace(*paths_, std::span(blocks_).first(form_block_ + 1), heads_);
  }

  const Transformer& net_;
  std::int64_t member_;
  std::size_t heads_, at_ = 0;
  double margin_;
  std::optional<EmbeddingImage> image_{};
  std::vector<BlockMaps> blocks_{};
  std::optional<BlockPaths> paths_{};         // of the first block, where the image is in planes
  std::optional<ParabolaBound> parabolas_{};  // of that block
  std::optional<FormBound> form_{};           // behind the block `form_block_`
  std::size_t form_block_ = 0;
  int form_steps_ = 0;
  DenseMap last_{};
};

}  // namespace

Interval bound_transformer(const Transformer& net, std::int64_t member) {
  check(net.options().layer_norm, "transformer_bound",
        "got a transformer without a Layer Norm, which nothing bounds");
  check<ShapeError>(member >= 0 && member < net.members(), "transformer_bound",
                    "got member {}, wanted one from 0 to {}", member, net.members() - 1);
  const Interval outputs = Bounds(net, member).outputs();
  check_finite(outputs);
  return outputs;
}

}  // namespace keel

#include "transformer_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "../core/each_in_parallel.h"
#include "block_paths.h"
#include "direction.h"
#include "embedding_image.h"
#include "form_bound.h"
#include "normed_block.h"
#include "parabola_bound.h"
#include "transformer_parts.h"

namespace keel {
namespace {

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

/// Where the embedding's norm is the only one: most of w . h over all that can stand at a place of
/// a sequence. Linear functions are pulled back through the blocks to what the norm gives, a relu
/// replaced by a line above it (CROWN: Zhang et al., 2018) or, in the first block, by a parabola.
class Bounds {
 public:
  Bounds(const TransformerParts& parts, const EmbeddingImage& image, double margin)
      : heads_(parts.heads), margin_(margin), image_(image) {
    for (const TransformerParts::Block& block : parts.blocks) blocks_.push_back(block.maps);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      find_units(b);
      if (b == 0 && image_.in_planes()) {
        paths_.emplace(image_, blocks_[0], heads_);
        parabolas_.emplace(*paths_, blocks_[0]);
      }
    }
    find_form();
  }

  /// Of d . the state behind all blocks.
  Most most(const Direction& d) const { return before_block(blocks_.size(), d); }

 private:
  Most before_block(std::size_t b, const Direction& d) const {
    return b == 0 ? image_.most(d) : behind_hidden(b - 1, d);
  }

  // h + taken(a).
  Most behind_attention(std::size_t b, const Direction& d) const {
    Most most = before_block(b, d);
    for (const Direction& of_head : through_heads(blocks_[b], heads_, d, most))
      most += before_block(b, of_head);
    return most;
  }

  // h + back(relu(hidden(h))): behind the first block by whichever way is closer.
  Most behind_hidden(std::size_t b, const Direction& d) const {
    const Direction of_units = through_back(blocks_[b].back, d);
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

  std::size_t heads_;
  double margin_;
  const EmbeddingImage& image_;
  std::vector<BlockMaps> blocks_{};
  std::optional<BlockPaths> paths_{};         // of the first block, where the image is in planes
  std::optional<ParabolaBound> parabolas_{};  // of that block
  std::optional<FormBound> form_{};           // behind the block `form_block_`
  std::size_t form_block_ = 0;
  int form_steps_ = 0;
};

// Of the last layer's output, `most` being of a direction that is taken back through that layer.
template <class F>
Interval outputs_by(const DenseMap& last, double margin, F most) {
  double ends[2];
  each_in_parallel(2, [&](std::size_t i) {
    const double side = i == 0 ? -1 : 1;
    Direction d(last.inputs());
    d.add(side, 1, last.row(0));
    Most all = most(d);
    all += {side * last.bias[0], std::abs(last.bias[0])};
    ends[i] = all.bound(margin);
  });
  return {-ends[0], ends[1]};
}

// A block's norms make what it adds bounded by itself, whatever is added before.
Interval bound_sum_of_blocks(const TransformerParts& parts, const EmbeddingImage& image,
                             double margin) {
  Direction d(parts.last.inputs());
  d.add(1, 1, parts.last.row(0));
  Range added;
  for (const TransformerParts::Block& block : parts.blocks)
    added += range_added(block, parts.heads, d);
  const Interval passing =
      outputs_by(parts.last, margin, [&](const Direction& of) { return image.most(of); });
  return {passing.low + added.within.low - margin * added.size,
          passing.high + added.within.high + margin * added.size};
}

Interval bound_parts(const TransformerParts& parts, double margin) {
  const auto by = [&](auto most) { return outputs_by(parts.last, margin, most); };
  if (parts.last_norm)
    return by([&](const Direction& d) { return most_behind(*parts.last_norm, d); });
  const TransformerParts::Embedding& embedding = parts.embedding;
  const EmbeddingImage image(embedding.weight, embedding.bias, embedding.places, *embedding.norm);
  if (parts.blocks[0].attention_norm) return bound_sum_of_blocks(parts, image, margin);
  const Bounds bounds(parts, image, margin);
  return by([&](const Direction& d) { return bounds.most(d); });
}

}  // namespace

Interval bound_transformer(const Transformer& net, std::int64_t member) {
  check(
      net.options().norms.bound_all(), "transformer_bound",
      "got a transformer with norms at '{}', wanted one behind the embedding or ahead of the last "
      "layer: nothing bounds what passes all norms by",
      places_of(net.options().norms));
  check<ShapeError>(member >= 0 && member < net.members(), "transformer_bound",
                    "got member {}, wanted one from 0 to {}", member, net.members() - 1);
  const Interval outputs = bound_parts(parts_of(net, member), margin_of(net.options()));
  check_finite(outputs);
  return outputs;
}

}  // namespace keel

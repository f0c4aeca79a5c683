#include "tail_sum.h"

#include <algorithm>

#include "tail_builder.h"
#include "tail_start.h"

namespace keel {
namespace {

// Of the layers [first, last) that no residual passes by: the last norm, or else the first tanh or
// sigmoid; else `last`.
std::size_t bounding(const Spec& spec, std::size_t first, std::size_t last) {
  std::size_t norm = last, units = last;
  bool within = false;
  for (std::size_t i = first; i < last; ++i) {
    if (joins(spec[i].kind)) within = spec[i].kind == LayerKind::residual;
    if (within) continue;
    if (normalises_rows(spec[i].kind)) norm = i;
    if (bounds_units(spec[i].kind)) units = std::min(units, i);
  }
  return norm < last ? norm : units;
}

// Those that no residual passes by.
std::vector<std::size_t> norms_of_all(const Spec& spec) {
  std::vector<std::size_t> norms;
  bool within = false;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (joins(spec[i].kind)) within = spec[i].kind == LayerKind::residual;
    if (!within && normalises_rows(spec[i].kind)) norms.push_back(i);
  }
  return norms;
}

// The layers [first, last).
bool all_dense(const Spec& spec, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i)
    if (spec[i].kind != LayerKind::dense) return false;
  return true;
}

// Of the residual whose first layer that is.
std::size_t end_of_residual(const Spec& spec, std::size_t first) {
  while (spec[first].kind != LayerKind::add) ++first;
  return first;
}

std::size_t last_norm(const Spec& spec, std::size_t first, std::size_t last) {
  for (std::size_t i = last; i > first; --i)
    if (normalises_rows(spec[i - 1].kind)) return i - 1;
  return last;
}

class Summing {
 public:
  Summing(const Net& net, bool narrow) : net_(net), narrow_(narrow) {}

  void begin(Tail start, std::size_t first) {
    add(TailBuilder(std::move(start)));
    const Spec& spec = net_.spec();
    for (std::size_t i = first; i < spec.size(); ++i) {
      if (spec[i].kind == LayerKind::dense) {
        dense(i);
      } else if (spec[i].kind == LayerKind::residual) {
        const std::size_t end = end_of_residual(spec, i);
        residual(i + 1, end);
        i = end;
      } else {
        activation(i);
      }
    }
  }

  TailSum sum() const {
    TailSum all;
    for (const Term& term : terms_) all.push_back({term.tail.tail(), term.below});
    return all;
  }

 private:
  struct Term {
    TailBuilder tail;
    std::shared_ptr<const TailSum> below;
  };

  void dense(std::size_t layer) {
    Affine map = dense_affine(net_, layer);
    for (Term& term : terms_) {
      term.tail.dense(map);
      map = linear_part(std::move(map));  // the bias once
    }
  }

  void activation(std::size_t layer) { one().activation(activation_of(net_, layer)); }

  // Of the layers [first, last) within it.
  void residual(std::size_t first, std::size_t last) {
    const std::size_t norm = last_norm(net_.spec(), first, last);
    if (norm == last) {
      one().residual();
      one().layers(net_, first, last);
      one().add();
      return;
    }
    TailBuilder term(begin_within(first, norm));
    term.layers(net_, norm + 1, last);
    add(std::move(term));
  }

  void add(TailBuilder tail) { terms_.push_back({std::move(tail), nullptr}); }

  // All that there is, as one term.
  TailBuilder& one() {
    if (terms_.size() > 1) {
      const auto below = std::make_shared<const TailSum>(sum());
      Tail any;
      any.affine = {identity_map(below->front().tail.affine.back().outputs)};
      terms_ = {{TailBuilder(std::move(any)), below}};
    }
    return terms_[0].tail;
  }

  // The norm at `norm` of a residual whose layers begin at `first`. One of a linear map of few
  // dimensions has few, too.
  Tail begin_within(std::size_t first, std::size_t norm) const {
    if (narrow_ && terms_.size() == 1 && !terms_[0].below && all_dense(net_.spec(), first, norm)) {
      TailBuilder before = terms_[0].tail;
      before.layers(net_, first, norm);
      const Tail given = before.tail();
      if (given.activations.empty()) return tail_after(net_, norm, given);
    }
    return tail_from(net_, norm, narrow_);
  }

  const Net& net_;
  const bool narrow_;
  std::vector<Term> terms_{};
};

}  // namespace

std::size_t bounding_layer(const Spec& spec) {
  std::size_t behind = 0;  // all norms within residuals
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (spec[i].kind != LayerKind::residual) continue;
    const std::size_t end = end_of_residual(spec, i);
    if (last_norm(spec, i, end) < end) behind = end + 1;
  }
  const std::size_t alone = bounding(spec, behind, spec.size());
  return alone < spec.size() ? alone : bounding(spec, 0, spec.size());
}

const char* outside_residuals(const Spec& spec) {
  return has_residual(spec) ? " that no residual passes by" : "";
}

namespace {

void check_one_member(const Net& net) {
  check(net.members() == 1, "net_bound", "got a net of {} members, wanted one: Net::member",
        net.members());
}

}  // namespace

TailSum tail_sum_of(const Net& net, bool narrow) {
  check_one_member(net);
  const Spec& spec = net.spec();
  const std::size_t from = bounding_layer(spec);
  check(from < spec.size(), "net_bound",
        "got '{}', wanted a layernorm, an rmsnorm, a tanh or a sigmoid{}", spec_text(spec),
        outside_residuals(spec));
  Summing sum(net, narrow);
  sum.begin(tail_from(net, from, narrow), from + 1);
  return sum.sum();
}

std::optional<TailSum> tail_sum_within(const Net& net, double within,
                                       const std::vector<Interval>& ranges, bool narrow) {
  check_one_member(net);
  const Spec& spec = net.spec();
  const std::vector<std::size_t> norms = norms_of_all(spec);
  Summing sum(net, narrow);
  if (norms.empty()) {
    sum.begin(ranges.empty() ? tail_of_inputs(net, within) : tail_of_ranges(ranges), 0);
    return sum.sum();
  }
  if (!narrow || norms.size() > 1 || !all_dense(spec, 0, norms[0])) return std::nullopt;
  TailBuilder before(ranges.empty() ? tail_of_inputs(net, within) : tail_around_ranges(ranges));
  before.layers(net, 0, norms[0]);
  Tail normed = tail_after(net, norms[0], before.tail());
  if (normed.set.whole) return std::nullopt;
  sum.begin(std::move(normed), norms[0] + 1);
  return sum.sum();
}

const Tail& first_tail(const TailSum& sum) {
  return sum[0].below ? first_tail(*sum[0].below) : sum[0].tail;
}

std::int64_t sets_of(const TailSum& sum) {
  std::int64_t sets = 0;
  for (const TailTerm& term : sum) sets += term.below ? sets_of(*term.below) : 1;
  return sets;
}

std::int64_t activations_of(const TailSum& sum) {
  std::int64_t most = 0;
  for (const TailTerm& term : sum) {
    const auto own = static_cast<std::int64_t>(term.tail.activations.size());
    most = std::max(most, term.below ? own + activations_of(*term.below) : own - term.tail.set.box);
  }
  return most;
}

}  // namespace keel

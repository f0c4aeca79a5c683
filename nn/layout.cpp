#include "layout.h"

#include <cmath>

#include "../core/random.h"
#include "streams.h"

namespace keel {
namespace {

Tensor drawn(const ParameterLayout::Entry& entry, RandomKey key, DType dtype) {
  if (entry.distribution == Distribution::normal)
    return normal(entry.member, key, entry.stddev, dtype);
  // In double: float32's draws are cut to 24 bits, always downwards.
  std::vector<double> values = uniform(entry.member, key, DType::f64).to_vector<double>();
  const double end = std::sqrt(3.0) * entry.stddev;  // its variance: end^2 / 3
  for (double& value : values) value = (2 * value - 1) * end;
  return Tensor::from(values, entry.member).to(dtype);
}

}  // namespace

void ParameterLayout::push_back(const std::string& layer, const ParameterSpec& parameter) {
  constexpr std::int64_t kAlign = 16;
  entries_.push_back({fmt::format("{}.{}", layer, parameter.name), parameter.shape, elements_,
                      parameter.mean, parameter.stddev, parameter.scale, parameter.distribution});
  std::int64_t all = 0;
  const bool too_many = __builtin_mul_overflow(members_, parameter.shape.elements(), &all) ||
                        __builtin_add_overflow(all, kAlign - 1, &all) ||
                        __builtin_add_overflow(elements_, all / kAlign * kAlign, &elements_);
  check<ShapeError>(!too_many, "net",
                    "layer {} brings the parameters of {} members to 2^63 or more", layer,
                    members_);
}

Shape ParameterLayout::shape(std::size_t p) const {
  check<ShapeError>(p < entries_.size(), "layout", "got parameter {}, wanted one from 0 to {}", p,
                    static_cast<std::int64_t>(entries_.size()) - 1);
  Shape shape;
  if (members_ > 1) shape.push_back(members_);
  const Shape& member = entries_[p].member;
  for (int axis = 0; axis < member.rank(); ++axis) shape.push_back(member[axis]);
  return shape;
}

Tensor ParameterLayout::view(const Tensor& flat, std::size_t p) const {
  const Shape all = shape(p);
  const std::int64_t begin = entries_[p].begin;
  return flat.slice(begin, begin + all.elements()).reshape(all);
}

Tensor ParameterLayout::member_view(const Tensor& flat, std::size_t p, std::int64_t s) const {
  check<ShapeError>(s >= 0 && s < members_, "layout", "got member {}, wanted one from 0 to {}", s,
                    members_ - 1);
  const Tensor all = view(flat, p);
  return members_ > 1 ? all[s] : all;
}

// On the host, and for a GPU to be moved at once: many small copies would take longer than drawing.
Tensor initial_values(const ParameterLayout& layout, std::span<const std::uint64_t> seeds,
                      DType dtype) {
  check<ShapeError>(std::ssize(seeds) == layout.members(), "initial_values",
                    "got {} seeds, wanted one of each of {} members", seeds.size(),
                    layout.members());
  const Tensor flat = Tensor::zeros({layout.elements()}, dtype);
  for (std::size_t p = 0; p < layout.entries().size(); ++p) {
    const auto& entry = layout.entries()[p];
    for (std::size_t s = 0; s < seeds.size(); ++s) {
      const Tensor home = layout.member_view(flat, p, static_cast<std::int64_t>(s));
      if (entry.stddev == 0)
        fill(home, entry.mean);
      else
        copy(home, drawn(entry, {seeds[s], streams::parameter(p)}, dtype));
    }
  }
  return flat;
}

void copy_member(const ParameterLayout& into_layout, const Tensor& into, std::int64_t t,
                 const ParameterLayout& from_layout, const Tensor& from, std::int64_t s) {
  const auto &to = into_layout.entries(), &source = from_layout.entries();
  bool same = to.size() == source.size();
  for (std::size_t p = 0; same && p < to.size(); ++p)
    same = to[p].member == source[p].member && to[p].scale == source[p].scale;
  check<ShapeError>(same, "copy_member", "got parameters of another net, or another scale");
  for (std::size_t p = 0; p < into_layout.entries().size(); ++p)
    copy(into_layout.member_view(into, p, t), from_layout.member_view(from, p, s));
}

}  // namespace keel

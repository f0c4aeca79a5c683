#include "layout.h"

namespace keel {

void ParameterLayout::push_back(std::int64_t layer, const ParameterSpec& parameter) {
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

Tensor ParameterLayout::view(const Tensor& flat, std::size_t p) const {
  const Entry& entry = entries_[p];
  Shape shape;
  if (members_ > 1) shape.push_back(members_);
  for (int axis = 0; axis < entry.member.rank(); ++axis) shape.push_back(entry.member[axis]);
  return flat.slice(entry.begin, entry.begin + shape.elements()).reshape(shape);
}

Tensor ParameterLayout::member_view(const Tensor& flat, std::size_t p, std::int64_t s) const {
  const Tensor all = view(flat, p);
  return members_ > 1 ? all[s] : all;
}

void copy_member(const ParameterLayout& into_layout, const Tensor& into, std::int64_t t,
                 const ParameterLayout& from_layout, const Tensor& from, std::int64_t s) {
  for (std::size_t p = 0; p < into_layout.entries().size(); ++p)
    copy(into_layout.member_view(into, p, t), from_layout.member_view(from, p, s));
}

}  // namespace keel

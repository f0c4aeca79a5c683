// Shape: up to four sizes, row-major. Rank 0 is a scalar: one element.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "error.h"

namespace keel {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  constexpr Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) {
    check<ShapeError>(sizes.size() <= kMaxRank, "shape", "got {} sizes, wanted at most {}",
                      sizes.size(), kMaxRank);
    for (std::int64_t size : sizes) push_back(size);
  }

  /// Appends an axis.
  void push_back(std::int64_t size) {
    check<ShapeError>(size >= 0, "shape", "got size {}, wanted >= 0", size);
    check<ShapeError>(rank_ < kMaxRank, "shape", "got more than {} sizes", kMaxRank);
    Shape longer = *this;
    longer.sizes_[longer.rank_++] = size;
    // An empty axis counts as one here: the product of any axes is then safe, strides too.
    std::int64_t total = 1;
    for (int i = 0; i < longer.rank_; ++i)
      if (__builtin_mul_overflow(total, std::max<std::int64_t>(longer.sizes_[i], 1), &total))
        fail<ShapeError>("shape", "{} has more elements than 64 bits can count", longer.str());
    *this = longer;
  }

  int rank() const { return rank_; }

  /// Size of axis i; negative i counts from the end.
  std::int64_t operator[](int i) const {
    const int axis = i < 0 ? i + rank_ : i;
    // Not by check(): its arguments, str() too, would be made at every call.
    if (axis < 0 || axis >= rank_) fail<ShapeError>("shape", "{} has no axis {}", str(), i);
    return sizes_[axis];
  }

  std::int64_t elements() const {
    std::int64_t total = 1;
    for (int i = 0; i < rank_; ++i) total *= sizes_[i];
    return total;
  }

  /// Size of the last axis; 1 for a scalar.
  std::int64_t cols() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }

  /// Product of every axis but the last: how many rows of cols() elements there are.
  std::int64_t rows() const {
    std::int64_t total = 1;
    for (int i = 0; i + 1 < rank_; ++i) total *= sizes_[i];
    return total;
  }

  /// Ensemble members: the leading axis of rank 3 and 4; 1 below.
  std::int64_t members() const { return rank_ >= 3 ? sizes_[0] : 1; }

  friend bool operator==(const Shape&, const Shape&) = default;

  std::string str() const {  // "[4096, 768]"
    std::string text = "[";
    for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(sizes_[i]);
    return text + "]";
  }

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};  // axes past rank_ stay 0, so == compares honestly
  int rank_ = 0;
};

}  // namespace keel

template <>
struct fmt::formatter<keel::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const keel::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(shape.str(), context);
  }
};

// Tensor: shared storage + shape + dtype. Row-major, contiguous, at most four axes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dtype.h"
#include "memory.h"
#include "shape.h"

namespace keel {

/// A handle: copies share their elements, as in NumPy or PyTorch; clone() copies them. `const` is
/// of the handle, not of the elements: what a function writes to is a `const Tensor& into`. A
/// Tensor that was moved from, or never filled, throws keel::Error when used.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised elements. Throws ShapeError where 64 bits cannot count their bytes, OutOfMemory
  /// where there is no room for them: so does whatever makes a Tensor.
  static Tensor empty(Shape shape, DType dtype = DType::f32, Device device = {});
  static Tensor full(Shape shape, double value, DType dtype = DType::f32, Device device = {});
  static Tensor zeros(Shape shape, DType dtype = DType::f32, Device device = {}) {
    return full(shape, 0, dtype, device);
  }

  /// Copies host values, in row-major order. Throws ShapeError where their count is not the
  /// shape's.
  template <class T>
  static Tensor from(std::span<const T> values, Shape shape, Device device = {});
  template <class T>
  static Tensor from(const std::vector<T>& values, Shape shape, Device device = {}) {
    return from(std::span<const T>(values), shape, device);
  }

  bool defined() const noexcept { return static_cast<bool>(storage_); }
  const Shape& shape() const { return require().shape_; }
  int rank() const { return shape().rank(); }
  std::int64_t size(int axis) const { return shape()[axis]; }
  std::int64_t elements() const { return shape().elements(); }
  DType dtype() const { return require().dtype_; }
  Device device() const { return require().storage_.device(); }
  std::size_t bytes() const { return elements() * size_of(dtype()); }

  /// First element. Throws ShapeError where T is not the dtype. Dereference on the tensor's device.
  template <class T>
  T* data() const {
    check<ShapeError>(dtype() == dtype_of<T>(), "tensor", "got {} elements, wanted {}",
                      name_of(dtype_), name_of(dtype_of<T>()));
    return reinterpret_cast<T*>(static_cast<std::byte*>(storage_.data()) + offset_);
  }

  /// Slices begin <= i < end of the first axis, sharing storage: [n, d] -> [end - begin, d]. Throws
  /// ShapeError unless 0 <= begin <= end <= n, and of a scalar.
  Tensor slice(std::int64_t begin, std::int64_t end) const;

  /// Slice i of the first axis without that axis, sharing storage: [S, n, d] -> [n, d]. Throws
  /// ShapeError unless 0 <= i < S, and of a scalar.
  Tensor operator[](std::int64_t i) const;

  /// Same elements, another shape of as many. Shares storage. Throws ShapeError where they are not
  /// as many.
  Tensor reshape(Shape shape) const;

  Tensor clone() const;
  Tensor to(Device device) const;  ///< itself where it is there already
  Tensor to(DType dtype) const;    ///< itself where it is that already

  /// The elements on the host, converted to T.
  template <class T>
  std::vector<T> to_vector() const;

  /// The value of a one-element tensor. Throws ShapeError for any other.
  double item() const;

  /// This handle is the only one on its storage: its elements may be overwritten unseen.
  bool sole_owner() const noexcept { return storage_.unique(); }
  bool shares_storage(const Tensor& other) const noexcept { return storage_ == other.storage_; }

 private:
  const Tensor& require() const {
    check(defined(), "tensor", "used after it was moved from, or before it was filled");
    return *this;
  }

  Storage storage_;
  std::size_t offset_ = 0;  // bytes
  Shape shape_;
  DType dtype_ = DType::f32;
};

/// Every element of `into` becomes `value`.
void fill(const Tensor& into, double value);

/// into += x. Throws ShapeError where shapes or dtypes differ, DeviceError where devices do.
void accumulate(const Tensor& into, const Tensor& x);

/// Copies elements, in row-major order whatever the shapes, converting dtype and crossing devices
/// where needed. Throws ShapeError where their numbers differ.
void copy(const Tensor& into, const Tensor& x);

/// Throws ShapeError or DeviceError unless b has a's dtype and lives on a's device.
void check_same_kind(const char* tag, const char* name_a, const Tensor& a, const char* name_b,
                     const Tensor& b);

}  // namespace keel

// Element types: float32 and float64.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace keel {

enum class DType { f32, f64 };

constexpr std::size_t size_of(DType dtype) { return dtype == DType::f32 ? 4 : 8; }
constexpr const char* name_of(DType dtype) { return dtype == DType::f32 ? "float32" : "float64"; }

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "keel tensors hold float or double");
  return std::is_same_v<T, float> ? DType::f32 : DType::f64;
}

/// Calls f(T{}) with T = float or double: the one place where a run-time dtype becomes a type.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  if (dtype == DType::f32) return std::forward<F>(f)(float{});
  return std::forward<F>(f)(double{});
}

}  // namespace keel

// What a row of the table of op cases says, and the sizes and inputs that each is tried at.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../core/random.h"
#include "../keel.h"
#include "oracle.h"

namespace keel::test {

struct OpCase {
  std::string name;
  /// Shapes of the op's inputs for n rows and d columns.
  std::function<std::vector<Shape>(std::int64_t n, std::int64_t d)> inputs;
  std::function<Var(std::span<const Var>)> op;
  std::function<oracle::Array(const oracle::Arrays&)> expected;
  double tolerance;           ///< float32, relative to the largest output (and absolute below 1)
  bool programs_only = true;  ///< no matrix product in it: the same bits under every CPU group
  bool empty_allowed = true;  ///< takes 0 rows
  std::function<void()> bad_call = {};
  std::string complaint = {};  ///< what() of the Error that bad_call throws
};

/// Sizes every case is tried at: width 1, odd, every length of row that a GPU has a group for, of
/// whole runs of sixteen bytes and not, no rows, more rows than a CUDA grid's y axis holds.
struct Size {
  std::int64_t n, d;
};
inline const std::vector<Size>& sizes() {
  static const std::vector<Size> all = {{1, 1},   {3, 1},    {5, 33},   {0, 7},    {53, 64},
                                        {3, 101}, {67, 128}, {4, 131},  {9, 256},  {2, 513},
                                        {3, 768}, {2, 1025}, {2, 2048}, {2, 5001}, {70000, 3},
                                        {2, 300}, {2, 511},  {2, 2052}, {1, 3001}, {1, 5004}};
  return all;
}
/// The sizes small enough for finite differences, and for 32 threads at barriers.
inline bool small(const Size& size) { return size.n * size.d <= 200; }
inline bool many_rows(const Size& size) { return size.n > 1000; }

inline Tensor zeros(Shape shape) { return Tensor::zeros(shape); }

/// Inputs of a case: normal draws, parameters (all but the first input) shifted by 1/2.
inline std::vector<Tensor> draw_inputs(const OpCase& c, const Size& size, DType dtype,
                                       Device device = {}) {
  std::vector<Tensor> tensors;
  for (const Shape& shape : c.inputs(size.n, size.d)) {
    const RandomKey key{.seed = 11, .stream = tensors.size() + 1};
    Tensor t = normal(shape, key, 1, dtype);
    if (!tensors.empty()) accumulate(t, Tensor::full(shape, 0.5, dtype));
    tensors.push_back(t.to(device));
  }
  return tensors;
}

}  // namespace keel::test

// Duals to judge by any of their multipliers.
#pragma once

#include <memory>

#include "../../ntk/tail_dual.h"
#include "naive_tail.h"

namespace keel {

// A dual with made-up units, which need not be a net's intervals: only f over them counts.
struct DualProblem {
  DualProblem(const char* spec, std::uint64_t seed, bool one_kappa) {
    NetOptions options;
    options.dtype = DType::f64;
    options.seed = seed;
    options.sigma_b2 = 0.3;
    tail = tail_sum_of(Net(spec, 2, options)).back().tail;
    rows = std::make_unique<UnitRows>(tail);
    Units first;
    first.activation = tail.activations[0];
    first.origin = tail.affine[0].bias;
    first.scale = tail.set.box ? Vector(rows->lengths().size(), 1) : rows->lengths();
    first.summed = output_sizes(tail.affine[0]);
    first.low.assign(first.size(), -1);
    first.high.assign(first.size(), 1);
    first.centre = draws(first.size(), seed);
    first.kept = tail.kept[0];
    for (std::size_t j = first.size() - first.kept; j < first.size(); ++j)
      first.centre[j] = first.origin[j];  // as centres() has it
    layers.push_back(first);
    for (std::size_t l = 1; l < tail.activations.size(); ++l) {
      Units next;
      next.activation = tail.activations[l];
      next.kept = tail.kept[l];
      next.from = tail.affine[l];
      next.from_sizes = weight_sizes(next.from);
      next.origin = affine_at(next.from, layers[l - 1].centre);
      next.scale.assign(next.origin.size(), 100);
      next.summed.assign(next.origin.size(), 100);
      next.low.assign(next.origin.size(), -1);
      next.high.assign(next.origin.size(), 1);
      next.centre = draws(next.size(), seed + 5);
      layers.push_back(next);
    }
    dual = std::make_unique<TailDual>(*rows, tail.set, layers, layers.size(), one_kappa);
  }
  double at(const Vector& multipliers, Vector& gradient) const {
    return (*dual)(tail.affine.back().weight, tail.affine.back().bias[0], multipliers, 1e-9,
                   gradient)
        .bound;
  }
  Vector multipliers(std::uint64_t seed) const {
    Vector x = draws(dual->multipliers().size, seed);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (dual->multipliers().not_negative[i]) x[i] = std::abs(x[i]);
    return x;
  }
  Tail tail;
  std::unique_ptr<UnitRows> rows;
  std::vector<Units> layers;
  std::unique_ptr<TailDual> dual;
};

}  // namespace keel

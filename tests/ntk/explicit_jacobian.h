// The Jacobian that keel never builds: one backward pass for each sample and output, every
// derivative written out, and products of them by the plainest loops.
#pragma once

#include <cstdint>
#include <vector>

#include "../../kernels/gradient_sink.h"
#include "../../nn/net.h"

namespace explicit_jacobian {

using keel::Net;
using keel::Tensor;
using std::int64_t;

/// One parameter's derivatives of one sample and output, in double.
using Row = std::vector<double>;

struct Explicit {
  int64_t n, outputs;
  std::vector<std::vector<Row>> rows;  // [parameter][sample * outputs + output]

  /// <d f_c(x_i), d f'_d(x'_j)> over parameter p, or over all of them (p < 0).
  double dot(const Explicit& other, int64_t i, int64_t c, int64_t j, int64_t d, int p = -1) const {
    double total = 0;
    for (std::size_t q = 0; q < rows.size(); ++q) {
      if (p >= 0 && q != static_cast<std::size_t>(p)) continue;
      const Row& a = rows[q][static_cast<std::size_t>(i * outputs + c)];
      const Row& b = other.rows[q][static_cast<std::size_t>(j * outputs + d)];
      for (std::size_t e = 0; e < a.size(); ++e) total += a[e] * b[e];
    }
    return total;
  }

  double trace(const Explicit& other, int64_t i, int64_t j, int p = -1) const {
    double total = 0;
    for (int64_t c = 0; c < outputs; ++c) total += dot(other, i, c, j, c, p);
    return total / static_cast<double>(outputs);
  }
};

/// Of a net of one member.
inline Explicit of(const Net& net, const Tensor& x) {
  Explicit jacobian{x.size(0), net.output_width(), {}};
  jacobian.rows.resize(net.layout().entries().size());
  for (int64_t k = 0; k < jacobian.n; ++k)
    for (int64_t c = 0; c < jacobian.outputs; ++c) {
      keel::Tape tape;
      const auto leaves = net.leaves(tape);
      const keel::Var out = net.forward(x.slice(k, k + 1), leaves);
      std::vector<double> unit(static_cast<std::size_t>(jacobian.outputs));
      unit[static_cast<std::size_t>(c)] = 1;
      keel::GradientSink gradients;
      tape.backward(out, Tensor::from(unit, out.shape()).to(out.value().dtype()), gradients);
      for (std::size_t p = 0; p < leaves.size(); ++p)
        jacobian.rows[p].push_back(gradients[leaves[p]].to_vector<double>());
    }
  return jacobian;
}

}  // namespace explicit_jacobian

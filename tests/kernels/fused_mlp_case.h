// Small nets for fused_mlp: their parameters and data, and the whole gradient by the ops, in
// float64.
#pragma once

#include <cmath>
#include <vector>

#include "../../core/random.h"
#include "../../kernels/dense.h"
#include "../../kernels/fused_mlp.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/layer_norm.h"
#include "../../kernels/leaky_relu.h"
#include "../../kernels/mse.h"
#include "../../kernels/relu.h"
#include "../../kernels/sigmoid.h"
#include "../../kernels/silu.h"
#include "../../kernels/softplus.h"
#include "../../kernels/tanh.h"

namespace fused_mlp_case {

using namespace keel;  // NOLINT: a header of tests

struct Hidden {
  int width;
  enum class Norm { none, plain, affine, rms, affine_rms } norm = Norm::none;
  AnyActivation activation{.kind = AnyActivation::Kind::relu};
  float eps = 1e-5f;
  bool centred() const { return norm != Norm::rms && norm != Norm::affine_rms; }
};
using Norm = Hidden::Norm;
using Kind = AnyActivation::Kind;

/// Every activation, those with a number with one that is not the usual.
inline std::vector<AnyActivation> every_activation() {
  return {{Kind::none},
          {Kind::relu},
          {Kind::leaky_relu, Constant(0.3)},
          {Kind::gelu},
          {Kind::gelu_by_tanh},
          {Kind::silu, Constant(1.7)},
          {Kind::tanh},
          {Kind::sigmoid},
          {Kind::softplus},
          {Kind::elu, Constant(0.7)},
          {Kind::elu, Constant(kSeluScale * kSeluAlpha), Constant(kSeluScale)}};
}

/// The op of an activation.
inline Var activated(const Var& x, const AnyActivation& activation) {
  const double number = activation.number.as<double>();
  switch (activation.kind) {
    case Kind::none:
      return x;
    case Kind::relu:
      return relu(x);
    case Kind::leaky_relu:
      return leaky_relu(x, number);
    case Kind::gelu:
      return gelu(x);
    case Kind::gelu_by_tanh:
      return gelu_by_tanh(x);
    case Kind::silu:
      return silu(x, number);
    case Kind::tanh:
      return tanh(x);
    case Kind::sigmoid:
      return sigmoid(x);
    case Kind::softplus:
      return softplus(x);
    case Kind::elu:
      return activation.above.as<double>() == 1 ? elu(x, number) : selu(x);
  }
  return x;
}

struct Case {
  int inputs;
  std::vector<Hidden> hidden;
  int outputs = 1;
  std::int64_t rows = 64, members = 1;
  bool own_x = false, ntk = false;
};

struct Problem {
  Case c;
  FusedMlp net;
  Tensor parameters, x, y;
};

/// A parameter of the standard size, behind those there are.
inline void push(Problem& problem, int layer, int kind, int rows, int cols, double scale,
                 std::vector<float>& flat, double mean, double stddev) {
  const int index = FusedParameter::kKinds * layer + kind;
  auto& parameter = problem.net.parameters[static_cast<std::size_t>(index)];
  parameter = {.flat = static_cast<std::int64_t>(flat.size()),
               .rows = rows,
               .cols = cols,
               .scale = static_cast<float>(scale)};
  const Tensor drawn = normal({problem.c.members * rows * cols},
                              {7, static_cast<std::uint64_t>(index)}, stddev, DType::f32);
  for (const float v : drawn.to_vector<float>()) flat.push_back(static_cast<float>(mean) + v);
  flat.resize((flat.size() + 15) / 16 * 16);
}

inline Problem problem_of(const Case& c) {
  Problem problem{c, {}, {}, {}, {}};
  std::vector<float> flat;
  FusedMlp& net = problem.net;
  net.hidden = static_cast<int>(c.hidden.size());
  int inputs = c.inputs;
  for (int l = 0; l <= net.hidden; ++l) {
    const bool last = l == net.hidden;
    const Hidden layer = last ? Hidden{c.outputs, Norm::none, {}} : c.hidden[l];
    const double spread = std::sqrt(2.0 / inputs);
    net.layers[l] = {.inputs = inputs,
                     .outputs = layer.width,
                     .norm = layer.norm != Norm::none,
                     .centred = layer.centred(),
                     .affine = layer.norm == Norm::affine || layer.norm == Norm::affine_rms,
                     .eps = layer.eps,
                     .activation = layer.activation};
    push(problem, l, FusedParameter::kWeight, layer.width, inputs, c.ntk ? spread : 1, flat, 0,
         c.ntk ? 1 : spread);
    push(problem, l, FusedParameter::kBias, 1, layer.width, c.ntk ? 0.1 : 1, flat, 0,
         c.ntk ? 1 : 0.1);
    if (net.layers[l].affine) {
      push(problem, l, FusedParameter::kGain, 1, layer.width, 1, flat, 1, 0.2);
      if (layer.centred())
        push(problem, l, FusedParameter::kShift, 1, layer.width, 1, flat, 0, 0.2);
    }
    inputs = layer.width;
  }
  problem.parameters = Tensor::from(flat, {static_cast<std::int64_t>(flat.size())});
  const Shape x = c.own_x ? Shape{c.members, c.rows, c.inputs} : Shape{c.rows, c.inputs};
  const Shape y = c.own_x ? Shape{c.members, c.rows, c.outputs} : Shape{c.rows, c.outputs};
  problem.x = normal(x, {1, 1}, 1, DType::f32);
  problem.y = normal(y, {1, 2}, 1, DType::f32);
  return problem;
}

struct Answer {
  std::vector<double> gradients, losses;
};

/// The same by the ops, in float64.
inline Answer oracle(const Problem& problem) {
  const Case& c = problem.c;
  const Tensor parameters = problem.parameters.to(DType::f64);
  const Tensor gradients = Tensor::zeros(parameters.shape(), DType::f64);
  Tape tape;
  GradientSink sink;
  const auto leaf = [&](int layer, int kind) {
    const FusedParameter& p =
        problem.net.parameters[static_cast<std::size_t>(FusedParameter::kKinds * layer + kind)];
    Shape shape;
    if (c.members > 1) shape.push_back(c.members);
    if (kind == FusedParameter::kWeight) shape.push_back(p.rows);
    shape.push_back(p.cols);
    const auto view = [&](const Tensor& flat) {
      return flat.slice(p.flat, p.flat + shape.elements()).reshape(shape);
    };
    const Var var = tape.leaf(view(parameters));
    sink.bind(var, view(gradients));
    return var;
  };
  Var a = problem.x.to(DType::f64);
  for (int l = 0; l <= problem.net.hidden; ++l) {
    const FusedLayer& layer = problem.net.layers[l];
    const DenseScale scale = c.ntk ? DenseScale{std::sqrt(2.0 / layer.inputs), 0.1} : DenseScale{};
    const Var weight = leaf(l, FusedParameter::kWeight), bias = leaf(l, FusedParameter::kBias);
    a = dense(a, weight, bias, scale);
    if (layer.affine && layer.centred) {
      const Var gain = leaf(l, FusedParameter::kGain), shift = leaf(l, FusedParameter::kShift);
      a = layer_norm(a, gain, shift, layer.eps);
    } else if (layer.affine) {
      a = rms_norm(a, leaf(l, FusedParameter::kGain), layer.eps);
    } else if (layer.norm) {
      a = layer.centred ? layer_norm(a, layer.eps) : rms_norm(a, layer.eps);
    }
    a = activated(a, layer.activation);
  }
  const Var loss = mse(a, problem.y.to(DType::f64));
  tape.backward(loss, sink);
  return {gradients.to_vector<double>(), loss.value().to_vector<double>()};
}

}  // namespace fused_mlp_case

// The keystone: tangent kernels of finite nets, from their explicit per-sample factors, tend to the
// kernel of infinite width as hidden layers widen.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "../../core/random.h"
#include "../../nn/net.h"
#include "../../ntk/infinite_kernel.h"
#include "../sanitized.h"

using namespace keel;
using std::int64_t;

namespace {

constexpr int64_t kInputs = 3, kFeatures = 2;

// A small angle, a right one and nearly a straight one, of different lengths.
Tensor inputs() {
  return Tensor::from(std::vector<double>{1, 0.2, 0.1, 2, -1.5, 0.1}, {kInputs, kFeatures});
}

/// SPEC with every W replaced by the width.
std::string at_width(std::string net, int64_t width) {
  for (std::size_t at = net.find('W'); at != std::string::npos; at = net.find('W'))
    net.replace(at, 1, std::to_string(width));
  return net;
}

/// Theta of each member at each pair of inputs: [members][kInputs * kInputs].
std::vector<std::vector<double>> finite(const std::string& spec, Parameterisation parameterisation,
                                        int64_t members) {
  NetOptions options;
  options.parameterisation = parameterisation;
  options.members = members;
  options.seed = 100;
  options.dtype = DType::f64;
  options.sigma_b2 = 0.1;
  const Net net(spec, kFeatures, options);
  Tape tape;
  const Var out = net.forward(inputs(), net.leaves(tape));
  JacobianSink sink;
  tape.backward(out, Tensor::full(out.shape(), 1, DType::f64), sink);

  std::vector<std::vector<double>> theta(static_cast<std::size_t>(members),
                                         std::vector<double>(kInputs * kInputs));
  // <a_i, b_j> of member s, rows of [n, d] or [S, n, d].
  const auto dot = [](const Tensor& a, int64_t s, int64_t i, int64_t j) {
    const int64_t d = a.size(-1), first = a.rank() == 3 ? s * kInputs : 0;
    const double* rows = a.data<double>();
    double sum = 0;
    for (int64_t c = 0; c < d; ++c) sum += rows[(first + i) * d + c] * rows[(first + j) * d + c];
    return sum;
  };
  for (const auto& factor : sink.factors())
    for (int64_t s = 0; s < members; ++s)
      for (int64_t i = 0; i < kInputs; ++i)
        for (int64_t j = 0; j < kInputs; ++j) {
          double& at =
              theta[static_cast<std::size_t>(s)][static_cast<std::size_t>(i * kInputs + j)];
          if (const Outer* outer = std::get_if<Outer>(&factor.block))
            at += outer->scale * outer->scale * dot(outer->delta, s, i, j) *
                  dot(outer->input, s, i, j);
          else if (const Rows* rows = std::get_if<Rows>(&factor.block))
            at += rows->scale * rows->scale * dot(rows->g, s, i, j);
        }
  return theta;
}

std::vector<double> infinite(const std::string& spec, Parameterisation parameterisation) {
  InfiniteKernelOptions options;
  options.parameterisation = parameterisation;
  options.sigma_b2 = 0.1;
  const InfiniteKernel kernel(spec, kFeatures, options);
  const auto points = kernel.points(inputs());
  const Tensor theta = Tensor::empty({kInputs, kInputs}, DType::f64);
  kernel.gram(*points, *points, theta);
  return theta.to_vector<double>();
}

struct Distance {
  double spread = 0;      ///< root mean square over members and pairs, relative to the diagonal
  double worst_mean = 0;  ///< largest |mean over members - limit| in standard errors of that mean
  double worst_bias = 0;  ///< the same relative to the diagonal
};

Distance distance(const std::string& net, int64_t width, Parameterisation parameterisation,
                  int64_t members) {
  const std::string spec = at_width(net, width);
  const auto each = finite(spec, parameterisation, members);
  const std::vector<double> limit = infinite(spec, parameterisation);
  Distance found;
  const double count = static_cast<double>(members);
  for (std::size_t e = 0; e < limit.size(); ++e) {
    const double size =
        std::sqrt(limit[e / kInputs * (kInputs + 1)] * limit[e % kInputs * (kInputs + 1)]);
    double mean = 0, square = 0;
    for (const auto& theta : each) mean += theta[e] / count;
    for (const auto& theta : each) {
      square += (theta[e] - mean) * (theta[e] - mean);
      found.spread += std::pow((theta[e] - limit[e]) / size, 2);
    }
    const double error = std::sqrt(square / (count - 1) / count);
    // Finite width shifts the mean by O(1 / width): 4 / width of the size is not held against it.
    const double shift =
        std::max(0.0, std::abs(mean - limit[e]) - 4 * size / static_cast<double>(width));
    found.worst_mean = std::max(found.worst_mean, shift / error);
    found.worst_bias = std::max(found.worst_bias, std::abs(mean - limit[e]) / size);
  }
  found.spread = std::sqrt(found.spread / (count * static_cast<double>(limit.size())));
  return found;
}

const std::string kWideningNets[] = {
    "dense(W) relu dense(W) relu dense(1)",
    "dense(W) layernorm(affine=0) relu dense(W) relu dense(1)",
    "dense(W) layernorm relu dense(W) layernorm relu dense(1)",
    "dense(W) relu layernorm(affine=0) dense(W) relu dense(1)",
    "dense(W) relu layernorm dense(W) relu layernorm dense(1)",
    "dense(W) gelu dense(W) gelu layernorm dense(1)",
    "dense(W) silu(beta=0.5) dense(W) layernorm silu(beta=4) dense(1)",
    "dense(W) layernorm dense(W) layernorm layernorm gelu dense(1)",
    "dense(W) rmsnorm relu dense(W) relu rmsnorm dense(1)",
    "dense(W) leakyrelu(slope=0.3) dense(W) layernorm leakyrelu layernorm dense(1)",
    "dense(W) prelu(per_unit=1) dense(W) layernorm prelu(slope=0.5, per_unit=1) layernorm dense(1)",
    "dense(W) tanh dense(W) layernorm tanh dense(1)",
    "dense(W) softplus dense(W) layernorm softplus layernorm dense(1)",
    "dense(W) sigmoid dense(W) layernorm sigmoid dense(1)",
    "dense(W) elu(alpha=0.5) dense(W) layernorm elu dense(1)",
    "dense(W) selu layernorm dense(W) selu dense(1)",
    "dense(W) gelu(tanh=1) dense(W) layernorm gelu(tanh=1) layernorm dense(1)",
    "dense(W) residual(relu dense(W)) relu dense(1)",
    "dense(W) residual(layernorm relu dense(W)) residual(layernorm gelu dense(W)) dense(1)",
    "dense(W) residual(layernorm relu dense(W)) layernorm relu dense(1)",
    "dense(W) layernorm residual(dense(W) relu dense(W)) layernorm dense(1)",
    "dense(W) relu residual(dense(W) layernorm) rmsnorm dense(1)",
};

}  // namespace

// Long for the sake of its statistics: a sanitizer sees the same code in the case below.
TEST_CASE("two hidden layers: widening nets tend to the limit like width^-1/2" *
          doctest::skip(test::kSanitized)) {
  for (const std::string& net : kWideningNets)
    for (auto parameterisation : {Parameterisation::ntk, Parameterisation::standard}) {
      CAPTURE(net);
      CAPTURE(static_cast<int>(parameterisation));
      double first = 0, last = 0;
      for (int64_t width : {64, 256}) {
        const Distance d = distance(net, width, parameterisation, 24);
        CAPTURE(width);
        CHECK(d.worst_mean < 4.5);
        (width == 64 ? first : last) = d.spread;
      }
      const double rate = std::log(last / first) / std::log(4.0);
      CAPTURE(rate);
      CHECK(last < 0.15);
      CHECK(rate < -0.3);
      CHECK(rate > -0.75);
    }
}

// One hidden layer may be so wide that what a gain or a bias adds to Theta shows up to a percent.
TEST_CASE("one hidden layer of 8192: the shares of an affine layer norm are right to a percent") {
  for (const std::string& net : std::vector<std::string>{
           "dense(W) layernorm relu dense(1)", "dense(W) relu layernorm dense(1)",
           "dense(W) layernorm gelu dense(1)", "dense(W) layernorm silu(beta=1.702) dense(1)",
           "dense(W) layernorm dense(1)", "dense(W) layernorm layernorm relu dense(1)",
           "dense(W) gelu layernorm layernorm dense(1)", "dense(W) rmsnorm relu dense(1)",
           "dense(W) relu rmsnorm dense(1)", "dense(W) gelu rmsnorm layernorm dense(1)",
           "dense(W) layernorm tanh dense(1)", "dense(W) layernorm sigmoid dense(1)",
           "dense(W) layernorm softplus layernorm dense(1)",
           "dense(W) layernorm elu(alpha=2) layernorm dense(1)", "dense(W) layernorm selu dense(1)",
           "dense(W) layernorm gelu(tanh=1) dense(1)",
           "dense(W) layernorm leakyrelu(slope=0.2) dense(1)",
           "dense(W) prelu(per_unit=1) dense(1)",
           "dense(W) layernorm prelu(slope=0, per_unit=1) layernorm dense(1)"}) {
    CAPTURE(net);
    const Distance d = distance(net, 8192, Parameterisation::ntk, 32);
    CHECK(d.worst_mean < 4.5);
    CHECK(d.worst_bias < 0.012);
  }
}

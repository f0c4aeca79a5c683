#include "frozen.h"

#include <cmath>

#include "batch_norm_fold.h"

namespace keel {
namespace {

// Mean and variance of every column, the latter by n - 1.
struct Statistics {
  std::vector<double> mean, variance;
};

// Relative to the first row, so that of a column that never changes the variance is exactly 0.
Statistics statistics_of(const Tensor& rows) {
  const auto n = static_cast<std::size_t>(rows.size(0)), d = static_cast<std::size_t>(rows.size(1));
  std::vector<double> x = rows.to_vector<double>();
  const std::vector<double> first(x.begin(), x.begin() + rows.size(1));
  Statistics result{std::vector<double>(d), std::vector<double>(d)};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) {
      x[i * d + j] -= first[j];
      result.mean[j] += x[i * d + j] / static_cast<double>(n);
    }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      result.variance[j] += (x[i * d + j] - result.mean[j]) * (x[i * d + j] - result.mean[j]) /
                            static_cast<double>(n - 1);
  for (std::size_t j = 0; j < d; ++j) result.mean[j] += first[j];
  return result;
}

// Parameters of all layers but batchnorms.
Tensor plain_parameters(const Net& net, const Net& plain) {
  const Tensor flat = Tensor::zeros(plain.flat().shape(), plain.flat().dtype());
  const Tensor from = net.flat().to(Device::cpu());
  for (std::size_t i = 0, own = 0; i < net.spec().size(); ++i) {
    if (net.spec()[i].kind == LayerKind::batchnorm) continue;
    const std::size_t p = net.first_parameter(i), q = plain.first_parameter(own);
    for (std::size_t k = 0; p + k < net.first_parameter(i + 1); ++k)
      copy(plain.layout().view(flat, q + k), net.layout().view(from, p + k));
    ++own;
  }
  return flat;
}

// A member, in float64.
Net frozen_member(const Net& net, const Tensor& x, const std::vector<BatchNormFold>& folds) {
  Net plain(without_batch_norms(net.spec()), net.input_width(), net.options());
  const Tensor flat = plain_parameters(net, plain);
  std::vector<Var> constants;
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    constants.push_back(net.layout().view(net.flat(), p));
  for (const BatchNormFold& fold : folds) {
    const LayerSpec& layer = net.spec()[fold.layer];
    const Statistics seen =
        statistics_of(net.forward(x, constants, fold.layer).value().to(Device::cpu()));
    for (std::size_t j = 0; j < seen.mean.size(); ++j)
      check(std::isfinite(seen.mean[j]) && std::isfinite(seen.variance[j]), "frozen",
            "unit {} ahead of the batchnorm at word {} has mean {} and variance {} over the rows, "
            "wanted finite ones",
            j, word_of(net.spec(), fold.layer), seen.mean[j], seen.variance[j]);
    std::vector<double> gain, bias;
    if (layer.affine) {
      gain = net.values(net.first_parameter(fold.layer));
      bias = net.values(net.first_parameter(fold.layer) + 1);
    }
    fold_into(plain, flat, 0, fold,
              batch_norm_map(seen.mean, seen.variance, layer.eps, gain, bias));
  }
  copy(plain.flat(), flat);
  return plain;
}

}  // namespace

Net frozen(const Net& net, const Tensor& x) {
  if (!net.mixes_rows()) return net.clone();
  const bool own = x.rank() == 3 && x.size(0) == net.members();
  check<ShapeError>((x.rank() == 2 || own) && x.size(-2) > 1, "frozen",
                    "got x {}, wanted [n, {}] or [{}, n, {}] of two rows at least", x.shape(),
                    net.input_width(), net.members(), net.input_width());
  const std::vector<BatchNormFold> folds = batch_norm_folds(net.spec());
  NetOptions options = net.options();
  options.dtype = DType::f64;
  Net plain(without_batch_norms(net.spec()), net.input_width(), options);
  for (std::int64_t s = 0; s < net.members(); ++s)  // one by one: all rows' activations are large
    plain.set_member(
        s, frozen_member(net.member(s).to(DType::f64), (own ? x[s] : x).to(DType::f64), folds));
  return plain;
}

}  // namespace keel

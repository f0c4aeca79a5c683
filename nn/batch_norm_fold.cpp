#include "batch_norm_fold.h"

#include <cmath>

namespace keel {
namespace {

bool has_outputs_to_map(const LayerSpec& layer) {
  return layer.kind == LayerKind::dense || (layer.kind == LayerKind::layernorm && layer.affine);
}

// Parameter p times its scale, as in Net::values().
std::vector<long double> values_of(const ParameterLayout& layout, const Tensor& flat, std::size_t p,
                                   std::int64_t member) {
  const std::vector<double> stored = layout.member_view(flat, p, member).to_vector<double>();
  std::vector<long double> values(stored.begin(), stored.end());
  for (long double& value : values) value *= layout.entries()[p].scale;
  return values;
}

void put_back(const ParameterLayout& layout, const Tensor& flat, std::size_t p, std::int64_t member,
              const std::vector<long double>& values) {
  std::vector<double> stored;
  for (long double value : values)
    stored.push_back(static_cast<double>(value / layout.entries()[p].scale));
  const Tensor narrowed = Tensor::from(stored, layout.entries()[p].member).to(flat.dtype());
  for (double value : narrowed.to_vector<double>())
    check(std::isfinite(value), "batch_norm",
          "'{}' with a batchnorm folded into it has {}, wanted finite numbers",
          layout.entries()[p].name, value);
  copy(layout.member_view(flat, p, member), narrowed);
}

}  // namespace

std::vector<BatchNormFold> batch_norm_folds(const Spec& spec) {
  const Spec plain = without_batch_norms(spec);
  std::vector<BatchNormFold> behind, ahead;
  std::size_t next = 0;  // layer of `plain`
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (spec[i].kind != LayerKind::batchnorm) {
      ++next;
      continue;
    }
    if (next > 0 && has_outputs_to_map(plain[next - 1])) {
      behind.push_back({i, next - 1, true});
      continue;
    }
    check(next < plain.size() && plain[next].kind == LayerKind::dense, "batch_norm",
          "batchnorm at word {} of '{}' has no layer to be folded into: wanted a dense layer or a "
          "layernorm with gain and bias before it, or a dense layer behind it",
          word_of(spec, i), spec_text(spec));
    ahead.push_back({i, next, false});
  }
  // The one that is nearest to its layer is folded first.
  behind.insert(behind.end(), ahead.rbegin(), ahead.rend());
  return behind;
}

UnitMap batch_norm_map(const std::vector<double>& mean, const std::vector<double>& variance,
                       double eps, const std::vector<double>& gain,
                       const std::vector<double>& bias) {
  UnitMap map;
  for (std::size_t j = 0; j < mean.size(); ++j) {
    const long double squared = static_cast<long double>(variance[j]) + eps;
    map.gain.push_back(squared > 0 ? (gain.empty() ? 1 : gain[j]) / std::sqrt(squared) : 0);
    map.mean.push_back(mean[j]);
    map.bias.push_back(bias.empty() ? 0 : bias[j]);
  }
  return map;
}

std::int64_t units_of(const Net& net, const BatchNormFold& fold) {
  const Shape& weight = net.layout().entries()[net.first_parameter(fold.into)].member;
  return weight[fold.behind ? 0 : 1];
}

void fold_into(const Net& net, const Tensor& flat, std::int64_t member, const BatchNormFold& fold,
               const UnitMap& map) {
  const std::size_t first = net.first_parameter(fold.into);
  check(net.layout().entries()[first + 1].scale != 0, "batch_norm",
        "'{}' has no effect in the NTK parameterisation with sigma_b2 = 0, wanted > 0 to fold a "
        "batchnorm into it",
        net.layout().entries()[first + 1].name);
  std::vector<long double> weight = values_of(net.layout(), flat, first, member);
  std::vector<long double> bias = values_of(net.layout(), flat, first + 1, member);
  const std::size_t inputs = weight.size() / bias.size();  // 1 for the gain of a layernorm
  for (std::size_t j = 0; j < bias.size(); ++j) {
    if (fold.behind) bias[j] = map.gain[j] * (bias[j] - map.mean[j]) + map.bias[j];
    for (std::size_t i = 0; i < inputs; ++i) {
      long double& w = weight[j * inputs + i];
      if (!fold.behind) bias[j] += w * (map.bias[i] - map.gain[i] * map.mean[i]);
      w *= map.gain[fold.behind ? j : i];
    }
  }
  put_back(net.layout(), flat, first, member, weight);
  put_back(net.layout(), flat, first + 1, member, bias);
}

}  // namespace keel

#include "theory_setting.h"

#include <limits>

#include "statistics.h"

namespace keel {

std::string TheoryNet::spec(std::int64_t width) const {
  const std::string name = this->name, norm = "layernorm(affine=0, eps=0) ";
  const std::string first = name == "ln_first" || name == "ln_every" ? norm : "";
  const std::string second = name == "ln_second" || name == "ln_every" ? norm : "";
  const std::string after = name == "ln_after" ? norm : "";
  return fmt::format("dense({0}) {1}relu {3}dense({0}) {2}relu dense(1)", width, first, second,
                     after);
}

const std::vector<TheoryNet>& theory_nets() {
  static const std::vector<TheoryNet> all = {{"standard", "no LN", false},
                                             {"ln_first", "LN first", true},
                                             {"ln_second", "LN second", true},
                                             {"ln_every", "LN every", true}};
  return all;
}

std::shared_ptr<const InfiniteKernel> paper_kernel(std::string_view spec, std::int64_t inputs,
                                                   Device device) {
  InfiniteKernelOptions options;
  options.first_sigma_w2 = 1;
  options.sigma_b2 = kTheorySigmaB2;
  options.device = device;
  return std::make_shared<InfiniteKernel>(spec, inputs, options);
}

std::shared_ptr<const InfiniteKernel> theory_kernel(const TheoryNet& net, std::int64_t inputs,
                                                    Device device) {
  return paper_kernel(net.spec(128), inputs, device);
}

std::vector<ToyRegression> toy_regressions(Device device) {
  const std::vector<double> x = evenly_spaced(-kToyEnd, kToyEnd, kToyPoints);
  RegressionOptions options;
  options.ridge.relative = kToyRidge;
  options.factor = DType::f64;
  std::vector<ToyRegression> all;
  for (const ToyData& data : toy_data())
    for (const TheoryNet& net : theory_nets()) {
      std::vector<double> y;
      for (double at : x) y.push_back(data.f(at));
      const auto kernel = theory_kernel(net, 1, device);
      ToyRegression one{&data, &net, {}, {}, {}, 0};
      one.regression = std::make_shared<Regression>(kernel, rows_of(x, 1).to(device),
                                                    rows_of(y, 1).to(device), options);
      const Supremum supremum = kernel->supremum();
      one.certificate =
          certify(*one.regression,
                  supremum.bounded ? supremum.value : std::numeric_limits<double>::infinity());
      SearchOptions search;
      search.radii = 401;  // one dimension: two directions
      one.largest = search_largest(prediction_size(*one.regression), 1, rows_of(x, 1), search);
      const double root =
          rmse(one.regression->predict(rows_of(x, 1).to(device)).to_vector<double>(), y);
      one.train_mse = root * root;
      all.push_back(std::move(one));
    }
  return all;
}

}  // namespace keel

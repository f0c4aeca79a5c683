// Numbers of other libraries: tests/data/ntk, written by bench/peers/ntk_reference.py.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../../bench/source_folder.h"
#include "../../core/max_or_nan.h"
#include "../../nn/weights.h"
#include "../../ntk/infinite_kernel.h"
#include "../../ntk/jacobian.h"

using namespace keel;
using nlohmann::json;

namespace {

const std::string kFolder = (source_folder() / "tests/data/ntk/").string();

json read(const std::string& name) {
  std::ifstream file(kFolder + name);
  REQUIRE(file.good());
  return json::parse(file);
}

// Nested lists, row by row.
std::vector<double> flat(const json& array) {
  if (array.is_number()) return {array.get<double>()};
  std::vector<double> values;
  for (const json& part : array)
    for (double value : flat(part)) values.push_back(value);
  return values;
}

Tensor matrix(const json& rows) {
  return Tensor::from(flat(rows), {static_cast<std::int64_t>(rows.size()),
                                   static_cast<std::int64_t>(rows[0].size())});
}

Parameterisation parameterisation(const std::string& name) {
  return name == "ntk" ? Parameterisation::ntk : Parameterisation::standard;
}

// Largest error of an entry (k, l, ...) over sqrt(Theta_kk Theta_ll), traced over outputs: the most
// that its size could be.
double error(const Tensor& got, const json& wanted) {
  const std::vector<double> values = got.to_vector<double>(), reference = flat(wanted);
  REQUIRE(values.size() == reference.size());
  const std::size_t n = wanted.size(), block = reference.size() / (n * n);
  const auto outputs = static_cast<std::size_t>(std::lround(std::sqrt(block)));
  const auto size = [&](std::size_t k) {
    double trace = 0;
    for (std::size_t o = 0; o < outputs; ++o)
      trace += reference[(k * n + k) * block + o * (outputs + 1)];
    return std::sqrt(trace);
  };
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = std::abs(values[i] - reference[i]);
    if (off == 0) continue;  // a block may be zero at an input: 0 over 0
    worst = max_or_nan(worst, off / (size(i / block / n) * size(i / block % n)));
  }
  return worst;
}

void compare_infinite(const json& all, const json& one, const std::string& inputs,
                      const std::string& suffix) {
  const Tensor x = matrix(all[inputs]);
  const std::int64_t n = x.size(0);
  const std::vector<double> rows = x.to_vector<double>();
  for (const KernelOutput output : {KernelOutput::ntk, KernelOutput::nngp}) {
    const InfiniteKernel kernel(one["net"].get<std::string>(), x.size(1),
                                {.parameterisation = parameterisation(one["parameterisation"]),
                                 .sigma_w2 = all["sigma_w2"],
                                 .first_sigma_w2 = one["first_sigma_w2"].get<double>(),
                                 .sigma_b2 = all["sigma_b2"]},
                                output);
    const std::string name = output == KernelOutput::ntk ? "ntk" : "nngp";
    const json& wanted = one[name + suffix];
    const auto points = kernel.points(x);
    const Tensor gram = Tensor::empty({n, n}, DType::f64);
    kernel.gram(*points, *points, gram);
    const std::vector<double> got = gram.to_vector<double>();
    const std::vector<double> diagonal = kernel.diag(*points).to_vector<double>();
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t l = 0; l < n; ++l) {
        CAPTURE(name + suffix);
        CAPTURE(k);
        CAPTURE(l);
        const bool equal = std::equal(&rows[k * 3], &rows[k * 3] + 3, &rows[l * 3]);
        const double value = wanted[k][l];
        // Of equal inputs neural_tangents' angle is the root of a rounding error.
        const double tolerance = equal ? 1e-7 : 1e-9;
        CHECK(std::abs(got[k * n + l] - value) <= tolerance * std::abs(value));
        if (k == l) CHECK(std::abs(diagonal[k] - value) <= tolerance * std::abs(value));
      }
  }
}

}  // namespace

TEST_CASE("infinite-width kernels are those of neural_tangents") {
  const json all = read("infinite.json");
  REQUIRE(all["cases"].size() >= 28);
  for (const json& one : all["cases"]) {
    CAPTURE(one["net"].get<std::string>());
    CAPTURE(one["parameterisation"].get<std::string>());
    compare_infinite(all, one, "inputs", "");
    if (one.contains("ntk_far")) compare_infinite(all, one, "inputs_far", "_far");
  }
}

TEST_CASE("empirical kernels are those of PyTorch") {
  const json all = read("empirical.json");
  REQUIRE(all["cases"].size() >= 6);
  const Tensor x = matrix(all["inputs"]);
  for (const json& one : all["cases"]) {
    CAPTURE(one["net"].get<std::string>());
    for (const std::string name : {"standard", "ntk"}) {
      CAPTURE(name);
      Net net(one["net"].get<std::string>(), x.size(1),
              {.parameterisation = parameterisation(name),
               .dtype = DType::f64,
               .sigma_w2 = all["sigma_w2"],
               .sigma_b2 = all["sigma_b2"]});
      load_weights(net, kFolder + one["name"].get<std::string>() + ".safetensors");
      const std::vector<double> outputs = net.predict(x).to_vector<double>();
      const std::vector<double> wanted = flat(one["outputs"]);
      REQUIRE(outputs.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        CHECK(outputs[i] == doctest::Approx(wanted[i]).epsilon(1e-11));

      const Jacobian jacobian(net, x);
      CHECK(error(jacobian.gram(OutputMode::full), one[name]) < 1e-12);
      if (name == "ntk") continue;
      const auto blocks = jacobian.blocks(jacobian);
      CHECK(blocks.size() == one["blocks"].size());
      for (const Jacobian::Block& block : blocks) {
        CAPTURE(block.name);
        CHECK(error(block.gram, one["blocks"].at(block.name)) < 1e-12);
      }
    }
  }
}

// Files of nets that PyTorch trained with Batch Norms.
#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../../nn/batch_norm_fold.h"
#include "../../nn/safetensors.h"
#include "../../nn/weights.h"
#include "../message_of.h"
#include "temporary.h"

using namespace keel;

namespace {

constexpr const char* kBatchNormNet = "batchnorm dense(2) batchnorm(eps=0.5) relu dense(1)";

// Sequential(BatchNorm1d(2), Linear(2, 2, bias=False), BatchNorm1d(2, eps=0.5), ReLU, Linear(2,
// 1)): f = relu(((x - m0) / s0 * g0 + b0) W - m1) ...
SafeTensors file_of_batch_norms() {
  const auto vector = [](std::vector<float> values) {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  };
  SafeTensors content;
  content.tensors = {{"0.weight", vector({2, 3})},
                     {"0.bias", vector({1, -1})},
                     {"0.running_mean", vector({5, 7})},
                     {"0.running_var", vector({4, 9})},
                     {"1.weight", Tensor::from(std::vector<float>{1, 2, -1, 1}, {2, 2})},
                     {"2.weight", vector({0.5f, -1})},
                     {"2.bias", vector({0.25f, 3})},
                     {"2.running_mean", vector({1, 2})},
                     {"2.running_var", vector({0.5f, 1.75f})},
                     {"4.weight", Tensor::from(std::vector<float>{10, 100}, {1, 2})},
                     {"4.bias", vector({-1})}};
  return content;
}

double by_hand(double x0, double x1) {
  const double u0 = 2 * (x0 - 5) / std::sqrt(4 + 1e-5) + 1;
  const double u1 = 3 * (x1 - 7) / std::sqrt(9 + 1e-5) - 1;
  const double z0 = u0 + 2 * u1, z1 = -u0 + u1;
  const double v0 = 0.5 * (z0 - 1) / std::sqrt(0.5 + 0.5) + 0.25;
  const double v1 = -(z1 - 2) / std::sqrt(1.75 + 0.5) + 3;
  return 10 * std::max(v0, 0.0) + 100 * std::max(v1, 0.0) - 1;
}

void check_by_hand(const Net& net, double tolerance = 1e-14) {
  for (const auto& [x0, x1] :
       {std::pair{0.0, 0.0}, std::pair{8.0, 9.0}, std::pair{-3.0, 4.5}, std::pair{100.0, -30.0}}) {
    const Tensor x = Tensor::from<double>({x0, x1}, {1, 2}).to(net.flat().dtype());
    CHECK(std::abs(net.predict(x).item() - by_hand(x0, x1)) <=
          tolerance * (1 + std::abs(by_hand(x0, x1))));
  }
}

Net plain_net(const char* spec = kBatchNormNet, DType dtype = DType::f64) {
  return Net(without_batch_norms(parse_spec(spec)), 2, {.dtype = dtype});
}

}  // namespace

TEST_CASE("weights: batch norms are folded into the layers beside them, as in evaluation") {
  const Temporary file("batch_norms.safetensors");
  write_safetensors(file.path(), file_of_batch_norms());
  const LoadOptions options{.missing_bias = MissingBias::zero, .spec = parse_spec(kBatchNormNet)};
  Net net = plain_net();
  CHECK(load_weights(net, file.path(), options) == std::vector<std::string>{"1.bias"});
  check_by_hand(net);
  Net single = plain_net(kBatchNormNet, DType::f32);
  load_weights(single, file.path(), options);
  check_by_hand(single, 1e-5);
  Net ntk(without_batch_norms(options.spec), 2,
          {.parameterisation = Parameterisation::ntk, .dtype = DType::f64});
  load_weights(ntk, file.path(), options);
  check_by_hand(ntk);

  // As save_file writes it: with a count of batches, in 64-bit integers, which changes nothing.
  SafeTensors content = file_of_batch_norms();
  content.tensors.emplace_back("0.num_batches_tracked", Tensor::full({}, 17, DType::f64));
  write_safetensors(file.path(), content);
  std::string bytes = file.read();
  const std::size_t at = bytes.find("F64");
  REQUIRE(at != std::string::npos);
  bytes[at] = 'I';
  bytes.replace(8 + *reinterpret_cast<const std::uint64_t*>(bytes.data()), 8,
                std::string("\x11\0\0\0\0\0\0\0", 8));
  file.write(bytes);
  CHECK(read_safetensors(file.path()).find("0.num_batches_tracked")->item() == 17);
  Net counted = plain_net();
  load_weights(counted, file.path(), options);
  check_by_hand(counted);
}

TEST_CASE("weights: a batch norm is not folded into an RMSNorm, which has no bias") {
  // Behind one it goes into the dense layer that follows; before an activation nothing takes it.
  CHECK(batch_norm_folds(parse_spec("dense(2) rmsnorm batchnorm dense(1)"))[0].into == 2);
  CHECK(message_of([] { batch_norm_folds(parse_spec("dense(2) rmsnorm batchnorm relu dense(1)")); })
            .starts_with("batch_norm: batchnorm at word 3 of 'dense(2) rmsnorm batchnorm relu "
                         "dense(1)' has no layer to be folded into"));
}

TEST_CASE("weights: batch norms by modules' names, one of them called twice") {
  const Temporary file("named_batch_norms.safetensors");
  SafeTensors content = file_of_batch_norms();
  for (auto& [name, tensor] : content.tensors)
    name = (name[0] == '0'   ? "input_bn"
            : name[0] == '1' ? "fc"
            : name[0] == '2' ? "bn"
                             : "head") +
           name.substr(1);
  write_safetensors(file.path(), content);
  Net net = plain_net();
  load_weights(net, file.path(),
               {MissingBias::zero, {"input_bn", "fc", "bn", "head"}, parse_spec(kBatchNormNet)});
  check_by_hand(net);
  CHECK(message_of([&] {
          load_weights(net, file.path(),
                       {MissingBias::zero, {"fc", "head"}, parse_spec(kBatchNormNet)});
        }).find("got 2 modules 'fc head', wanted one for each of the 4 layers") !=
        std::string::npos);

  // fc and bn are shared by two layers; what is folded into one's weights is not into the other's.
  const char* spec = "dense(2) batchnorm(eps=0.5) relu dense(2) batchnorm(eps=0.5) relu dense(1)";
  std::erase_if(content.tensors, [](const auto& one) { return one.first.starts_with("input"); });
  write_safetensors(file.path(), content);
  Net twice = plain_net(spec);
  load_weights(twice, file.path(),
               {MissingBias::zero, {"fc", "bn", "fc", "bn", "head"}, parse_spec(spec)});
  const auto layer = [](double& x0, double& x1) {
    const double z0 = x0 + 2 * x1, z1 = -x0 + x1;
    x0 = std::max(0.5 * (z0 - 1) + 0.25, 0.0);
    x1 = std::max(-(z1 - 2) / 1.5 + 3, 0.0);
  };
  double x0 = 0.3, x1 = -4;
  const Tensor x = Tensor::from<double>({x0, x1}, {1, 2});
  layer(x0, x1);
  layer(x0, x1);
  CHECK(twice.predict(x).item() == doctest::Approx(10 * x0 + 100 * x1 - 1).epsilon(1e-14));
}

TEST_CASE("weights: a batch norm of another kind, or of none, is refused, the net unchanged") {
  const Temporary file("other_batch_norms.safetensors");
  const std::string head = "weights: " + file.path() + ": ";
  const auto message = [&](const SafeTensors& content, const char* spec = kBatchNormNet) {
    write_safetensors(file.path(), content);
    Net net = plain_net(spec);
    const std::vector<double> before = net.flat().to_vector<double>();
    const std::string text = message_of([&] {
      load_weights(net, file.path(), {MissingBias::zero, {}, parse_spec(spec)});
    });
    CHECK(net.flat().to_vector<double>() == before);
    return text;
  };
  const auto without = [](const std::string& name) {
    SafeTensors content = file_of_batch_norms();
    std::erase_if(content.tensors, [&](const auto& one) { return one.first == name; });
    return content;
  };
  const auto with = [&](const std::string& name, std::vector<float> values) {
    SafeTensors content = without(name);
    const auto size = static_cast<std::int64_t>(values.size());
    content.tensors.emplace_back(name, Tensor::from(values, {size}));
    return content;
  };
  const std::string text = message(without("2.running_mean"));
  CHECK(text.starts_with(head + "'2.running_mean' [2] is missing; not used so far: '0.bias', "));
  CHECK(
      text.ends_with("'2.weight'; without running statistics it depends on its batch, or is "
                     "another normalisation"));
  CHECK(message(without("2.running_var")).find("'2.running_var' [2] is missing") !=
        std::string::npos);
  CHECK(message(without("2.weight"))
            .starts_with(head + "'2.weight' [2] is missing; not used so far: '0.bias', "));
  CHECK(message(without("2.weight"))
            .ends_with("; a BatchNorm1d with affine=False is the word 'batchnorm(affine=0)'"));
  CHECK(message(without("2.bias")).starts_with(head + "'2.bias' [2] is missing; not used so far"));
  CHECK(message(without("2.bias")).find("kernel") == std::string::npos);
  CHECK(message(with("2.running_mean", {1, 2, 3})) ==
        head + "'2.running_mean' has shape [3], wanted [2]");
  CHECK(message(with("0.running_mean", {1})) ==
        head + "'0.running_mean' has shape [1], wanted [2]");
  CHECK(message(with("2.running_var", {1, -0.25f})) ==
        head +
            "element 1 of '2.running_var' is -0.25, wanted a variance which is above 0 with eps "
            "0.5");
  CHECK(message(with("2.running_var", {1, std::nanf("")}))
            .find("element 1 of '2.running_var' is nan") != std::string::npos);
  CHECK(message(with("0.running_var", {1, 0}),
                "batchnorm(eps=0) dense(2) batchnorm(eps=0.5) relu dense(1)")
            .ends_with("is 0, wanted a variance which is above 0 with eps 0"));
  CHECK(message(with("2.running_mean", {1, -2e6f})) ==
        head +
            "element 1 of '2.running_mean' is -2000000, 1.33e+06 deviations from 0, wanted at most "
            "1000000: folded into weights of 53 bits it would be another function");
  // The SPEC says another kind, or leaves the file's gain and bias over.
  CHECK(
      message(file_of_batch_norms(), "identity dense(2) layernorm relu dense(1)")
          .ends_with("'2.running_var' too, which 'identity dense(2) layernorm relu dense(1)' does "
                     "not have; running statistics are a Batch Norm's, the word 'batchnorm'"));
  CHECK(message(file_of_batch_norms(),
                "batchnorm(affine=0) dense(2) batchnorm(eps=0.5) relu dense(1)")
            .find("got '0.bias', '0.weight' too") != std::string::npos);
  CHECK(message(file_of_batch_norms(), "batchnorm dense(2) relu batchnorm relu dense(1)")
            .starts_with("batch_norm: batchnorm at word 4 of "));
  // 1e308 in a file of float64 is finite until it is folded.
  SafeTensors large = without("2.weight");
  large.tensors.emplace_back("2.weight", Tensor::full({2}, 1e308, DType::f64));
  for (auto& [name, tensor] : large.tensors)
    if (name == "1.weight") tensor = Tensor::full({2, 2}, 1e10);
  CHECK(message(large) ==
        "batch_norm: '1.weight' with a batchnorm folded into it has inf, wanted finite numbers");
  // A net that has the batchnorm itself is none to load into.
  write_safetensors(file.path(), file_of_batch_norms());
  Net mixed(kBatchNormNet, 2, {.dtype = DType::f64});
  CHECK(message_of([&] { load_weights(mixed, file.path()); }) ==
        fmt::format("weights: got a net of '{}' for weights of '{}', wanted one of 'identity "
                    "dense(2) identity relu dense(1)'",
                    kBatchNormNet, kBatchNormNet));
}

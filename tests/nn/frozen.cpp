// Nets with Batch Norms: trained on whole batches, then frozen, or read from PyTorch's files.
#include "../../nn/frozen.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../../kernels/mse.h"
#include "../../nn/safetensors.h"
#include "../../nn/trainer.h"
#include "../../nn/weights.h"
#include "../bits.h"
#include "../difference.h"
#include "../gpu.h"
#include "../message_of.h"
#include "small_training.h"
#include "temporary.h"

using namespace keel;

namespace {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;

// Every place a batchnorm may have: first, behind dense, behind an activation, two together there,
// behind a layernorm with gain and bias, and one without, which leaves the dense layer to take it.
constexpr const char* kEverywhere =
    "batchnorm dense(4) batchnorm batchnorm(affine=0) relu batchnorm batchnorm(eps=0.1) dense(3) "
    "layernorm batchnorm gelu dense(5) layernorm(affine=0) batchnorm dense(2)";

// A residual's words take in their own, and none that is of what passes them by.
constexpr const char* kResidual =
    "dense(4) batchnorm residual(batchnorm dense(3) batchnorm relu batchnorm dense(4) batchnorm) "
    "relu dense(2)";

// Its gains and biases are drawn, too.
Net drawn(const char* spec, std::int64_t inputs, std::uint64_t seed,
          Parameterisation parameterisation = Parameterisation::standard) {
  Net net(spec, inputs, {.parameterisation = parameterisation, .seed = seed, .dtype = DType::f64});
  copy(net.flat(), normal(net.flat().shape(), {seed, 77}, 0.7, DType::f64));
  return net;
}

Matrix rows_of(const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  Matrix rows;
  for (auto at = values.begin(); at != values.end(); at += x.size(1))
    rows.emplace_back(at, at + x.size(1));
  return rows;
}

// What a batchnorm has in evaluation.
struct Kept {
  Row mean, variance;
};

Kept statistics_of(const Matrix& rows, double divisor) {
  const std::size_t units = rows[0].size();
  Kept result{Row(units), Row(units)};
  for (std::size_t j = 0; j < units; ++j) {
    for (const Row& row : rows) result.mean[j] += row[j] / static_cast<double>(rows.size());
    for (const Row& row : rows)
      result.variance[j] += (row[j] - result.mean[j]) * (row[j] - result.mean[j]) / divisor;
  }
  return result;
}

double activated(LayerKind kind, double z) {
  return kind == LayerKind::relu ? std::max(z, 0.0) : z / 2 * (1 + std::erf(z / std::sqrt(2.0)));
}

// One row through any layer but a batchnorm.
Row textbook_layer(const LayerSpec& layer, const Row& weight, const Row& bias, const Row& row) {
  Row out;
  if (layer.kind == LayerKind::dense) {
    for (std::size_t o = 0; o < bias.size(); ++o) {
      out.push_back(bias[o]);
      for (std::size_t j = 0; j < row.size(); ++j) out[o] += weight[o * row.size() + j] * row[j];
    }
    return out;
  }
  double mean = 0, variance = 0;
  for (double value : row) mean += value / static_cast<double>(row.size());
  for (double value : row)
    variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
  for (std::size_t j = 0; j < row.size(); ++j)
    out.push_back(layer.kind != LayerKind::layernorm
                      ? activated(layer.kind, row[j])
                      : (layer.affine ? weight[j] : 1) * (row[j] - mean) /
                                std::sqrt(variance + layer.eps) +
                            (layer.affine ? bias[j] : 0));
  return out;
}

// The net word by word. In training each batchnorm has the rows' own statistics, and `kept` gathers
// what evaluation takes: the variance by n - 1.
Matrix textbook(const Net& net, Matrix rows, std::vector<Kept>& kept, bool training) {
  std::size_t seen = 0;
  Matrix passing;
  for (std::size_t i = 0; i < net.spec().size(); ++i) {
    const LayerSpec& layer = net.spec()[i];
    if (layer.kind == LayerKind::residual) passing = rows;
    for (std::size_t r = 0; layer.kind == LayerKind::add && r < rows.size(); ++r)
      for (std::size_t j = 0; j < rows[r].size(); ++j) rows[r][j] += passing[r][j];
    if (joins(layer.kind)) continue;
    const std::size_t p = net.first_parameter(i);
    Row weight, bias;
    if (net.first_parameter(i + 1) > p) {
      weight = net.values(p);
      bias = net.values(p + 1);
    }
    if (layer.kind != LayerKind::batchnorm) {
      for (Row& row : rows) row = textbook_layer(layer, weight, bias, row);
      continue;
    }
    const double n = static_cast<double>(rows.size());
    if (training) kept.push_back(statistics_of(rows, n - 1));
    const Kept by = training ? statistics_of(rows, n) : kept[seen];
    ++seen;
    for (Row& row : rows)
      for (std::size_t j = 0; j < row.size(); ++j)
        row[j] = (layer.affine ? weight[j] : 1) * (row[j] - by.mean[j]) /
                     std::sqrt(by.variance[j] + layer.eps) +
                 (layer.affine ? bias[j] : 0);
  }
  return rows;
}

void check_near(const Tensor& got, const Matrix& wanted, double tolerance = 1e-12) {
  const Matrix rows = rows_of(got);
  REQUIRE(rows.size() == wanted.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t k = 0; k < rows[i].size(); ++k)
      CHECK(std::abs(rows[i][k] - wanted[i][k]) <= tolerance * (1 + std::abs(wanted[i][k])));
}

}  // namespace

TEST_CASE("batch norm: a net in training, and frozen, is the textbook's") {
  for (const auto& [spec, parameterisation] : {std::pair{kEverywhere, Parameterisation::standard},
                                               {kEverywhere, Parameterisation::ntk},
                                               {kResidual, Parameterisation::standard},
                                               {kResidual, Parameterisation::ntk}}) {
    const Net net = drawn(spec, 3, 5, parameterisation);
    const Tensor x = normal({40, 3}, {1, 0}, 2, DType::f64);
    std::vector<Kept> kept;
    const Matrix trained = textbook(net, rows_of(x), kept, true);
    std::vector<Var> constants;
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      constants.push_back(net.layout().view(net.flat(), p));
    check_near(net.forward(x, constants).value(), trained);

    const Net plain = frozen(net, x);
    CHECK(spec_text(plain.spec()) == spec_text(without_batch_norms(net.spec())));
    CHECK(!plain.mixes_rows());
    const Tensor far = normal({7, 3}, {2, 0}, 50, DType::f64);
    check_near(plain.predict(far), textbook(net, rows_of(far), kept, false));
    // A row by itself, and among others.
    check_near(plain.predict(far.slice(2, 3)), {textbook(net, rows_of(far), kept, false)[2]});
  }
}

TEST_CASE("batch norm: every member is frozen by its own statistics") {
  const char* spec = "batchnorm dense(4) batchnorm relu batchnorm dense(2)";
  Net all(spec, 3, {.members = 3, .seed = 8, .dtype = DType::f64});
  for (std::int64_t s = 0; s < 3; ++s)
    all.set_member(s, drawn(spec, 3, 20 + static_cast<std::uint64_t>(s)));
  const Tensor shared = normal({30, 3}, {1, 0}, 1, DType::f64);
  const Tensor own = normal({3, 30, 3}, {2, 0}, 1, DType::f64);
  for (const Tensor& x : {shared, own}) {
    const Net plain = frozen(all, x);
    CHECK(plain.options().seeds == all.options().seeds);
    for (std::int64_t s = 0; s < 3; ++s) {
      const Net alone = frozen(all.member(s), x.rank() == 3 ? x[s] : x);
      check_near(plain.member(s).predict(shared), rows_of(alone.predict(shared)));
    }
  }
  const Net without("dense(4) relu dense(2)", 3, {.members = 3, .seed = 8, .dtype = DType::f64});
  CHECK(same_bits(frozen(without, shared).flat(), without.flat()));
}

TEST_CASE("batch norm: frozen, a net of float32 is what it was in training, far from 0 too") {
  // Columns whose mean is millions of deviations from 0, that never change (0.3 and its sums are
  // no float32), and an inner unit that is always 0.
  const std::int64_t n = 50;
  const std::vector<double> z = normal({n, 1}, {1, 0}, 1, DType::f64).to_vector<double>();
  std::vector<double> values;
  for (double value : z)
    for (double at : {1e6 + 5 * std::round(4 * value), 0.3, value, 2e4}) values.push_back(at);
  const Tensor x = Tensor::from(values, {n, 4}).to(DType::f32);
  for (const char* spec : {"batchnorm(eps=0) dense(3) relu batchnorm(eps=0) dense(2)",
                           "batchnorm dense(3) relu batchnorm(eps=1e-30) dense(2)"}) {
    CAPTURE(spec);
    Net net(spec, 4, {.members = 2, .seed = 3});
    REQUIRE(net.layout().entries()[3].name == "1.bias");  // of dense(3)
    for (std::int64_t s = 0; s < 2; ++s)
      fill(net.layout().member_view(net.flat(), 3, s).slice(1, 2), -1e4);
    std::vector<Var> constants;
    for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
      constants.push_back(net.layout().view(net.flat(), p));
    const Tensor training = net.forward(x, constants).value();
    const Net plain = frozen(net, x);
    CHECK(plain.flat().dtype() == DType::f64);
    // Rows are not enough to tell n - 1 from n apart.
    for (std::int64_t s = 0; s < 2; ++s)
      check_near(plain.predict(x.to(DType::f64))[s], rows_of(training[s]), 0.05);
    // Where eps is 0, what never changes takes no part.
    if (net.spec()[0].eps == 0)
      for (double weight : plain.flat().to_vector<double>()) CHECK(std::abs(weight) < 1e6);
  }
}

TEST_CASE("batch norm: frozen on a GPU as on the CPU") {
  if (!test::gpu_here("batch norm: frozen on a GPU")) return;
  Net net("batchnorm dense(5) batchnorm relu dense(2)", 3, {.members = 3, .seed = 8});
  NetOptions options = net.options();
  options.device = Device::cuda();
  Net there(net.spec(), 3, options);
  copy(there.flat(), net.flat());
  const Tensor shared = normal({30, 3}, {1, 0}), own = normal({3, 30, 3}, {2, 0});
  for (const Tensor& x : {shared, own}) {
    const Net plain = frozen(net, x), plain_there = frozen(there, x.to(Device::cuda()));
    CHECK(plain_there.flat().device() == Device::cuda());
    CHECK(test::largest_difference(plain_there.flat().to(Device::cpu()), plain.flat()) < 1e-11);
  }
}

TEST_CASE("batch norm: a step of training takes all rows at once, however many") {
  using small_training::some_data;
  const small_training::Data data = some_data(1500);  // more than a block of the CPU's cache
  Net net("dense(33) batchnorm relu dense(17) batchnorm gelu dense(1)", 2);
  std::vector<Var> constants;
  for (std::size_t p = 0; p < net.layout().entries().size(); ++p)
    constants.push_back(net.layout().view(net.flat().clone(), p));
  const double before = mse(net.forward(data.x, constants), data.y).value().item();
  const TrainReport report =
      train(net, data.x, data.y, {.epochs = 60, .optimiser = AdamOptions{1e-2}});
  const std::vector<double> losses = report.losses.to_vector<double>();
  CHECK(losses[0] == before);
  CHECK(losses.back() < 0.1 * before);
  // All of x at once is what it was trained on: frozen, it does as well.
  const double after =
      mse(frozen(net, data.x).predict(data.x.to(DType::f64)), data.y.to(DType::f64)).value().item();
  CHECK(after < 1.2 * losses.back());

  Net small("dense(33) batchnorm relu dense(1)", 2, {.members = 2});
  const TrainReport batches =
      train(small, data.x, data.y, {.epochs = 20, .batch = 64, .optimiser = AdamOptions{1e-2}});
  const Tensor fitted = frozen(small, data.x).predict(data.x.to(DType::f64));
  for (std::int64_t s = 0; s < 2; ++s)
    CHECK(mse(fitted[s], data.y.to(DType::f64)).value().item() <
          0.2 * batches.losses.to_vector<double>()[20 * s]);
}

TEST_CASE("batch norm: what needs rows apart refuses a net that is not frozen") {
  const Net net("dense(4) batchnorm relu dense(1)", 3);
  const Tensor x = normal({5, 3}, {1, 0});
  const Temporary file("mixed.safetensors");
  const std::string wanted =
      ": got 'dense(4) batchnorm relu dense(1)', wanted a net of one row at a time: in training a "
      "batchnorm takes statistics of all rows (frozen() makes a net that keeps them)";
  CHECK(message_of([&] { net.predict(x); }) == "predict" + wanted);
  CHECK(message_of([&] { save_weights(net, file.path()); }) == "weights" + wanted);
  CHECK(file.read().empty());
  Net trained = net.clone();
  for (const std::int64_t batch : {1, 2, 4})
    CHECK(message_of([&] {
            train(trained, x, Tensor::zeros({5, 1}), {.epochs = 1, .batch = batch});
          })
              .starts_with(fmt::format("train: got steps of {} of 5 rows, so that one has a single "
                                       "row: wanted two or more in every one, as 'dense(4) batch",
                                       batch)));
  CHECK(same_bits(trained.flat(), net.flat()));
  train(trained, x, Tensor::zeros({5, 1}), {.epochs = 1, .batch = 3});
  CHECK(message_of([&] { frozen(net, x.slice(0, 1)); }) ==
        "frozen: got x [1, 3], wanted [n, 3] or [1, n, 3] of two rows at least");
  CHECK(message_of([&] {
          frozen(net, normal({2, 5, 3}, {1, 0}));
        }) == "frozen: got x [2, 5, 3], wanted [n, 3] or [1, n, 3] of two rows at least");
  CHECK(message_of([&] {
          frozen(drawn("batchnorm dense(1)", 1, 1), normal({5, 1}, {1, 0}, 1e200, DType::f64));
        }).starts_with("frozen: unit 0 ahead of the batchnorm at word 1 has mean "));
  CHECK(
      message_of([&] { frozen(Net("dense(4) relu batchnorm relu dense(1)", 3), x); }) ==
      "batch_norm: batchnorm at word 3 of 'dense(4) relu batchnorm relu dense(1)' has no layer to "
      "be folded into: wanted a dense layer or a layernorm with gain and bias before it, or a "
      "dense layer behind it");
  NetOptions unbiased;
  unbiased.parameterisation = Parameterisation::ntk;
  unbiased.sigma_b2 = 0;
  CHECK(message_of([&] { frozen(Net("dense(4) batchnorm relu dense(1)", 3, unbiased), x); }) ==
        "batch_norm: '0.bias' has no effect in the NTK parameterisation with sigma_b2 = 0, "
        "wanted > 0 to fold a batchnorm into it");
  Net large("dense(4) batchnorm relu dense(1)", 3, {.dtype = DType::f64});
  copy(large.flat(), Tensor::full(large.flat().shape(), 1e200, DType::f64));
  CHECK(message_of([&] {
          frozen(large, normal({5, 3}, {1, 0}, 1e-200, DType::f64));
        }) ==
        "batch_norm: '0.weight' with a batchnorm folded into it has inf, wanted finite numbers");
}

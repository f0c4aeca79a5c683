#include "../../nn/fused_gradient.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../../core/random.h"
#include "../../kernels/fused_mlp_block.h"
#include "../../kernels/fused_mlp_sum.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/mse.h"
#include "../../nn/train_step.h"
#include "../bits.h"
#include "../gpu.h"
#include "../message_of.h"

using namespace keel;

namespace {

constexpr const char *kPaper = "dense(128) layernorm relu dense(128) layernorm relu dense(1)",
                     *kCurved = "dense(128) rmsnorm gelu dense(128) silu dense(1)";

struct Answer {
  Tensor gradients;
  std::vector<double> losses;
};

Answer op_by_op(const Net& net, const Tensor& x, const Tensor& y) {
  const Tensor gradients = Tensor::zeros(net.flat().shape(), net.flat().dtype(), x.device());
  Tape tape;
  GradientSink sink;
  const std::vector<Var> leaves = net.leaves(tape);
  for (std::size_t p = 0; p < leaves.size(); ++p)
    sink.bind(leaves[p], net.layout().view(gradients, p));
  const Var loss = mse(net.forward(x, leaves), y);
  tape.backward(loss, sink);
  return {gradients, loss.value().to_vector<double>()};
}

/// Largest difference, relative to the largest entry or to the loss.
double apart(const Answer& a, const Answer& b) {
  const auto got = a.gradients.to_vector<double>(), wanted = b.gradients.to_vector<double>();
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    worst = max_or_nan(worst, std::abs(got[i] - wanted[i]));
  }
  worst /= largest;
  for (std::size_t s = 0; s < a.losses.size(); ++s)
    worst = max_or_nan(worst, std::abs(a.losses[s] / b.losses[s] - 1));
  return worst;
}

template <class Block>
void run_block(const FusedTask& task, int64_t number) {
  std::vector<Quad> shared(FusedShared::kMost / 4);
  std::vector<typename Block::Thread> threads(Block::kThreads);
  for (int id = 0; id < Block::kThreads; ++id) threads[static_cast<std::size_t>(id)].id = id;
  Block(task, number, shared[0].v).run([&](auto phase) {
    for (auto& thread : threads) phase(thread);
  });
}

/// What the GPU would do with the description of a net whose wide weights are one matrix at most.
Answer thread_after_thread(const Net& net, const Tensor& x, const Tensor& y) {
  const FusedMlp description = *fused_description(net);
  FusedTask task = FusedTask::plan(description, net.members(), x.size(-2), 32);
  REQUIRE(task.keep);
  std::vector<Quad> workspace(
      static_cast<std::size_t>(FusedTask::workspace(description, net.members(), x.size(-2)) / 4));
  const Tensor gradients = Tensor::zeros(net.flat().shape()),
               losses = Tensor::zeros({net.members()});
  task.use(workspace[0].v);
  task.parameters = net.flat().data<float>();
  task.x = x.data<float>();
  task.y = y.data<float>();
  task.gradients = gradients.data<float>();
  task.losses = losses.data<float>();
  for (int64_t slot = 0; slot < task.slots(); ++slot)
    description.plain() ? run_block<FusedBlock<32, true, true>>(task, slot)
                        : run_block<FusedBlock<32, true, false>>(task, slot);
  for (int64_t b = 0; b < FusedSum::blocks(task); ++b) run_block<FusedSum>(task, b);
  return {gradients, losses.to_vector<double>()};
}

bool described(const char* spec, std::int64_t inputs = 9, NetOptions options = {}) {
  return fused_description(Net(spec, inputs, std::move(options))).has_value();
}

}  // namespace

TEST_CASE("fused gradient: which nets it takes") {
  CHECK(described(kPaper));
  CHECK(described("dense(1) dense(1)"));
  CHECK(described("dense(100) layernorm(affine=0, eps=0) dense(7) relu dense(16)", 128));
  CHECK(described("dense(64) relu dense(64) relu dense(64) relu dense(64) relu dense(1)"));
  CHECK(!described("dense(1)"));
  CHECK(!described("dense(129) relu dense(1)"));
  CHECK(!described("dense(128) relu dense(17)"));
  CHECK(!described("dense(128) relu dense(1)", 129));
  CHECK(described("dense(128) rmsnorm relu dense(1)"));
  CHECK(described("dense(128) rmsnorm(affine=0) dense(1)"));
  for (const char* word :
       {"gelu", "gelu(tanh=1)", "silu", "silu(beta=2)", "tanh", "sigmoid", "softplus", "elu",
        "elu(alpha=0.5)", "selu", "leakyrelu", "leakyrelu(slope=0.3)"}) {
    CAPTURE(word);
    CHECK(described(fmt::format("dense(128) {} dense(1)", word).c_str()));
    CHECK(described(
        fmt::format("dense(9) layernorm {0} dense(9) rmsnorm {0} dense(1)", word).c_str()));
  }
  CHECK(!described("dense(128) prelu dense(1)"));  // its slope is trained
  CHECK(!described("dense(128) batchnorm relu dense(1)"));
  CHECK(!described("dense(128) relu layernorm dense(1)"));
  CHECK(!described("dense(128) relu tanh dense(1)"));
  CHECK(!described("dense(128) residual(dense(128) relu) dense(1)"));
  CHECK(!described("dense(128) relu dense(1)", 9, {.dtype = DType::f64}));
  CHECK(
      !described("dense(9) relu dense(9) relu dense(9) relu dense(9) relu dense(9) relu dense(1)"));
}

TEST_CASE("fused gradient: a net's description is that of its layers and its layout") {
  const Tensor x = normal({70, 9}, {1, 1}, 1, DType::f32),
               y = normal({70, 2}, {1, 2}, 1, DType::f32);
  for (const char* spec :
       {"dense(33) layernorm relu dense(128) relu dense(2)",
        "dense(20) layernorm(affine=0, eps=0.1) dense(2)",
        "dense(20) rmsnorm(eps=0.1) selu dense(33) gelu dense(2)",
        "dense(20) rmsnorm(affine=0) elu(alpha=0.3) dense(33) gelu(tanh=1) dense(2)",
        "dense(20) layernorm silu(beta=3) dense(33) silu dense(2)",
        "dense(20) tanh dense(33) layernorm sigmoid dense(2)",
        "dense(20) softplus dense(33) leakyrelu(slope=0.3) dense(2)"}) {
    CAPTURE(spec);
    for (const auto parameterisation : {Parameterisation::standard, Parameterisation::ntk})
      for (const std::int64_t members : {1, 3}) {
        const Net net(spec, 9,
                      {.parameterisation = parameterisation,
                       .members = members,
                       .first_sigma_w2 = 1.3,
                       .sigma_b2 = 0.2});
        CHECK(apart(thread_after_thread(net, x, y), op_by_op(net, x, y)) < 1e-5);
      }
  }
}

TEST_CASE("fused gradient: what does not fit is refused in one line") {
  const Net net(kPaper, 9), other("dense(128) prelu dense(1)", 9);
  const Tensor gradients = Tensor::zeros(net.flat().shape());
  CHECK(!FusedGradient::applies(net));  // on the CPU
  FusedGradient gradient(net, gradients, 50);
  const auto message = [&](const Tensor& x, const Tensor& y) {
    return message_of([&] { gradient.run(x, y); });
  };
  CHECK(message(Tensor::zeros({51, 9}), Tensor::zeros({51, 1})) ==
        "fused_gradient: got x [51, 9] and y [51, 1], wanted 1 to 50 rows of 9 and of 1 for 1 "
        "members");
  CHECK(message(Tensor::zeros({50, 9}), Tensor::zeros({49, 1})).starts_with("fused_gradient: got"));
  CHECK(message(Tensor::zeros({50, 9}), Tensor::zeros({50, 1})).starts_with("fused_mlp: got cpu"));
  CHECK_THROWS_AS(gradient.run(Tensor::zeros({50, 9}), Tensor::zeros({50, 1})), DeviceError);
  CHECK(
      message_of([&] { FusedGradient(other, Tensor::zeros(other.flat().shape()), 9); }) ==
      "fused_gradient: got 'dense(128) prelu dense(1)' of 9 inputs in float32, wanted 'dense "
      "[layernorm | rmsnorm] [an activation but prelu] ... dense' of widths up to 128 in float32");
}

TEST_CASE("fused gradient: CUDA agrees with the ops, and with itself to the bit") {
  if (!test::gpu_here("fused gradient: CUDA agrees with the ops, and with itself to the bit"))
    return;
  const Device gpu = Device::cuda();
  const bool emulated = test::gpu_is_emulated();
  const std::int64_t many = emulated ? 3000 : 9000;  // of three members a block takes several tiles
  for (const char* spec :
       {kPaper, "dense(128) relu dense(128) relu dense(1)",
        "dense(100) layernorm(affine=0) relu dense(7) dense(64) layernorm relu dense(3)", kCurved,
        "dense(100) tanh dense(7) softplus dense(64) layernorm elu(alpha=0.5) dense(3)"})
    for (const std::int64_t inputs : {1, 9, 100})
      for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{100}, many})
        for (const std::int64_t members : {1, 3}) {
          if (emulated && rows == many && (spec != kPaper || inputs != 9 || members == 1)) continue;
          CAPTURE(spec);
          CAPTURE(inputs);
          CAPTURE(rows);
          const Net net(spec, inputs, {.members = members, .device = gpu});
          const bool own = members > 1 && rows == 100;
          const std::int64_t k = net.output_width();
          const Tensor x = normal(own ? Shape{members, rows, inputs} : Shape{rows, inputs}, {1, 1},
                                  1, DType::f32)
                               .to(gpu),
                       y = normal(own ? Shape{members, rows, k} : Shape{rows, k}, {1, 2}, 1,
                                  DType::f32)
                               .to(gpu);
          const Tensor first = Tensor::zeros(net.flat().shape(), DType::f32, gpu),
                       second = first.clone();
          FusedGradient once(net, first, rows), again(net, second, rows);
          const Answer got{first, once.run(x, y).to_vector<double>()};
          again.run(x, y);
          CHECK(apart(got, op_by_op(net, x, y)) < 1e-4);
          CHECK(same_bits(first.to(Device::cpu()), second.to(Device::cpu())));
        }
}

TEST_CASE("fused gradient: on CUDA training fused and op by op go the same way") {
  if (!test::gpu_here("fused gradient: on CUDA training fused and op by op go the same way"))
    return;
  const Device gpu = Device::cuda();
  const std::int64_t epochs = test::gpu_is_emulated() ? 2 : 5;
  const Tensor x = normal({100, 9}, {1, 1}, 1, DType::f32).to(gpu),
               y = normal({100, 1}, {1, 2}, 1, DType::f32).to(gpu);
  struct Run {
    std::int64_t batch, members;
    OptimiserOptions optimiser;
    int sharers = 1;  // 8: tiles of 64 rows
    const char* spec = kPaper;
  };
  for (const Run& run :
       {Run{0, 1, AdamOptions{}}, Run{32, 1, AdamOptions{}}, Run{0, 5, AdamOptions{}, 8},
        Run{32, 5, AdamOptions{}}, Run{32, 5, SgdOptions{.lr = 0.01}},
        Run{0, 5, AdamOptions{}, 8, kCurved}}) {
    const std::int64_t members = run.members;
    std::vector<std::vector<double>> losses;
    for (const bool fused : {true, false}) {
      Net net(run.spec, 9, {.members = members, .device = gpu});
      const Tensor kept = Tensor::zeros({epochs, members}, DType::f64, gpu);
      const StepOptions options{
          .batch = run.batch, .optimiser = run.optimiser, .fused = fused, .sharers = run.sharers};
      TrainStep step(net, x, y, options, kept);
      for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
        step.start_epoch(epoch);
        for (std::int64_t i = 0; i < step.steps_per_epoch(); ++i) step.run(step.rows_of(i));
      }
      losses.push_back(kept.to_vector<double>());
    }
    for (std::size_t i = 0; i < losses[0].size(); ++i)
      CHECK(losses[0][i] == doctest::Approx(losses[1][i]).epsilon(1e-3));
  }
}

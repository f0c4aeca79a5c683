#include "../../nn/trainer.h"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "../../core/threads.h"
#include "../../kernels/gradient_sink.h"
#include "../../kernels/mse.h"
#include "../../nn/flush_denormals.h"
#include "../bits.h"
#include "../message_of.h"
#include "small_training.h"

using namespace small_training;

namespace {

Tensor stacked(const Tensor& a, const Tensor& b) {
  Tensor both = Tensor::empty({2, a.size(0), a.size(1)});
  copy(both[0], a);
  copy(both[1], b);
  return both;
}

}  // namespace

TEST_CASE("train: lowers the loss, by Adam and by SGD, in both parameterisations") {
  const Data data = some_data();
  for (const auto parameterisation : {Parameterisation::standard, Parameterisation::ntk}) {
    for (const OptimiserOptions& optimiser :
         {OptimiserOptions(AdamOptions{.lr = 0.01}),
          OptimiserOptions(SgdOptions{.lr = 0.005, .momentum = 0.9})}) {
      for (std::int64_t batch : {0, 16}) {
        Net net(kSmallSpec, 2, {.parameterisation = parameterisation});
        const TrainReport report =
            train(net, data.x, data.y, {.epochs = 60, .batch = batch, .optimiser = optimiser});
        const auto losses = report.losses.to_vector<double>();
        REQUIRE(losses.size() == 60);
        CHECK(losses.back() < 0.3 * losses.front());
        CHECK(report.epochs_done == std::vector<std::int64_t>{60});
        CHECK(!report.interrupted);
      }
    }
  }
}

TEST_CASE("train: losses are those of the weights before each update") {
  const Data data = some_data();
  Net net(kSmallSpec, 2);
  const auto wanted = data.y.to_vector<double>(), got = net.predict(data.x).to_vector<double>();
  double mse = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    mse += (got[i] - wanted[i]) * (got[i] - wanted[i]) / static_cast<double>(got.size());
  const TrainReport full = train(net, data.x, data.y, {.epochs = 1});
  CHECK(full.losses.item() == doctest::Approx(mse).epsilon(1e-5));
  // Batches of unequal sizes weigh by their rows: at rate 0 they average to the full loss.
  Net again(kSmallSpec, 2);
  const TrainReport batches =
      train(again, data.x, data.y, {.epochs = 3, .batch = 16, .optimiser = SgdOptions{.lr = 0}});
  for (double loss : batches.losses.to_vector<double>())
    CHECK(loss == doctest::Approx(mse).epsilon(1e-5));
}

TEST_CASE("train: member s is the same seed trained alone, bit for bit, for any thread count") {
  const Data data = some_data(), other = some_data(50, 2);
  for (std::int64_t batch : {0, 16}) {
    const TrainOptions options{.epochs = 7, .batch = batch, .shuffle_seed = 3};
    std::vector<Tensor> ends;
    for (int threads : {1, 2, 3, 8}) {
      const ThreadLimit limit(threads);
      Net ensemble(kSmallSpec, 2, {.seeds = {4, 9, 2, 30, 31}});
      const TrainReport report = train(ensemble, data.x, data.y, options);
      ends.push_back(ensemble.flat());
      for (std::int64_t s = 0; s < 5; ++s) {
        Net alone(kSmallSpec, 2, {.seed = ensemble.options().seeds[s]});
        const TrainReport single = train(alone, data.x, data.y, options);
        CHECK(same_bits(ensemble.member(s).flat(), alone.flat()));
        CHECK(same_bits(report.losses[s], single.losses[0]));
      }
    }
    for (const Tensor& end : ends) CHECK(same_bits(end, ends[0]));

    Net pair(kSmallSpec, 2, {.members = 2});
    train(pair, stacked(data.x, other.x), stacked(data.y, other.y), options);
    Net first(kSmallSpec, 2, {.seed = 0}), second(kSmallSpec, 2, {.seed = 1});
    train(first, data.x, data.y, options);
    train(second, other.x, other.y, options);
    CHECK(same_bits(pair.member(0).flat(), first.flat()));
    CHECK(same_bits(pair.member(1).flat(), second.flat()));
  }
}

TEST_CASE(
    "train: a large member, whose ops share the threads, ends the same for any thread count") {
  const Data data = some_data(2300);
  std::vector<Tensor> ends;
  for (int threads : {1, 2, 3}) {
    const ThreadLimit limit(threads);
    Net net("dense(128) layernorm relu dense(128) relu dense(1)", 2);
    train(net, data.x, data.y, {.epochs = 2});
    ends.push_back(net.flat());
  }
  // Beside others, one thread has it to itself.
  {
    const ThreadLimit limit(2);
    Net net("dense(128) layernorm relu dense(128) relu dense(1)", 2, {.members = 2});
    train(net, data.x, data.y, {.epochs = 2});
    ends.push_back(net.member(0).flat());
  }
  for (const Tensor& end : ends) CHECK(same_bits(end, ends[0]));
}

TEST_CASE("train: shuffles differ between shuffle seeds and between members, and repeat") {
  const Data data = some_data();
  const auto end = [&](std::uint64_t shuffle_seed) {
    Net net(kSmallSpec, 2);
    train(net, data.x, data.y, {.epochs = 2, .batch = 16, .shuffle_seed = shuffle_seed});
    return net.flat();
  };
  CHECK(same_bits(end(1), end(1)));
  CHECK(!same_bits(end(1), end(2)));
  // Of the same weights, what the order of the rows makes of them.
  const TrainOptions options{.epochs = 1, .batch = 16};
  Net pair(kSmallSpec, 2, {.seeds = {4, 9}});
  pair.set_member(1, pair.member(0));
  train(pair, data.x, data.y, options);
  CHECK(!same_bits(pair.member(0).flat(), pair.member(1).flat()));
  // A shuffle seed is no step from one member's seed to the next one's.
  Net one(kSmallSpec, 2, {.seed = 1}), none(kSmallSpec, 2, {.seed = 0});
  none.set_member(0, one);
  train(one, data.x, data.y, options);
  train(none, data.x, data.y, {.epochs = 1, .batch = 16, .shuffle_seed = 1});
  CHECK(!same_bits(one.flat(), none.flat()));
}

TEST_CASE("train: asks the system for no memory after the first epoch") {
  const Data data = some_data();
  for (std::int64_t batch : {0, 16}) {
    Net net(kSmallSpec, 2, {.members = 2});
    Tensor losses = Tensor::zeros({20, 2}, DType::f64);
    TrainStep step(net, data.x, data.y, {.batch = batch, .optimiser = AdamOptions{}}, losses);
    std::uint64_t after_first = 0;
    for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
      step.start_epoch(epoch);
      for (std::int64_t i = 0; i < step.steps_per_epoch(); ++i) step.run(step.rows_of(i));
      if (epoch == 0) after_first = memory_stats(Device::cpu()).system_allocations;
    }
    CHECK(memory_stats(Device::cpu()).system_allocations == after_first);
  }
}

TEST_CASE("train: the step of a whole ensemble at once agrees with members in turn") {
  const Data data = some_data();
  for (std::int64_t batch : {0, 16}) {
    Net together(kSmallSpec, 2, {.members = 3}), apart = together.clone();
    Tensor losses = Tensor::zeros({5, 3}, DType::f64);
    TrainStep step(together, data.x, data.y, {.batch = batch, .optimiser = AdamOptions{}}, losses);
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      step.start_epoch(epoch);
      for (std::int64_t i = 0; i < step.steps_per_epoch(); ++i) step.run(step.rows_of(i));
    }
    const TrainReport report = train(apart, data.x, data.y, {.epochs = 5, .batch = batch});
    for (std::int64_t e = 0; e < 5; ++e)
      for (std::int64_t s = 0; s < 3; ++s)
        CHECK(losses[e].to_vector<double>()[s] ==
              doctest::Approx(report.losses[s].to_vector<double>()[e]).epsilon(1e-4));
  }
}

TEST_CASE("train: a loss that is not finite stops with member, seed, epoch and last loss") {
  const Data data = some_data();
  Net net(kSmallSpec, 2, {.seed = 40});
  const std::string diverged = message_of(
      [&] { train(net, data.x, data.y, {.epochs = 50, .optimiser = SgdOptions{.lr = 1e6}}); });
  CHECK(diverged.starts_with("train: got loss "));
  CHECK(diverged.find("of member 0 (seed 40), wanted a finite one: its last was ") !=
        std::string::npos);
  Tensor bad_y = data.y.clone();
  bad_y.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  Net pair(kSmallSpec, 2, {.seeds = {5, 7}});
  CHECK(message_of([&] {
          train(pair, stacked(data.x, data.x), stacked(data.y, bad_y), {.epochs = 30});
        }) ==
        "train: got loss nan in epoch 1 of member 1 (seed 7), wanted a finite one: none was; try a "
        "smaller learning rate, or standardise the data");
}

TEST_CASE("train: progress is told, and what its function throws comes out") {
  const Data data = some_data();
  Net net(kSmallSpec, 2, {.members = 2});
  std::vector<Progress> told;
  const ThreadLimit limit(1);  // one member behind the other
  const TrainReport report =
      train(net, data.x, data.y, {.epochs = 2, .progress = [&](const Progress& progress) {
                                    told.push_back(progress);
                                    // So long that the next epoch's is due.
                                    std::this_thread::sleep_for(std::chrono::milliseconds(100));
                                  }});
  const auto first = report.losses[0].to_vector<double>(),
             second = report.losses[1].to_vector<double>();
  const double means[] = {first[0], first[1], (first[1] + second[0]) / 2,
                          (first[1] + second[1]) / 2};  // of those that have begun
  REQUIRE(told.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(told[i].members == 2);
    CHECK(told[i].members_done == static_cast<std::int64_t>(i + 1) / 2);
    CHECK(told[i].epochs == 4);
    CHECK(told[i].epochs_done == static_cast<std::int64_t>(i + 1));
    CHECK(told[i].mean_loss == doctest::Approx(means[i]));
  }
  CHECK(message_of([&] {
          train(net, data.x, data.y,
                {.epochs = 5, .progress = [](const Progress&) { fail("bar", "got no terminal"); }});
        }) == "bar: got no terminal");
}

TEST_CASE("train: a step refuses what it has no room for") {
  const Data data = some_data();
  Net net(kSmallSpec, 2);
  Tensor losses = Tensor::zeros({3, 1}, DType::f64);
  const auto made = [&](const Tensor& x, const Tensor& y, std::int64_t batch, const Tensor& into) {
    return message_of([&] { TrainStep(net, x, y, {.batch = batch}, into); });
  };
  CHECK(made(Tensor::zeros({0, 2}), Tensor::zeros({0, 1}), 0, losses) ==
        "train: got x [0, 2] and y [0, 1], wanted as many rows, and some");
  CHECK(made(data.x, data.y, -1, losses) == "train: got batch -1, wanted at least 0");
  CHECK(message_of([&] { TrainStep(net, data.x, data.y, {.sharers = 0}, losses); }) ==
        "train: got 0 trainings that share the GPU, wanted at least 1");
  CHECK(made(data.x, data.y, 0, Tensor::zeros({3, 2}, DType::f64)) ==
        "train: got losses float64 [3, 2], wanted float64 [epochs, 1]");
  CHECK(made(data.x.to(DType::f64), data.y, 0, losses) ==
        "train: x is float64, the net is float32: wanted one dtype");
  TrainStep step(net, data.x, data.y, {.batch = 16}, losses);
  for (const std::int64_t epoch : {-1, 3})
    CHECK(message_of([&] { step.start_epoch(epoch); }) ==
          fmt::format("train: got epoch {}, wanted one from 0 to 2", epoch));
  step.start_epoch(0);
  for (const std::int64_t rows : {0, 17})
    CHECK(message_of([&] { step.run(rows); }) ==
          fmt::format("train: got a step of {} rows, wanted 1 to 16", rows));
}

TEST_CASE("train: bad input") {
  const Data data = some_data();
  Net net(kSmallSpec, 2), pair(kSmallSpec, 2, {.members = 2});
  const auto message = [&](Net& of, const Tensor& x, const Tensor& y, TrainOptions options) {
    return message_of([&] { train(of, x, y, options); });
  };
  CHECK(message(net, data.y, data.y, {}) == "train: got x [50, 1], wanted [n, 2] or [1, n, 2]");
  CHECK(message(pair, data.x, Tensor::zeros({3, 50, 1}), {}) ==
        "train: got y [3, 50, 1], wanted [n, 1] or [2, n, 1]");
  CHECK(message(net, data.x, data.y.slice(0, 49), {}) ==
        "train: got 50 rows of x and 49 of y, wanted as many");
  CHECK(message(net, Tensor::zeros({0, 2}), Tensor::zeros({0, 1}), {}) ==
        "train: got no rows, wanted at least one");
  CHECK(message(net, data.x, data.y.to(DType::f64), {}) ==
        "train: y is float64, the net is float32: wanted one dtype");
  CHECK(message(net, data.x, data.y, {.epochs = 0}) == "train: got 0 epochs, wanted at least 1");
  CHECK(message(net, data.x, data.y, {.batch = -1}) ==
        "train: got batch -1, wanted 0 (all rows) or more");
  CHECK(message(net, data.x, data.y, {.resume = true}) ==
        "train: got resume without a checkpoint, wanted the file to resume from");
  CHECK(message(net, data.x, data.y, {.optimiser = AdamOptions{.lr = -1}}) ==
        "adam: got lr -1, beta1 0.9, beta2 0.999, eps 1e-08, wanted lr, eps >= 0 and betas in [0, "
        "1)");
}

TEST_CASE("train: denormal numbers are flushed on all threads that ops share, and on none later") {
#if defined(__SSE2__) || defined(__aarch64__)
  const auto kept = [] {  // on how many threads a denormal times 1 is not 0
    int count = 0;
#pragma omp parallel reduction(+ : count)
    {
      volatile float denormal = 1e-40f, one = 1;
      count += denormal * one != 0;
    }
    return count;
  };
  // First of all: in a process of its own (CMakeLists.txt) this starts the threads.
  {
    const FlushDenormalsEverywhere flush;
    CHECK(kept() == 0);
  }
  CHECK(kept() == thread_count());
#endif
}

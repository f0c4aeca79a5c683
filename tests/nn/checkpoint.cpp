#include "../../nn/checkpoint.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include "../../core/random.h"
#include "../../core/threads.h"
#include "../../nn/safetensors.h"
#include "../../nn/trainer.h"
#include "../bits.h"
#include "../message_of.h"
#include "checkpointed_training.h"
#include "temporary.h"

using namespace keel;

namespace {

// Stops as a signal handler would, after the first epoch of whichever member comes first.
TrainReport train_interrupted(Net& net, TrainOptions options) {
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.progress = [&](const Progress&) { stop = true; };
  return train(net, inputs(), targets(), options);
}

}  // namespace

TEST_CASE("checkpoint: interrupted at odd epochs and resumed, the end is the same to the bit") {
  for (const OptimiserOptions& optimiser :
       {OptimiserOptions(AdamOptions{}),
        OptimiserOptions(SgdOptions{.lr = 0.01, .momentum = 0.9})}) {
    for (std::int64_t batch : {0, 8}) {
      for (std::int64_t members : {1, 3}) {
        const Temporary file("run.checkpoint");
        TrainOptions options{.epochs = 9, .batch = batch, .optimiser = optimiser};
        Net unbroken(kCheckpointedSpec, 2, {.members = members});
        const TrainReport wanted = train(unbroken, inputs(), targets(), options);

        options.checkpoint = file.path();
        Net broken(kCheckpointedSpec, 2, {.members = members});
        const TrainReport first = train_interrupted(broken, options);
        CHECK(first.interrupted);
        CHECK(first.epochs_done[0] <= 2);
        options.resume = true;
        for (int again = 0; again < 2; ++again) {
          Net later(kCheckpointedSpec, 2, {.members = members});
          CHECK(train_interrupted(later, options).interrupted);
        }
        Net last(kCheckpointedSpec, 2, {.members = members});
        const TrainReport report = train(last, inputs(), targets(), options);
        CHECK(!report.interrupted);
        CHECK(same_bits(last.flat(), unbroken.flat()));
        CHECK(same_bits(report.losses, wanted.losses));
      }
    }
  }
}

TEST_CASE("checkpoint: a finished training is resumed at once, or for more epochs") {
  const Temporary file("more.checkpoint");
  Net once(kCheckpointedSpec, 2), twice(kCheckpointedSpec, 2);
  const TrainReport wanted = train(once, inputs(), targets(), {.epochs = 9});
  TrainOptions options{.epochs = 5, .checkpoint = file.path(), .checkpoint_seconds = 0};
  train(twice, inputs(), targets(), options);
  options.resume = true;
  const Tensor at_five = twice.flat().clone();
  train(twice, inputs(), targets(), options);
  CHECK(same_bits(twice.flat(), at_five));
  options.epochs = 9;
  CHECK(same_bits(train(twice, inputs(), targets(), options).losses, wanted.losses));
  CHECK(same_bits(twice.flat(), once.flat()));
  options.epochs = 8;
  CHECK(message_of([&] { train(twice, inputs(), targets(), options); }) ==
        "checkpoint: " + file.path() + ": member 0 has done 9 epochs, wanted at most 8");
  // Nothing else is left beside it.
  const std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    CHECK(entry.path().string().find(file.path() + ".") == std::string::npos);
}

TEST_CASE("checkpoint: how long the trainings took that one goes on from") {
  const Temporary file("seconds.checkpoint");
  TrainOptions options{.epochs = 3, .checkpoint = file.path()};
  Net net(kCheckpointedSpec, 2);
  const TrainReport first = train(net, inputs(), targets(), options);
  CHECK(first.seconds > 0);
  CHECK(first.seconds_before == 0);
  options.resume = true;
  const auto resumed = [&] { return train(net, inputs(), targets(), options); };
  double before = resumed().seconds_before;
  CHECK(before > 0);
  CHECK(before <= first.seconds);
  options.epochs = 4;
  CHECK(resumed().seconds_before > before);
  SafeTensors content = read_safetensors(file.path());
  const auto with_seconds = [&](const char* text) {
    content.metadata["seconds"] = text;
    write_safetensors(file.path(), content);
  };
  with_seconds("86400.5");
  CHECK(resumed().seconds_before == 86400.5);
  CHECK(resumed().seconds_before > 86400.5);
  content.metadata.erase("seconds");  // as written by an earlier keel
  write_safetensors(file.path(), content);
  CHECK(resumed().seconds_before == 0);
  for (const char* text : {"-1", "nan", "inf", "", "1 s", "1e999"}) {
    with_seconds(text);
    CHECK(message_of(resumed) ==
          "checkpoint: " + file.path() + ": got " + text + " seconds, wanted a number of them");
  }
}

TEST_CASE("checkpoint: every member goes on with its own moments and losses") {
  for (const std::int64_t batch : {0, 8}) {
    const Temporary file("members.checkpoint");
    TrainOptions options{.epochs = 9, .batch = batch};
    Net once(kCheckpointedSpec, 2, {.members = 3}), later(kCheckpointedSpec, 2, {.members = 3});
    const TrainReport wanted = train(once, inputs(), targets(), options);
    options.checkpoint = file.path();
    options.epochs = 4;
    Net first(kCheckpointedSpec, 2, {.members = 3});
    train(first, inputs(), targets(), options);
    options.resume = true;
    options.epochs = 9;
    std::optional<Progress> told;  // first
    options.progress = [&](const Progress& progress) {
      if (!told) told = progress;
    };
    const ThreadLimit one(1);  // member 0 goes on first
    CHECK(same_bits(train(later, inputs(), targets(), options).losses, wanted.losses));
    CHECK(same_bits(later.flat(), once.flat()));
    REQUIRE(told);
    CHECK(told->epochs_done == 5 + 4 + 4);
    const auto loss = [&](std::int64_t member, std::int64_t epoch) {
      return wanted.losses[member].to_vector<double>()[static_cast<std::size_t>(epoch)];
    };
    CHECK(told->mean_loss == doctest::Approx((loss(0, 4) + loss(1, 3) + loss(2, 3)) / 3));
  }
}

TEST_CASE("checkpoint: an epoch that was not finished leaves no trace") {
  const Temporary file("unfinished.checkpoint");
  constexpr std::int64_t kRows = 10000;  // an epoch of batches of one: half a second or so
  const Tensor x = normal({kRows, 2}, {1, 0}), y = normal({kRows, 1}, {1, 1});
  TrainOptions options{.epochs = 2, .batch = 1};
  Net once(kCheckpointedSpec, 2), broken(kCheckpointedSpec, 2), later(kCheckpointedSpec, 2);
  const TrainReport wanted = train(once, x, y, options);

  options.checkpoint = file.path();
  std::atomic<bool> stop{false};
  std::jthread wish;
  options.stop = &stop;
  options.progress = [&](const Progress&) {  // the first epoch is done
    if (wish.joinable()) return;
    wish = std::jthread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stop = true;
    });
  };
  const TrainReport report = train(broken, x, y, options);
  REQUIRE(report.epochs_done == std::vector<std::int64_t>{1});
  CHECK(std::isnan(report.losses.to_vector<double>()[1]));
  options.stop = nullptr;
  options.resume = true;
  CHECK(same_bits(train(later, x, y, options).losses, wanted.losses));
  CHECK(same_bits(later.flat(), once.flat()));
}

TEST_CASE("checkpoint: a wish to stop does not wait for the end of an epoch of many steps") {
  const Temporary file("middle.checkpoint");
  constexpr std::int64_t kRows = 20000;  // an epoch of batches of one: a second or so
  const Tensor x = normal({kRows, 2}, {1, 0}), y = normal({kRows, 1}, {1, 1});
  std::atomic<bool> stop{false};
  TrainOptions options{.epochs = 1, .batch = 1, .stop = &stop, .checkpoint = file.path()};
  Net net(kCheckpointedSpec, 2);
  const Tensor before = net.flat().clone();
  const std::jthread wish([&] {  // joins, whatever train() throws
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  const TrainReport report = train(net, x, y, options);
  CHECK(report.interrupted);
  CHECK(report.epochs_done == std::vector<std::int64_t>{0});
  CHECK(same_bits(net.flat(), before));
  CHECK(read_safetensors(file.path()).find("losses")->shape() == Shape{1, 0});
}

TEST_CASE("checkpoint: stopped before the first epoch, it holds the start and no losses") {
  const Temporary file("start.checkpoint");
  const std::atomic<bool> stop{true};
  TrainOptions options{.epochs = 3, .stop = &stop, .checkpoint = file.path()};
  Net stopped(kCheckpointedSpec, 2, {.members = 2}), unbroken(kCheckpointedSpec, 2, {.members = 2});
  const TrainReport report = train(stopped, inputs(), targets(), options);
  CHECK(report.interrupted);
  CHECK(report.epochs_done == std::vector<std::int64_t>{0, 0});
  CHECK(read_safetensors(file.path()).find("losses")->shape() == Shape{2, 0});
  options.stop = nullptr;
  options.resume = true;
  train(stopped, inputs(), targets(), options);
  train(unbroken, inputs(), targets(), {.epochs = 3});
  CHECK(same_bits(stopped.flat(), unbroken.flat()));
  CHECK(read_safetensors(file.path()).find("losses")->shape() == Shape{2, 3});
}

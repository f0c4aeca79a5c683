// What members that train at the same time share: when a checkpoint is due, and when all give up.
#include "../../nn/training.h"

#include <doctest/doctest.h>

#include <atomic>

#include "../../core/threads.h"
#include "../message_of.h"
#include "checkpointed_training.h"
#include "temporary.h"

using namespace keel;

TEST_CASE("train: the next checkpoint is due a period after the last, whoever wrote that") {
  const Temporary file("period.checkpoint");
  const TrainOptions options{.epochs = 2, .checkpoint = file.path()};
  Net net(kCheckpointedSpec, 2);
  Training training(net, inputs(), targets(), options);
  const auto before = std::chrono::steady_clock::now();
  training.write_checkpoint();
  CHECK(training.last_checkpoint() >= before);
}

TEST_CASE("train: once a member has failed, the others do not go on to their ends") {
  const ThreadLimit limit(2);
  Net pair(kCheckpointedSpec, 2, {.members = 2});
  std::atomic<int> told{0};
  // For the other member seconds of epochs, each told of that ends a tenth of one after the last.
  const TrainOptions options{.epochs = 100000, .progress = [&](const Progress&) {
                               if (told++ == 0) fail("bar", "got no terminal");
                             }};
  CHECK(message_of([&] { train(pair, inputs(), targets(), options); }) == "bar: got no terminal");
  CHECK(told <= 5);
}

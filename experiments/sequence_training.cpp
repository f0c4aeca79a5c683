#include "sequence_training.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <optional>

#include "../core/each_in_parallel.h"
#include "../nn/flush_denormals.h"
#include "../nn/transformer_step.h"

namespace keel {
namespace {

struct Group {
  Transformer net;
  std::vector<double> loss;  // a member each
};

Group train_group(const TransformerOptions& options, const SequenceTraining& training,
                  const std::function<void()>& stepped) {
  constexpr std::int64_t kLooks = 100;  // steps between looks at a loss, which a GPU waits for
  const FlushDenormalsEverywhere flush;
  Group group{Transformer(options), std::vector<double>(options.seeds.size())};
  TransformerStep step(group.net, training.batch, AdamOptions{training.lr});
  const std::int64_t last_tenth = training.steps - std::max<std::int64_t>(training.steps / 10, 1);
  for (std::int64_t i = 0; i < training.steps; ++i) {
    const SequenceBatch batch = training.draw(options, i);
    step.run(batch.x, batch.y);
    if (i >= last_tenth || i % kLooks == kLooks - 1) {
      const std::vector<double> now = step.loss().to_vector<double>();
      for (std::size_t s = 0; s < now.size(); ++s) {
        check(std::isfinite(now[s]), training.who,
              "got loss {} at step {} of the training of seed {}, wanted a finite one: try a "
              "smaller learning rate",
              std::abs(now[s]), i + 1, options.seeds[s]);  // of a NaN without its sign
        if (i >= last_tenth) group.loss[s] += now[s];
      }
    }
    stepped();
  }
  for (double& loss : group.loss) loss /= static_cast<double>(training.steps - last_tenth);
  return group;
}

}  // namespace

SequenceBatch batch_of(const TransformerOptions& options, const std::vector<double>& x,
                       const std::vector<double>& y) {
  const std::int64_t members = std::ssize(options.seeds), length = options.length,
                     n = std::ssize(x) / (members * length);
  const Shape shape = members > 1 ? Shape{members, n, length} : Shape{n, length};
  return {Tensor::from(x, shape).to(options.dtype), Tensor::from(y, shape).to(options.dtype)};
}

std::vector<TrainedTransformer> train_transformers(std::vector<TransformerOptions> kinds,
                                                   std::uint64_t first_seed, std::int64_t seeds,
                                                   const SequenceTraining& training) {
  std::vector<TransformerOptions> chosen;
  for (TransformerOptions& kind : kinds) {
    const bool at_once = kind.device.is_cuda();
    kind.seeds.clear();
    for (std::int64_t s = 0; s < seeds; ++s) {
      kind.seeds.push_back(first_seed + static_cast<std::uint64_t>(s));
      if (at_once && s + 1 < seeds) continue;
      chosen.push_back(kind);
      kind.seeds.clear();
    }
  }
  std::mutex mutex;
  std::int64_t done = 0;
  std::vector<std::optional<Group>> groups(chosen.size());
  const auto train_one = [&](std::size_t i) {
    groups[i] = train_group(chosen[i], training, [&] {
      const std::lock_guard lock(mutex);
      done += static_cast<std::int64_t>(chosen[i].seeds.size());
      if (training.progress) training.progress(done);
    });
  };
  each_net(chosen[0].device, chosen.size(), train_one);

  std::vector<TrainedTransformer> trained;
  for (const std::optional<Group>& group : groups)
    for (std::int64_t s = 0; s < group->net.members(); ++s)
      trained.push_back({group->net.member(s), group->loss[static_cast<std::size_t>(s)]});
  return trained;
}

std::vector<Transformer> members_of(const Transformer& all) {
  std::vector<Transformer> members;
  for (std::int64_t s = 0; s < all.members(); ++s) members.push_back(all.member(s));
  return members;
}

void each_net(Device device, std::size_t count, const std::function<void(std::size_t)>& work) {
  if (device.is_cuda())
    for (std::size_t i = 0; i < count; ++i) work(i);
  else
    each_in_parallel(count, work);
}

Transformer joined(const std::vector<TrainedTransformer>& members) {
  TransformerOptions options = members[0].net.options();
  for (std::size_t s = 1; s < members.size(); ++s)
    options.seeds.push_back(members[s].net.options().seeds[0]);
  Transformer all(options);
  for (std::size_t s = 0; s < members.size(); ++s)
    copy_member(all.layout(), all.flat(), static_cast<std::int64_t>(s), members[s].net.layout(),
                members[s].net.flat(), 0);
  return all;
}

std::vector<double> predict_in_blocks(const Transformer& net, const std::vector<double>& x) {
  const std::int64_t length = net.options().length,
                     block = std::clamp<std::int64_t>((std::int64_t{1} << 20) / (length * length),
                                                      1, 128) *
                             length;
  std::vector<double> result;
  result.reserve(x.size());
  for (std::int64_t begin = 0; begin < std::ssize(x); begin += block) {
    const std::int64_t end = std::min(begin + block, std::ssize(x));
    const Tensor some = Tensor::from(std::vector<double>(x.begin() + begin, x.begin() + end),
                                     {(end - begin) / length, length});
    const std::vector<double> predicted =
        net.predict(some.to(net.flat().device())).to_vector<double>();
    result.insert(result.end(), predicted.begin(), predicted.end());
  }
  return result;
}

void check_finite(const std::vector<double>& predictions, const char* who, const char* how,
                  std::int64_t first, std::uint64_t seed) {
  for (std::size_t i = 0; i < predictions.size(); ++i)
    check(std::isfinite(predictions[i]), who,
          "got {} for row {} (from 0) {}, seed {}, wanted a finite number", predictions[i],
          first + static_cast<std::int64_t>(i), how, seed);
}

SequencePredictor::SequencePredictor(const Transformer& net, const SequenceUnits& units)
    : net_(net.to(DType::f64)), units_(units) {
  check(net.members() == 1, "sequence_predictor", "got {} members, wanted 1", net.members());
}

std::vector<double> SequencePredictor::window_of(const std::vector<double>& sequence,
                                                 std::int64_t end) const {
  const std::int64_t count = std::min(end, net_.options().length);
  return {sequence.begin() + (end - count), sequence.begin() + end};
}

std::vector<double> SequencePredictor::next(const std::vector<std::vector<double>>& windows) const {
  const auto length = static_cast<std::size_t>(net_.options().length);
  std::vector<double> x, result;
  for (const std::vector<double>& window : windows) {
    for (double value : window) x.push_back(units_.standardised(value));
    x.resize(x.size() + length - window.size());  // zeros, behind what is asked for
  }
  const std::vector<double> all = predict_in_blocks(net_, x);
  for (std::size_t i = 0; i < windows.size(); ++i)
    result.push_back(units_.own(all[i * length + windows[i].size() - 1]));
  return result;
}

std::vector<double> SequencePredictor::one_step(const std::vector<double>& sequence,
                                                std::int64_t begin, std::int64_t end) const {
  constexpr std::int64_t kAtOnce = 1024;  // windows of a long table need not all be kept
  std::vector<double> result;
  for (std::int64_t from = begin; from < end; from += kAtOnce) {
    std::vector<std::vector<double>> windows;
    for (std::int64_t i = from; i < std::min(from + kAtOnce, end); ++i)
      windows.push_back(window_of(sequence, i));
    const std::vector<double> some = next(windows);
    result.insert(result.end(), some.begin(), some.end());
  }
  return result;
}

std::vector<double> SequencePredictor::rollout(std::vector<double> sequence,
                                               std::int64_t count) const {
  const auto given = static_cast<std::ptrdiff_t>(sequence.size());
  for (std::int64_t i = 0; i < count; ++i)
    sequence.push_back(next({window_of(sequence, given + i)})[0]);
  return {sequence.begin() + given, sequence.end()};
}

}  // namespace keel

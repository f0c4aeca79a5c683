// A step of a transformer's training: forward, backward and update, told or replayed.
#include "../../nn/transformer_step.h"

#include "../../nn/optimiser.h"
#include "../bits.h"
#include "../gpu.h"
#include "small_transformer.h"

using namespace keel;
using namespace keel::test;

TEST_CASE("transformer: learns to repeat") {
  Transformer net(small({}, DType::f32));
  TransformerStep step(net, 16, AdamOptions{1e-2});
  double first = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Tensor x = normal({16, 4}, {9, i});
    step.run(x, x);
    if (i == 0) first = step.loss().item();
  }
  CHECK(step.loss().item() < 0.1);
  CHECK(first > 10 * step.loss().item());
}

TEST_CASE("transformer: a step is forward, backward and update, of each member") {
  for (const std::size_t members : {1, 2}) {
    TransformerOptions options = small();
    options.seeds.assign({5, 6});
    options.seeds.resize(members);
    Transformer net(options);
    const Transformer other = net.clone();
    TransformerStep step(net, 3, SgdOptions{0.1, 0.5});
    Optimiser optimiser(SgdOptions{0.1, 0.5}, other.flat());
    const auto count = static_cast<std::int64_t>(members);
    const Shape shape = members > 1 ? Shape{count, 3, 4} : Shape{3, 4};
    for (std::uint64_t i = 0; i < 3; ++i) {
      const Tensor x = normal(shape, {1, i}, 1, DType::f64);
      const Tensor y = normal(shape, {2, i}, 1, DType::f64);
      const std::vector<Tensor> wanted = gradients_of(other, x, y);
      const Tensor gradients = Tensor::zeros(other.flat().shape(), DType::f64);
      for (std::size_t p = 0; p + 1 < wanted.size(); ++p)
        copy(other.layout().view(gradients, p), wanted[p + 1]);
      optimiser.step(gradients);
      step.run(x, y);
      CHECK(same_bits(step.loss(), wanted[0]));
      CHECK(same_bits(net.flat(), other.flat()));
    }
  }
}

TEST_CASE("transformer: steps that a GPU replays are those it was told one by one") {
  if (!gpu_here("transformer: steps that a GPU replays")) return;
  for (const std::size_t members : {1, 2}) {
    TransformerOptions options = small({}, DType::f32);
    options.blocks = 1;
    options.device = Device::cuda();
    options.seeds.assign({5, 6});
    options.seeds.resize(members);
    Transformer replayed(options);
    const Transformer told(options);
    const Shape shape = members > 1 ? Shape{static_cast<std::int64_t>(members), 3, 4} : Shape{3, 4};
    TransformerStep step(replayed, 3);
    std::vector<Tensor> losses, kept, of_steps;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Tensor x = normal(shape, {1, i}), y = normal(shape, {2, i}, 1, DType::f64);
      step.run(x, y);
      losses.push_back(step.loss().clone());
      // Between two steps: what it takes and keeps must not be memory of the next replay.
      kept.push_back(replayed.predict(x.to(options.device)));
      of_steps.push_back(kept.back().to(Device::cpu()));
    }
    Optimiser optimiser(AdamOptions(), told.flat());
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Tensor x = normal(shape, {1, i}).to(options.device);
      const Tensor y = normal(shape, {2, i}, 1, DType::f64).to(DType::f32).to(options.device);
      const std::vector<Tensor> wanted = gradients_of(told, x, y);
      const Tensor gradients = Tensor::zeros(told.flat().shape(), DType::f32, options.device);
      for (std::size_t p = 0; p + 1 < wanted.size(); ++p)
        copy(told.layout().view(gradients, p), wanted[p + 1]);
      optimiser.step(gradients);
      CHECK(same_bits(losses[i], wanted[0]));
      CHECK(same_bits(of_steps[i], told.predict(x)));
      CHECK(same_bits(kept[i], of_steps[i]));
    }
    CHECK(same_bits(replayed.flat(), told.flat()));
  }
}

// The GPU's body of fused_mlp, run on the CPU: every block, its threads one after another between
// barriers, against the ops one by one in float64.
#include "../../kernels/fused_mlp_block.h"
#include "../../core/max_or_nan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "../../kernels/fused_mlp_sum.h"
#include "../difference.h"
#include "../message_of.h"
#include "fused_mlp_case.h"

using namespace keel;
using namespace fused_mlp_case;

namespace {

/// A block: its threads one after another, forwards or backwards, between barriers.
template <class Block>
void run_block(const FusedTask& task, int64_t number, float* shared, bool reverse) {
  std::vector<typename Block::Thread> threads(Block::kThreads);
  for (int id = 0; id < Block::kThreads; ++id) threads[static_cast<std::size_t>(id)].id = id;
  Block(task, number, shared).run([&](auto phase) {
    for (int n = 0; n < Block::kThreads; ++n)
      phase(threads[static_cast<std::size_t>(reverse ? Block::kThreads - 1 - n : n)]);
  });
}

// Bytes that are NaN as float: what a block finds in shared memory.
std::vector<Quad> nans(int64_t floats) {
  std::vector<Quad> memory(static_cast<std::size_t>((floats + 3) / 4));
  std::memset(static_cast<void*>(memory.data()), 0xff, memory.size() * sizeof(Quad));
  return memory;
}

template <bool kPlain>
void run_gradient(const FusedTask& task, int64_t slot, float* shared, bool reverse) {
  if (task.tile_rows == 64)
    task.keep ? run_block<FusedBlock<64, true, kPlain>>(task, slot, shared, reverse)
              : run_block<FusedBlock<64, false, kPlain>>(task, slot, shared, reverse);
  else
    task.keep ? run_block<FusedBlock<32, true, kPlain>>(task, slot, shared, reverse)
              : run_block<FusedBlock<32, false, kPlain>>(task, slot, shared, reverse);
}

/// `any`: by the kernels for any net, though this one be plain.
Answer emulate(const Problem& problem, int tile_rows = 0, bool reverse = false,
               const FusedUpdate& update = {}, bool any = false) {
  const Case& c = problem.c;
  FusedTask task = FusedTask::plan(problem.net, c.members, c.rows, tile_rows);
  auto workspace = nans(FusedTask::workspace(problem.net, c.members, c.rows));
  task.use(workspace[0].v);
  REQUIRE(task.kept + task.slots() * problem.net.hidden * task.tile_rows * 128 <=
          workspace[0].v + 4 * workspace.size());
  const Tensor gradients = Tensor::zeros(problem.parameters.shape()),
               losses = Tensor::full({c.members}, -1);
  task.parameters = problem.parameters.data<float>();
  task.x = problem.x.data<float>();
  task.y = problem.y.data<float>();
  task.x_stride = c.own_x ? c.rows * c.inputs : 0;
  task.y_stride = c.own_x ? c.rows * c.outputs : 0;
  task.gradients = gradients.data<float>();
  task.losses = losses.data<float>();
  task.update = update;
  for (int64_t slot = 0; slot < task.slots(); ++slot) {
    auto shared = nans(task.at.total);
    task.net.plain() && !any ? run_gradient<true>(task, slot, shared[0].v, reverse)
                             : run_gradient<false>(task, slot, shared[0].v, reverse);
  }
  for (int64_t block = 0; block < FusedSum::blocks(task); ++block) {
    auto shared = nans(FusedSum::kShared);
    run_block<FusedSum>(task, block, shared[0].v, reverse);
  }
  return {gradients.to_vector<double>(), losses.to_vector<double>()};
}

/// Largest difference of a parameter's gradient, relative to its largest entry in any parameter.
double apart(const Answer& got, const Answer& wanted) {
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < wanted.gradients.size(); ++i) {
    largest = std::max(largest, std::abs(wanted.gradients[i]));
    worst = max_or_nan(worst, std::abs(got.gradients[i] - wanted.gradients[i]));
  }
  worst /= largest;
  for (std::size_t s = 0; s < wanted.losses.size(); ++s)
    worst = max_or_nan(worst, std::abs(got.losses[s] / wanted.losses[s] - 1));
  return worst;
}

bool same(const Answer& a, const Answer& b) {
  return a.gradients == b.gradients && a.losses == b.losses;
}

void check_case(const Case& c) {
  CAPTURE(c.inputs);
  CAPTURE(c.hidden.size());
  CAPTURE(c.hidden[0].width);
  CAPTURE(c.outputs);
  CAPTURE(c.rows);
  CAPTURE(c.members);
  CAPTURE(c.ntk);
  const Problem problem = problem_of(c);
  const Answer wanted = oracle(problem);
  REQUIRE(problem.net.fits());
  for (const int tile_rows : {32, 64}) {
    CAPTURE(tile_rows);
    if (!problem.net.fits(tile_rows)) continue;
    const Answer got = emulate(problem, tile_rows);
    CHECK(apart(got, wanted) < 1e-5);
    CHECK(same(got, emulate(problem, tile_rows, true)));
  }
}

}  // namespace

TEST_CASE("fused_mlp block: agrees with the ops, whichever thread goes first") {
  const Hidden plain{128}, ln{128, Norm::affine}, bare{128, Norm::plain};
  const Hidden linear{100, Norm::none, {}}, ln_linear{100, Norm::affine, {}};
  check_case({9, {plain, plain}});
  check_case({9, {ln, plain}, 1, 65});
  check_case({9, {plain, ln}, 3, 63, 3, true});
  check_case({1, {ln, ln}, 1, 33, 3});
  check_case({13, {bare, {64, Norm::plain, {Kind::relu}, 0}}, 1, 300});
  check_case({9, {linear, ln_linear}, 2, 1, 1, false, true});
  check_case({9, {{7, Norm::affine}, {1}, {64, Norm::plain}}, 3, 65, 3, false, true});
  check_case({1, {{1}}, 1, 64});
  check_case({13, {{1, Norm::affine}}, 1, 31});
  check_case({40, {{100, Norm::affine}}, 3, 65});
  check_case({100, {ln, {30}}, 1, 33});
  check_case({128, {{64}, ln, {100}}, 8, 70, 1, false, true});
  check_case({9, {{20}, {20, Norm::affine}, {20}, {20, Norm::plain}}, 4, 40});
  check_case({9, {{20, Norm::affine}}, 16, 40});
}

TEST_CASE("fused_mlp block: every activation, behind every norm and behind none") {
  for (const AnyActivation& activation : every_activation())
    for (const Norm norm : {Norm::none, Norm::plain, Norm::affine, Norm::rms, Norm::affine_rms}) {
      CAPTURE(static_cast<int>(activation.kind));
      CAPTURE(static_cast<int>(norm));
      const Hidden hidden{21, norm, activation};
      check_case({3, {hidden, {128}, hidden}, 2, 70, 2, true, norm == Norm::plain});
      check_case({1, {{1, norm, activation}}, 1, 33});
    }
}

TEST_CASE("fused_mlp block: which nets the kernels of layer_norm and relu are for") {
  const auto plain = [](const Hidden& hidden) {
    return problem_of({3, {{5, Norm::affine}, hidden}}).net.plain();
  };
  CHECK(plain({7}));
  CHECK(plain({7, Norm::plain, {}}));
  CHECK(!plain({7, Norm::rms}));
  CHECK(!plain({7, Norm::affine_rms, {}}));
  for (const AnyActivation& activation : every_activation())
    CHECK(plain({7, Norm::affine, activation}) ==
          (activation.kind == Kind::none || activation.kind == Kind::relu));
}

TEST_CASE("fused_mlp block: the kernels for any net agree on a plain one, too") {
  for (const Case& c :
       {Case{9, {{33, Norm::affine}, {20}}, 2, 70, 2}, Case{9, {{9}, {33, Norm::plain}, {7}}}}) {
    const Problem problem = problem_of(c);
    REQUIRE(problem.net.plain());
    CHECK(apart(emulate(problem, 0, false, {}, true), oracle(problem)) < 1e-5);
  }
}

TEST_CASE("fused_mlp block: blocks that take several tiles add them up") {
  const Hidden ln{20, Norm::affine};
  for (const Case& c : {Case{9, {ln, {20}}, 2, 3000, 3, true}, Case{9, {ln, ln, {20}}, 1, 2900, 3},
                        Case{50, {ln}, 1, 2900, 3}}) {
    const Problem problem = problem_of(c);
    CHECK(FusedTask::plan(problem.net, c.members, c.rows, 64).slot_tiles > 1);
    check_case(c);
  }
}

TEST_CASE("fused_mlp: tiles are shared by as many blocks as the shapes alone say") {
  const FusedMlp net = problem_of({9, {{128}, {128}}}).net;
  for (const int64_t members : {1, 5, 132, 200})
    for (const int64_t rows : {1, 32, 33, 100, 4224, 4225, 40132}) {
      const FusedTask task = FusedTask::plan(net, members, rows);
      CHECK(task.slots() <= std::max<int64_t>(FusedTask::kMostSlots, members));
      CHECK(task.tiles * task.tile_rows >= rows);
      CHECK((task.tiles - 1) * task.tile_rows < rows);
      CHECK(task.member_slots * task.slot_tiles >= task.tiles);
      CHECK((task.member_slots - 1) * task.slot_tiles < task.tiles);
      CHECK(task.slots() * (task.slice + int64_t{2} * task.tile_rows * 128) <=
            FusedTask::workspace(net, members, rows));
      CHECK(task.at.total <= FusedShared::kMost);
    }
  CHECK(FusedTask::plan(net, 1, 40132).tile_rows == 64);
  CHECK(FusedTask::plan(net, 5, 100).tile_rows == 32);
}

TEST_CASE("fused_mlp: of a GPU that others share a task takes fewer, taller tiles") {
  const FusedMlp net = problem_of({1, {{128}, {128}}}).net;
  CHECK(FusedTask::plan(net, 15, 100).slots() == 60);
  CHECK(FusedTask::plan(net, 15, 100, 0, 2).tile_rows == 32);
  CHECK(FusedTask::plan(net, 15, 100, 0, 4).tile_rows == 64);
  CHECK(FusedTask::plan(net, 15, 100, 0, 4).slots() == 30);
  CHECK(FusedTask::plan(net, 5, 100, 0, 4).tile_rows == 32);
}

TEST_CASE("fused_mlp block: a step is Adam's by the gradient, and keeps the losses") {
  // A member with few slices, and one with many, whose sums are made by eight threads each.
  for (const Case& c :
       {Case{9, {{33, Norm::affine}, {20}}, 2, 70, 3, true}, Case{9, {{20}}, 1, 1000, 1, false}}) {
    CAPTURE(c.rows);
    const Problem problem = problem_of(c);
    const Shape shape = problem.parameters.shape();
    const std::vector<double> before = problem.parameters.to_vector<double>();
    AdamState state(problem.parameters), wanted_state(problem.parameters);
    const Tensor wanted = problem.parameters.clone();
    const int64_t epochs = 2, half = 40;  // rows of a step of two
    const Tensor epoch = Tensor::zeros({c.members}, DType::f64), row = epoch.clone(),
                 losses = Tensor::full({epochs, c.members}, -1, DType::f64);
    const AdamOptions options{.lr = 0.01};
    std::vector<double> wanted_losses(static_cast<std::size_t>(c.members), 0.0);
    for (int64_t step = 0; step < 3; ++step) {
      const Answer answer = emulate(problem);
      adam(wanted, Tensor::from(answer.gradients, shape).to(DType::f32), wanted_state, options);
      const FusedUpdate update{.clock = AdamClock(options, state),
                               .rule = AdamRule<float>(options),
                               .parameters = problem.parameters.data<float>(),
                               .first = state.first.data<float>(),
                               .second = state.second.data<float>(),
                               .record = {c.members, half, 2 * half, 0.5, epoch.data<double>(),
                                          row.data<double>(), losses.data<double>()}};
      const Answer stepped = emulate(problem, 0, step % 2 == 1, update);
      CHECK(stepped.losses == answer.losses);
      for (const double gradient : stepped.gradients) REQUIRE(gradient == 0);  // not written
      for (std::size_t s = 0; step < 2 && s < answer.losses.size(); ++s)
        wanted_losses[s] += 0.5 * answer.losses[s];
      // To the bit, unless it is nvcc's code that runs adam() here: that fuses products with sums.
      CHECK(test::relative_difference(problem.parameters, wanted) < 1e-6);
      CHECK(test::relative_difference(state.first, wanted_state.first) < 1e-6);
      CHECK(test::relative_difference(state.second, wanted_state.second) < 1e-6);
      CHECK(test::relative_difference(state.step, wanted_state.step) < 1e-13);
    }
    CHECK(problem.parameters.to_vector<double>() != before);
    CHECK(losses[0].to_vector<double>() == wanted_losses);
    CHECK(epoch.to_vector<double>() == std::vector<double>(c.members, 1.0));
    CHECK(row.to_vector<double>() == std::vector<double>(c.members, static_cast<double>(half)));
  }
}

TEST_CASE("fused_mlp: where not all gradients of weights are kept, 64 rows have no room") {
  for (const std::size_t hidden : {1, 2, 3, 4})
    for (const int inputs : {1, 9, 32, 33, 64, 128})
      for (const int width : {1, 64, 128}) {
        CAPTURE(hidden);
        CAPTURE(inputs);
        const FusedMlp net = problem_of({inputs, std::vector<Hidden>(hidden, {width})}).net;
        CHECK((!net.fits(64) || FusedTask::plan(net, 1, 100, 64).keep));
      }
}

TEST_CASE("fused_mlp block: a NaN, or a variance out of range, shows in its member's loss alone") {
  const Case c{9, {{33, Norm::affine}, {20}}, 1, 70, 3, true};
  const Problem problem = problem_of(c);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto losses = [&](const Tensor& spoilt, int64_t at, double value) {
    const auto before = spoilt.data<float>()[at];
    spoilt.data<float>()[at] = static_cast<float>(value);
    const Answer answer = emulate(problem);
    spoilt.data<float>()[at] = before;
    return answer.losses;
  };
  const int64_t second = c.rows + 69;  // the last row of member 1
  for (const auto& found : {losses(problem.y, second, nan), losses(problem.x, second * 9, nan),
                            losses(problem.x, second * 9 + 8, 1e30)}) {
    CHECK(std::isfinite(found[0]));
    CHECK(std::isnan(found[1]));
    CHECK(std::isfinite(found[2]));
  }
  const int64_t weight = problem.net.parameters[FusedParameter::kKinds].flat + 2 * 20 * 33 + 5;
  const auto found = losses(problem.parameters, weight, nan);
  CHECK(std::isfinite(found[1]));
  CHECK(std::isnan(found[2]));
}

TEST_CASE("fused_mlp block: rows that are constant, or nearly, without eps") {
  for (const float size : {0.0f, 1e-21f, 1e-8f, 1e6f}) {
    CAPTURE(size);
    Problem problem = problem_of({3, {{20, Norm::affine, {Kind::relu}, 0}, {9}}, 1, 40});
    const auto& bias = problem.net.parameters[FusedParameter::kBias];
    for (int i = 0; i < bias.cols; ++i) problem.parameters.data<float>()[bias.flat + i] = 0;
    // Rows of zeros have no derivative; small ones have a large one, which they keep to themselves.
    for (int i = 0; i < 3 * 40; ++i) problem.x.data<float>()[i] *= i < 60 ? size : 1;
    const Answer wanted = oracle(problem);
    for (const int tile_rows : {32, 64}) CHECK(apart(emulate(problem, tile_rows), wanted) < 1e-5);
  }
}

// The hot kernels at small shapes that look like their large ones: for traffic.h to count.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../../kernels/adam.h"
#include "../../kernels/attention.h"
#include "../../kernels/factor_gram.h"
#include "../../kernels/gather_rows.h"
#include "../../kernels/kernel_pairs.h"
#include "../../kernels/symmetric_product.h"
#include "../../kernels/triangle.h"
#include "../kernels/fused_mlp_case.h"
#include "../kernels/gram_terms.h"

namespace traffic_works {

using namespace keel;  // NOLINT: a header of tests

/// What to launch, its data being on the GPU.
struct Work {
  std::string label;
  std::function<void()> launch;
};

inline Tensor draw(Shape shape, DType dtype = DType::f32) {
  return normal(shape, {3, 1}, 1, dtype).to(Device::cuda());
}

inline Work layer_norm_forward(std::int64_t rows, std::int64_t cols) {
  const Tensor x = draw({rows, cols}), gain = draw({cols}), bias = draw({cols});
  return {fmt::format("layer_norm_relu forward, {} x {}", rows, cols), [=] {
            Tape tape;
            layer_norm_relu(tape.leaf(x), tape.leaf(gain), tape.leaf(bias), 1e-5);
          }};
}

inline Work layer_norm_backward(std::int64_t rows, std::int64_t cols) {
  const auto tape = std::make_shared<Tape>();
  const Var out = layer_norm_relu(tape->leaf(draw({rows, cols})), tape->leaf(draw({cols})),
                                  tape->leaf(draw({cols})), 1e-5);
  return {fmt::format("layer_norm_relu backward, {} x {}", rows, cols),
          [=, d = draw({rows, cols})] {
            GradientSink sink;
            tape->backward(out, d, sink);
          }};
}

inline Work relu_backward(std::int64_t rows, std::int64_t cols) {
  const auto tape = std::make_shared<Tape>();
  const Var out = relu(tape->leaf(draw({rows, cols})));
  return {fmt::format("relu backward, {} x {}", rows, cols), [=, d = draw({rows, cols})] {
            GradientSink sink;
            tape->backward(out, d, sink);
          }};
}

inline std::vector<Work> maps() {
  std::vector<Work> works;
  const std::int64_t n = 4000;
  const auto state = std::make_shared<AdamState>(Tensor::zeros({n}, DType::f32, Device::cuda()));
  works.push_back({fmt::format("adam, {} parameters", n),
                   [=, p = draw({n}), g = draw({n})] { adam(p, g, *state); }});
  works.push_back({"relu, 40 x 128", [x = draw({40, 128})] {
                     Tape tape;
                     relu(tape.leaf(x));
                   }});
  works.push_back(relu_backward(40, 128));
  works.push_back({"mse, 4096 x 1", [x = draw({4096, 1}), y = draw({4096, 1})] {
                     Tape tape;
                     mse(tape.leaf(x), y);
                   }});
  return works;
}

/// Figure 7's sequences: heads of 16, 29 places.
inline std::vector<Work> attentions() {
  const Tensor qkv = draw({4 * 29, 192});
  const auto tape = std::make_shared<Tape>();
  const Var out = attention(tape->leaf(qkv), 29, 4);
  return {{"attention forward, 4 x 29 x 64", [=] { attention(qkv, 29, 4); }},
          {"attention backward, 4 x 29 x 64", [=, d = draw({4 * 29, 64})] {
             GradientSink sink;
             tape->backward(out, d, sink);
           }}};
}

inline Work gather(std::int64_t rows, std::int64_t cols) {
  std::vector<double> order;
  for (const std::int64_t row : permutation(rows, {1, 1}))
    order.push_back(static_cast<double>(row));
  const Device gpu = Device::cuda();
  return {
      fmt::format("gather_rows, {} x {}", rows, cols),
      [=, source = draw({rows, cols}), into = draw({rows, cols}),
       first = Tensor::zeros({1}, DType::f64, gpu),
       order = Tensor::from(order, {rows}).to(gpu)] { gather_rows(source, order, first, into); }};
}

/// Theta of a tile below the diagonal, of dense - layer norm - relu twice, and dense.
inline Work pairs(std::int64_t rows, std::int64_t cols) {
  using Kind = KernelMap::Kind;
  std::vector<KernelMap> steps;
  for (const Kind kind : {Kind::dense, Kind::layer_norm, Kind::relu, Kind::dense, Kind::layer_norm,
                          Kind::relu, Kind::dense}) {
    KernelMap& map = steps.emplace_back();
    map.kind = kind;
    map.weight = map.from_k = kind == Kind::dense ? 2 : 1;
  }
  const Device gpu = Device::cuda();
  const KernelMaps on_gpu(steps, gpu);
  KernelTile tile;
  tile.table_a = tile.table_b =
      kernel_table(on_gpu, Tensor::full({rows + cols}, 1, DType::f64, gpu));
  tile.row = cols;
  tile.inner = Tensor::full({rows, cols}, 0.5, DType::f64, gpu);
  tile.lower = true;
  return {fmt::format("kernel_pairs, {} x {}", rows, cols),
          [=, into = draw({rows, cols})] { kernel_pairs(on_gpu, tile, into, 0, 0); }};
}

inline std::vector<Work> triangles(std::int64_t n) {
  const Tensor a = draw({n, n}), scale = draw({n}, DType::f64);
  const Tensor wide = draw({n, n}, DType::f64), v = draw({n, 1}, DType::f64), into = v.clone();
  return {{fmt::format("mirror_lower, {0} x {0}", n), [=] { mirror_lower(a); }},
          {fmt::format("swap_triangles, {0} x {0}", n), [=] { swap_triangles(a); }},
          {fmt::format("scale_lower, {0} x {0}", n), [=] { scale_lower(a, scale, 1, a); }},
          {fmt::format("symmetric_product, {0} x {0}", n),
           [=] { symmetric_product(wide, Triangle::lower, v, into); }}};
}

/// The lower triangle of n inputs' Gram matrix, of factors of 9 - 128 - 128 - 1, as a GPU of this
/// compute capability makes it.
inline Work gram(std::int64_t n, int capability) {
  GramMatrix matrix = GramMatrix::over(draw({n, n}));
  matrix.lower = true;
  const std::int64_t widths[] = {9, 128, 128, 1};
  for (int layer = 0; layer < 3; ++layer) {
    const GramSide side{{draw({n, widths[layer + 1]})}, draw({n, widths[layer]})};
    matrix.terms.push_back({side, side});
  }
  return {fmt::format("factor_gram, n = {}, sm_{}", n, capability), [=] {
            const gram_terms::EmulatedGpu gpu(capability);
            factor_gram({&matrix, 1});
          }};
}

/// A block takes all tiles of a net. The gradient, or Adam's step by it.
inline Work fused(const char* name, int inputs, std::int64_t members, std::int64_t rows,
                  int tile_rows, bool step = false,
                  const fused_mlp_case::Hidden& hidden = {128, fused_mlp_case::Norm::affine}) {
  using namespace fused_mlp_case;
  const Device gpu = Device::cuda();
  const Problem problem = problem_of({inputs, {hidden, hidden}, 1, rows, members});
  FusedTask task = FusedTask::plan(problem.net, members, rows, tile_rows);
  task.slot_tiles = task.tiles;
  task.member_slots = 1;
  const Tensor parameters = problem.parameters.to(gpu), x = problem.x.to(gpu),
               y = problem.y.to(gpu), losses = draw({members}),
               gradients = draw(parameters.shape()),
               workspace = draw({FusedTask::workspace(problem.net, members, rows)});
  task.parameters = parameters.data<float>();
  task.x = x.data<float>();
  task.y = y.data<float>();
  task.gradients = gradients.data<float>();
  task.losses = losses.data<float>();
  task.use(workspace.data<float>());
  const AdamState state(parameters);
  const Tensor epoch = Tensor::zeros({members}, DType::f64, gpu), row = epoch.clone(),
               record = epoch.clone();
  if (step)
    task.update = {.clock = AdamClock({}, state),
                   .rule = AdamRule<float>(AdamOptions()),
                   .parameters = parameters.data<float>(),
                   .first = state.first.data<float>(),
                   .second = state.second.data<float>(),
                   .record = {members, rows, rows, 1, epoch.data<double>(), row.data<double>(),
                              record.data<double>()}};
  const std::vector<Tensor> kept{parameters,  x,     y,   losses, gradients,    workspace,
                                 state.first, epoch, row, record, state.second, state.step};
  return {fmt::format("fused_mlp{}, {}: {} x {} x {}, tiles of {}", step ? " and Adam" : "", name,
                      members, rows, inputs, tile_rows),
          [=] { (void)kept, fused_mlp(task, gpu); }};
}

/// Of Figure 5's nets, or without their norms, where what gelu was given is kept.
inline Work fused_gelu(bool normed) {
  using namespace fused_mlp_case;
  const Hidden hidden{128, normed ? Norm::affine : Norm::none, {Kind::gelu}};
  return fused(normed ? "gelu" : "gelu without a norm", 1, 2, 100, 64, normed, hidden);
}

inline std::vector<Work> all() {
  std::vector<Work> works;
  for (const std::int64_t cols : {64, 65, 128, 256, 768, 769, 1280, 4096}) {
    works.push_back(layer_norm_forward(cols < 1000 ? 64 : 4, cols));
    works.push_back(layer_norm_backward(cols < 1000 ? 64 : 4, cols));
  }
  for (Work& work : maps()) works.push_back(std::move(work));
  works.push_back(gather(500, 9));
  for (Work& work : attentions()) works.push_back(std::move(work));
  for (Work& work : triangles(128)) works.push_back(std::move(work));
  works.push_back(pairs(8, 256));
  works.push_back(gram(256, 86));
  works.push_back(gram(256, 90));
  works.push_back(fused("ensemble", 1, 2, 100, 32));
  works.push_back(fused("ensemble", 1, 2, 100, 64, true));
  works.push_back(fused("protein", 9, 1, 320, 64));
  works.push_back(fused_gelu(true));
  works.push_back(fused_gelu(false));
  return works;
}

/// The kernels of a work, each counted.
inline std::vector<emulated::KernelTraffic> counted(const Work& work) {
  synchronize(Device::cuda());
  return emulated::Traffic::of([&] {
    work.launch();
    synchronize(Device::cuda());
  });
}

}  // namespace traffic_works

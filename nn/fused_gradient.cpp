#include "fused_gradient.h"

namespace keel {
namespace {

/// None of other words, nor of prelu, whose slope is a parameter.
std::optional<AnyActivation> activation_of(const LayerSpec& spec) {
  using Kind = AnyActivation::Kind;
  switch (spec.kind) {
    case LayerKind::relu:
      return AnyActivation{Kind::relu};
    case LayerKind::leakyrelu:
      return AnyActivation{Kind::leaky_relu, Constant(spec.slope)};
    case LayerKind::gelu:
      return AnyActivation{spec.by_tanh ? Kind::gelu_by_tanh : Kind::gelu};
    case LayerKind::silu:
      return AnyActivation{Kind::silu, Constant(spec.beta)};
    case LayerKind::tanh:
      return AnyActivation{Kind::tanh};
    case LayerKind::sigmoid:
      return AnyActivation{Kind::sigmoid};
    case LayerKind::softplus:
      return AnyActivation{Kind::softplus};
    case LayerKind::elu:
      return AnyActivation{Kind::elu, Constant(spec.alpha)};
    case LayerKind::selu:
      return AnyActivation{Kind::elu, Constant(kSeluScale * kSeluAlpha), Constant(kSeluScale)};
    default:
      return {};
  }
}

/// Fills a description from the words of a SPEC and the entries of a layout, which come in turn.
class Describer {
 public:
  explicit Describer(const Net& net) : net_(net), inputs_(net.input_width()) {}

  std::optional<FusedMlp> describe() {
    const Spec& spec = net_.spec();
    for (std::size_t word = 0; word < spec.size();) {
      if (spec[word].kind != LayerKind::dense || layer_ > FusedMlp::kMostHidden ||
          !small(spec[word]))
        return {};
      FusedLayer& layer = result_.layers[static_cast<std::size_t>(layer_)];
      dense(layer, spec[word++]);
      if (word < spec.size() && normalises_rows(spec[word].kind)) norm(layer, spec[word++]);
      if (word < spec.size())
        if (const auto activation = activation_of(spec[word])) {
          layer.activation = *activation;
          ++word;
        }
      ++layer_;
    }
    result_.hidden = layer_ - 1;
    const FusedLayer& last = result_.layers[static_cast<std::size_t>(result_.hidden)];
    if (last.norm || last.relu() || last.curved() || !result_.fits()) return {};
    return result_;
  }

 private:
  bool small(const LayerSpec& spec) const {
    return inputs_ <= FusedMlp::kMostWidth && spec.width <= FusedMlp::kMostWidth;
  }

  void dense(FusedLayer& layer, const LayerSpec& spec) {
    layer.inputs = static_cast<int>(inputs_);
    layer.outputs = static_cast<int>(spec.width);
    take(FusedParameter::kWeight);
    take(FusedParameter::kBias);
    inputs_ = spec.width;
  }

  void norm(FusedLayer& layer, const LayerSpec& spec) {
    layer.norm = true;
    layer.centred = spec.kind == LayerKind::layernorm;
    layer.affine = spec.affine;
    layer.eps = static_cast<float>(spec.eps);
    if (!spec.affine) return;
    take(FusedParameter::kGain);
    if (layer.centred) take(FusedParameter::kShift);
  }

  void take(FusedParameter::Kind kind) {
    const ParameterLayout::Entry& entry = net_.layout().entries()[entry_++];
    const bool matrix = entry.member.rank() == 2;
    result_.parameters[static_cast<std::size_t>(FusedParameter::kKinds * layer_ + kind)] = {
        .flat = entry.begin,
        .rows = matrix ? static_cast<int>(entry.member[0]) : 1,
        .cols = static_cast<int>(entry.member[entry.member.rank() - 1]),
        .scale = static_cast<float>(entry.scale)};
  }

  const Net& net_;
  std::int64_t inputs_;
  std::size_t entry_ = 0;
  int layer_ = 0;
  FusedMlp result_;
};

FusedMlp required(const Net& net) {
  const auto description = fused_description(net);
  check(description.has_value(), "fused_gradient",
        "got '{}' of {} inputs in {}, wanted 'dense [layernorm | rmsnorm] [an activation but "
        "prelu] ... dense' of widths up to {} in float32",
        spec_text(net.spec()), net.input_width(), name_of(net.flat().dtype()),
        FusedMlp::kMostWidth);
  return *description;
}

// Elements from one member's rows to the next's.
std::int64_t stride_of(const Tensor& rows) {
  return rows.rank() == 3 ? rows.size(1) * rows.size(2) : 0;
}

}  // namespace

std::optional<FusedMlp> fused_description(const Net& net) {
  if (net.flat().dtype() != DType::f32) return {};
  return Describer(net).describe();
}

bool FusedGradient::applies(const Net& net) {
  return net.flat().device().is_cuda() && fused_description(net).has_value();
}

FusedGradient::FusedGradient(const Net& net, Tensor gradients, std::int64_t most_rows, int sharers)
    : description_(required(net)),
      sharers_(sharers),
      members_(net.members()),
      most_rows_(most_rows),
      parameters_(net.flat()),
      gradients_(std::move(gradients)) {
  check_same_kind("fused_gradient", "gradients", gradients_, "the net", parameters_);
  check<ShapeError>(gradients_.shape() == parameters_.shape() && most_rows > 0, "fused_gradient",
                    "got gradients {} for {} rows, wanted {} and some rows", gradients_.shape(),
                    most_rows, parameters_.shape());
  const Device device = parameters_.device();
  losses_ = Tensor::empty({members_}, DType::f32, device);
  workspace_ =
      Tensor::empty({FusedTask::workspace(description_, members_, most_rows)}, DType::f32, device);
}

FusedTask FusedGradient::task_of(const Tensor& x, const Tensor& y) const {
  check_same_kind("fused_gradient", "x", x, "the net", parameters_);
  check_same_kind("fused_gradient", "y", y, "the net", parameters_);
  const auto fits = [&](const Tensor& rows, int cols) {
    return (rows.rank() == 2 || (rows.rank() == 3 && rows.size(0) == members_)) &&
           rows.size(-1) == cols && rows.size(-2) == x.size(-2);
  };
  const FusedLayer& last = description_.layers[static_cast<std::size_t>(description_.hidden)];
  check<ShapeError>(
      x.rank() >= 2 && fits(x, description_.layers[0].inputs) && fits(y, last.outputs) &&
          x.size(-2) > 0 && x.size(-2) <= most_rows_,
      "fused_gradient", "got x {} and y {}, wanted 1 to {} rows of {} and of {} for {} members",
      x.shape(), y.shape(), most_rows_, description_.layers[0].inputs, last.outputs, members_);
  FusedTask task = FusedTask::plan(description_, members_, x.size(-2), 0, sharers_);
  task.use(workspace_.data<float>());
  task.parameters = parameters_.data<float>();
  task.gradients = gradients_.data<float>();
  task.losses = losses_.data<float>();
  task.x = x.data<float>();
  task.y = y.data<float>();
  task.x_stride = stride_of(x);
  task.y_stride = stride_of(y);
  return task;
}

Tensor FusedGradient::run(const Tensor& x, const Tensor& y) {
  fused_mlp(task_of(x, y), parameters_.device());
  return losses_;
}

void FusedGradient::step(const Tensor& x, const Tensor& y, const AdamOptions& options,
                         const AdamState& state, const LossRecord& record) {
  check_adam(options);
  check_same_kind("fused_gradient", "Adam's moments", state.first, "the net", parameters_);
  check<ShapeError>(state.first.shape() == parameters_.shape(), "fused_gradient",
                    "got Adam's moments {}, wanted {}", state.first.shape(), parameters_.shape());
  FusedTask task = task_of(x, y);
  task.update = {.clock = AdamClock(options, state),
                 .rule = AdamRule<float>(options),
                 .parameters = parameters_.data<float>(),
                 .first = state.first.data<float>(),
                 .second = state.second.data<float>(),
                 .record = record};
  fused_mlp(task, parameters_.device());
}

}  // namespace keel

#include "net.h"

#include <algorithm>

#include "../kernels/arithmetic.h"
#include "../kernels/layer_norm.h"

namespace keel {
namespace {

NetOptions with_seeds(NetOptions options) {
  if (options.seeds.empty()) {
    check(options.members >= 1, "net", "got {} members, wanted at least 1", options.members);
    for (std::int64_t s = 0; s < options.members; ++s)
      options.seeds.push_back(options.seed + static_cast<std::uint64_t>(s));
  }
  const auto given = static_cast<std::int64_t>(options.seeds.size());
  check(options.members == 1 || options.members == given, "net", "got {} seeds for {} members",
        given, options.members);
  options.members = given;
  options.seed = options.seeds[0];
  return options;
}

// Rows a block of predict: about 16 MiB of float32 activations a layer.
std::int64_t block_rows(std::int64_t members, std::int64_t widest) {
  constexpr std::int64_t kElements = std::int64_t{1} << 22;
  return std::max<std::int64_t>(1, kElements / (members * widest));
}

}  // namespace

Net::Net(Undrawn, Spec spec, std::int64_t input_width, NetOptions options)
    : spec_(std::move(spec)),
      input_width_(input_width),
      options_(with_seeds(std::move(options))),
      layout_(options_.members) {
  check(!spec_.empty(), "net", "got no layers, wanted some, as in \"dense(128) relu dense(1)\"");
  check<ShapeError>(input_width >= 1, "net", "got input width {}, wanted at least 1", input_width);
  check_residuals(spec_);
  std::int64_t width = widest_ = input_width;
  bool first_dense = true;
  for (const LayerSpec& layer : spec_) {
    DenseInit init{options_.parameterisation, options_.sigma_w2, options_.sigma_b2,
                   options_.weights};
    if (layer.kind == LayerKind::dense && std::exchange(first_dense, false))
      init.sigma_w2 = options_.first_sigma_w2.value_or(options_.sigma_w2);
    first_parameter_.push_back(layout_.entries().size());
    layers_.push_back(joins(layer.kind) ? nullptr : make_layer(layer, init));
    if (!layers_.back()) continue;
    const std::string number = number_of(spec_, layers_.size() - 1);
    for (const ParameterSpec& parameter : layers_.back()->parameters(width))
      layout_.push_back(number, parameter);
    width = layers_.back()->output_width(width);
    widest_ = std::max(widest_, width);
  }
  first_parameter_.push_back(layout_.entries().size());
  output_width_ = width;
  flat_ = Tensor::zeros({layout_.elements()}, options_.dtype, options_.device);
  fuse(true);
}

Net::Net(Spec spec, std::int64_t input_width, NetOptions options)
    : Net(Undrawn(), std::move(spec), input_width, std::move(options)) {
  copy(flat_, initial_values(layout_, options_.seeds, flat_.dtype()));
}

Net::Net(std::string_view spec, std::int64_t input_width, NetOptions options)
    : Net(parse_spec(spec), input_width, std::move(options)) {}

void Net::fuse(bool on) {
  plan_.clear();
  for (std::size_t i = 0; i < spec_.size(); ++i) {
    const bool with_relu = on && normalises_rows(spec_[i].kind) && i + 1 < spec_.size() &&
                           spec_[i + 1].kind == LayerKind::relu;
    plan_.push_back(
        {i, first_parameter_[i], first_parameter_[i + 1] - first_parameter_[i], with_relu});
    if (with_relu) ++i;
  }
}

std::int64_t Net::parameters_per_member() const {
  std::int64_t total = 0;
  for (const auto& entry : layout_.entries()) total += entry.member.elements();
  return total;
}

std::vector<double> Net::values(std::size_t p, std::int64_t member) const {
  check<ShapeError>(member >= 0 && member < members(), "net",
                    "got member {}, wanted one from 0 to {}", member, members() - 1);
  std::vector<double> all =
      layout_.member_view(flat_.to(Device::cpu()), p, member).to_vector<double>();
  for (double& value : all) value *= layout_.entries()[p].scale;
  return all;
}

std::vector<Var> Net::leaves(Tape& tape) const {
  std::vector<Var> leaves;
  leaves.reserve(layout_.entries().size());
  for (std::size_t p = 0; p < layout_.entries().size(); ++p)
    leaves.push_back(tape.leaf(layout_.view(flat_, p)));
  return leaves;
}

void Net::check_input(const char* tag, const Tensor& x) const {
  check_same_kind(tag, "x", x, "the net", flat_);
  const bool own = members() > 1 && x.rank() == 3 && x.size(0) == members();
  // dense and batchnorm take the same rows for all members' parameters.
  const bool shares = members() == 1 || plan_[0].count == 0 ||
                      !(normalises_rows(spec_[0].kind) || spec_[0].kind == LayerKind::prelu);
  check<ShapeError>(shares || x.rank() != 2, tag,
                    "got x {}, wanted [{}, n, {}], as each member's parameters of '{}' see rows of "
                    "their own",
                    x.shape(), members(), input_width_, name_of(spec_[0].kind));
  if ((x.rank() == 2 || own) && x.size(-1) == input_width_) return;
  check<ShapeError>(members() == 1, tag, "got x {}, wanted [n, {}] or [{}, n, {}]", x.shape(),
                    input_width_, members(), input_width_);
  fail<ShapeError>(tag, "got x {}, wanted [n, {}]", x.shape(), input_width_);
}

Var Net::run(const Step& step, const Var& x, std::span<const Var> parameters) const {
  const auto own = parameters.subspan(step.parameter, step.count);
  if (!step.with_relu) return layers_[step.layer]->apply(x, own);
  const LayerSpec& norm = spec_[step.layer];
  if (norm.kind == LayerKind::rmsnorm)
    return norm.affine ? rms_norm_relu(x, own[0], norm.eps) : rms_norm_relu(x, norm.eps);
  return norm.affine ? layer_norm_relu(x, own[0], own[1], norm.eps) : layer_norm_relu(x, norm.eps);
}

bool Net::mixes_rows() const {
  return std::any_of(spec_.begin(), spec_.end(),
                     [](const LayerSpec& layer) { return layer.kind == LayerKind::batchnorm; });
}

void Net::check_rows_apart(const char* tag) const {
  check(!mixes_rows(), tag,
        "got '{}', wanted a net of one row at a time: in training a batchnorm takes statistics of "
        "all rows (frozen() makes a net that keeps them)",
        spec_text(spec_));
}

Var Net::forward(const Var& x, std::span<const Var> parameters) const {
  return forward(x, parameters, spec_.size());
}

Var Net::forward(const Var& x, std::span<const Var> parameters, std::size_t layers) const {
  check_input("net", x.value());
  check<ShapeError>(parameters.size() == layout_.entries().size(), "net",
                    "got {} parameters, wanted {}", parameters.size(), layout_.entries().size());
  Var value = x, kept = x;
  for (const Step& step : plan_) {
    if (step.layer >= layers) break;
    const LayerKind kind = spec_[step.layer].kind;
    if (kind == LayerKind::residual)
      kept = value;
    else
      value = kind == LayerKind::add ? add(kept, value) : run(step, value, parameters);
  }
  return value;
}

Tensor Net::predict(const Tensor& x) const {
  check_input("predict", x);
  check_rows_apart("predict");
  std::vector<Var> constants;
  for (std::size_t p = 0; p < layout_.entries().size(); ++p)
    constants.push_back(layout_.view(flat_, p));
  const std::int64_t n = x.size(-2), block = block_rows(members(), widest_);
  if (n <= block) return forward(x, constants).value();

  const bool own = x.rank() == 3;
  const std::int64_t s_count = members();
  Tensor out =
      Tensor::empty(s_count > 1 ? Shape{s_count, n, output_width_} : Shape{n, output_width_},
                    x.dtype(), x.device());
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(begin + block, n);
    Tensor rows = own ? Tensor::empty({s_count, end - begin, input_width_}, x.dtype(), x.device())
                      : x.slice(begin, end);
    if (own)
      for (std::int64_t s = 0; s < s_count; ++s) copy(rows[s], x[s].slice(begin, end));
    const Tensor part = forward(rows, constants).value();
    if (s_count == 1) copy(out.slice(begin, end), part);
    for (std::int64_t s = 0; s_count > 1 && s < s_count; ++s)
      copy(out[s].slice(begin, end), part[s]);
  }
  return out;
}

Net Net::clone() const { return to(flat_.dtype()); }

Net Net::to(DType dtype) const {
  NetOptions options = options_;
  options.dtype = dtype;
  Net copied(Undrawn(), spec_, input_width_, options);
  copied.plan_ = plan_;
  copy(copied.flat_, flat_);
  return copied;
}

Net Net::member(std::int64_t s) const {
  check<ShapeError>(s >= 0 && s < members(), "net", "got member {}, wanted one from 0 to {}", s,
                    members() - 1);
  NetOptions options = options_;
  options.members = 1;
  options.seeds = {options_.seeds[s]};
  Net one(Undrawn(), spec_, input_width_, options);
  one.plan_ = plan_;
  copy_member(one.layout_, one.flat_, 0, layout_, flat_, s);
  return one;
}

void Net::set_member(std::int64_t s, const Net& one) {
  check<ShapeError>(s >= 0 && s < members(), "net", "got member {}, wanted one from 0 to {}", s,
                    members() - 1);
  check<ShapeError>(one.members() == 1 && one.spec_ == spec_ && one.input_width_ == input_width_,
                    "net", "got {} members of '{}' of {} inputs, wanted 1 member of '{}' of {}",
                    one.members(), spec_text(one.spec_), one.input_width_, spec_text(spec_),
                    input_width_);
  copy_member(layout_, flat_, s, one.layout_, one.flat_, 0);
}

}  // namespace keel

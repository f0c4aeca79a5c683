#include "trained_net.h"

#include "../nn/weights.h"
#include "examples.h"

namespace keel {
namespace {

// Features of the first layer, from its weight [out, in].
std::int64_t input_width(const Spec& spec, const SafeTensors& content, const std::string& path) {
  const std::string name = fmt::format("{}.weight", word_of(spec, 0) - 1);
  check(content.find("member0." + name) == nullptr, "certify",
        "{} holds an ensemble, wanted one net: keel train --seeds 1", path);
  const Tensor* first = content.find(name);
  check(first != nullptr, "certify",
        "{} has no '{}', wanted a torch.nn.Sequential's names; a layer without weights, as "
        "Flatten, is the word 'identity'",
        path, name);
  check<ShapeError>(first->rank() == 2 && first->size(0) == spec[0].width && first->size(1) > 0,
                    "certify", "{}: '{}' has shape {}, wanted [{}, inputs]", path, name,
                    first->shape(), spec[0].width);
  return first->size(1);
}

}  // namespace

Net trained_net(const std::string& net, const std::string& weights, const std::string& standardise,
                const Context& context) {
  const SafeTensors content = read_weights(weights);
  const auto written = content.metadata.find(kStandardiseKey);
  // Units that the net was not trained in would make another function of it.
  if (!standardise.empty() && written != content.metadata.end())
    check(written->second == standardise, "certify",
          "{} is of a net that keel trained with --standardise {}, got {}", weights,
          shown(written->second), standardise);

  NetOptions options;
  options.dtype = DType::f64;  // the search is to see the net, not float32's rounding
  options.device = context.device;
  const Spec spec = parse_spec(net);
  Net result(spec, input_width(spec, content, weights), options);
  const std::vector<std::string> zeros = load_weights(result, weights, MissingBias::zero);
  if (!zeros.empty())
    context.note(fmt::format("note: {} has no {}: zeros, as of PyTorch's bias=False", weights,
                             fmt::join(zeros, ", ")));
  return result;
}

}  // namespace keel

#include "checkpoint.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "safetensors.h"

namespace keel {
namespace {

constexpr const char* kCheckpoint = "checkpoint";
constexpr const char* kFormat = "keel checkpoint 1";

// Of a checkpoint from before they were written down: none.
double seconds_of(const SafeTensors& content, const std::string& path) {
  const auto found = content.metadata.find("seconds");
  if (found == content.metadata.end()) return 0;
  const std::string& text = found->second;
  double seconds = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), seconds);
  check(end.ec == std::errc() && end.ptr == text.data() + text.size() && seconds >= 0 &&
            std::isfinite(seconds),
        kCheckpoint, "{}: got {} seconds, wanted a number of them", path, shown(text));
  return seconds;
}

std::string moment_name(std::size_t i) { return fmt::format("moment{}", i); }

const Tensor& find(const SafeTensors& content, const std::string& path, const std::string& name,
                   const Shape& shape, DType dtype) {
  const Tensor* found = content.find(name);
  check(found != nullptr, kCheckpoint, "{}: '{}' is missing", path, name);
  check<ShapeError>(found->shape() == shape, kCheckpoint, "{}: '{}' has shape {}, wanted {}", path,
                    name, found->shape(), shape);
  check(found->dtype() == dtype, kCheckpoint, "{}: '{}' is {}, wanted {}", path, name,
        name_of(found->dtype()), name_of(dtype));
  return *found;
}

// Of two data texts, the fingerprints of inputs and targets.
const char* what_differs(const std::string& had, const std::string& wanted) {
  const std::size_t had_x = had.find('-'), wanted_x = wanted.find('-');
  const bool x = had.substr(0, had_x) != wanted.substr(0, wanted_x);
  const bool y = had_x == had.npos || had.substr(had_x) != wanted.substr(wanted_x);
  return x && y ? "inputs and targets" : x ? "inputs" : "targets";
}

}  // namespace

std::string net_text(const Net& net) {
  const NetOptions& o = net.options();
  return fmt::format(
      "{} on {} inputs, {},{} sigma_w2 {}, first {}, sigma_b2 {}, seeds {}, {} on {}",
      spec_text(net.spec()), net.input_width(),
      o.parameterisation == Parameterisation::ntk ? "ntk" : "standard",
      o.weights == Distribution::uniform ? " uniform weights," : "", o.sigma_w2,
      o.first_sigma_w2.value_or(o.sigma_w2), o.sigma_b2, fmt::join(o.seeds, ","), name_of(o.dtype),
      o.device.is_cpu() ? "cpu" : "cuda");
}

std::string training_text(const StepOptions& options) {
  std::string text = fmt::format("{}, batch {}, shuffle seed {}", optimiser_text(options.optimiser),
                                 options.batch, options.shuffle_seed);
  // A GPU's order of sums follows from it.
  if (options.sharers != 1) text += fmt::format(", {} that share the GPU", options.sharers);
  return text;
}

std::string fingerprint(const Tensor& x) {
  const Tensor host = x.to(Device::cpu());
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto feed = [&](const void* bytes, std::size_t count) {
    const auto* byte = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < count; ++i) hash = (hash ^ byte[i]) * 0x100000001b3u;
  };
  const std::string kind = host.shape().str() + name_of(host.dtype());
  feed(kind.data(), kind.size());
  dispatch(host.dtype(), [&](auto t) { feed(host.data<decltype(t)>(), host.bytes()); });
  return fmt::format("{:016x}", hash);
}

bool is_checkpoint(const SafeTensors& file) {
  const auto format = file.metadata.find("format");
  return format != file.metadata.end() && format->second == kFormat;
}

void check_no_other_file(const std::string& path) {
  std::error_code problem;
  if (!std::filesystem::exists(path, problem)) return;
  const bool own = [&] {
    try {
      return is_checkpoint(read_safetensors(path, [](const std::string&) { return false; }));
    } catch (const Error&) {  // of another kind of file
      return false;
    }
  }();
  check(own, kCheckpoint, "got '{}', where a file is that is no checkpoint, wanted another name",
        path);
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  SafeTensors content;
  content.metadata = {{"format", kFormat},
                      {"net", checkpoint.net},
                      {"data", checkpoint.data},
                      {"options", checkpoint.options},
                      {"seconds", fmt::format("{}", checkpoint.seconds)}};
  const std::vector<double> done(checkpoint.done.begin(), checkpoint.done.end());
  content.tensors.emplace_back("done",
                               Tensor::from(done, {static_cast<std::int64_t>(done.size())}));
  content.tensors.emplace_back("losses", checkpoint.losses);
  content.tensors.emplace_back("parameters", checkpoint.parameters);
  for (std::size_t i = 0; i < checkpoint.moments.size(); ++i)
    content.tensors.emplace_back(moment_name(i), checkpoint.moments[i]);
  write_safetensors(path, content);
}

void read_checkpoint(const std::string& path, Checkpoint& into) {
  SafeTensors content = read_safetensors(path);
  check(content.metadata["format"] == kFormat, kCheckpoint, "{}: got format '{}', wanted '{}'",
        path, content.metadata["format"], kFormat);
  const auto check_same = [&](const char* what, const std::string& wanted) {
    check(content.metadata[what] == wanted, kCheckpoint, "{}: is of {} '{}', wanted '{}'", path,
          what, content.metadata[what], wanted);
  };
  check_same("net", into.net);
  check(content.metadata["data"] == into.data, kCheckpoint,
        "{}: is of a training on other {}, wanted the same, in the same units", path,
        what_differs(content.metadata["data"], into.data));
  check_same("options", into.options);

  const std::int64_t members = into.losses.size(0), epochs = into.losses.size(1);
  const std::vector<double> done =
      find(content, path, "done", {members}, DType::f64).to_vector<double>();
  const Tensor* losses = content.find("losses");
  check(losses != nullptr && losses->rank() == 2 && losses->size(0) == members &&
            losses->dtype() == DType::f64,
        kCheckpoint, "{}: 'losses' is missing or not float64 [{}, epochs]", path, members);
  for (std::int64_t s = 0; s < members; ++s)
    check(done[s] >= 0 && done[s] <= static_cast<double>(std::min(epochs, losses->size(1))) &&
              done[s] == std::floor(done[s]),
          kCheckpoint, "{}: member {} has done {} epochs, wanted at most {}", path, s, done[s],
          epochs);
  const double seconds = seconds_of(content, path);
  // Found before anything is copied: a refused file leaves everything as it was.
  const auto like = [&](const std::string& name, const Tensor& wanted) -> const Tensor& {
    return find(content, path, name, wanted.shape(), wanted.dtype());
  };
  const Tensor& parameters = like("parameters", into.parameters);
  for (std::size_t i = 0; i < into.moments.size(); ++i) like(moment_name(i), into.moments[i]);
  for (std::int64_t s = 0; s < members; ++s) {
    const auto kept = static_cast<std::int64_t>(done[s]);
    into.done[s] = kept;
    copy(into.losses[s].slice(0, kept), (*losses)[s].slice(0, kept));
  }
  into.seconds = seconds;
  copy(into.parameters, parameters);
  for (std::size_t i = 0; i < into.moments.size(); ++i)
    copy(into.moments[i], *content.find(moment_name(i)));
}

}  // namespace keel

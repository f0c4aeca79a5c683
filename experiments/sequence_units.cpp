#include "sequence_units.h"

#include <cmath>
#include <optional>

#include "../nn/checkpoint.h"
#include "../nn/spec_word.h"
#include "output.h"

namespace keel {
namespace {

constexpr const char *kCentreKey = "keel.centre", *kScaleKey = "keel.scale",
                     *kTrainedOnKey = "keel.trained_on";

// "259 0123456789abcdef"
std::string trained_on_text(const std::vector<double>& values, std::int64_t trained) {
  const std::vector<double> seen(values.begin(), values.begin() + trained);
  return fmt::format("{} {}", trained, fingerprint(Tensor::from(seen, {trained})));
}

}  // namespace

std::vector<double> SequenceUnits::standardised(std::vector<double> values) const {
  for (double& value : values) value = standardised(value);
  return values;
}

std::vector<double> SequenceUnits::own(std::vector<double> values) const {
  for (double& value : values) value = own(value);
  return values;
}

std::map<std::string, std::string> notes_of(const SequenceUnits& units) {
  return {{kCentreKey, shortest(units.centre)}, {kScaleKey, shortest(units.scale)}};
}

SequenceUnits units_of_file(const SafeTensors& file, const std::string& path,
                            const Context& context) {
  const auto number_of = [&](const char* key) -> std::optional<double> {
    const auto found = file.metadata.find(key);
    if (found == file.metadata.end()) return {};
    const Json number = Json::parse(found->second, nullptr, false);
    check(number.is_number(), "transformer", "{}: got '{}' for {}, wanted a number", path,
          shown(found->second), key);
    return number.get<double>();
  };
  const std::optional<double> centre = number_of(kCentreKey), scale = number_of(kScaleKey);
  check(centre.has_value() == scale.has_value(), "transformer",
        "{}: got {} alone of {} and {}, wanted both or none", path, centre ? kCentreKey : kScaleKey,
        kCentreKey, kScaleKey);
  if (!scale) {
    context.note(fmt::format("note: {} names no {} and {}: these are the nets' own units", path,
                             kCentreKey, kScaleKey));
    return {};
  }
  check(*scale > 0 && std::isnormal(*scale), "transformer", "{}: got {} for {}, wanted more than 0",
        path, *scale, kScaleKey);
  return {*centre, *scale};
}

std::map<std::string, std::string> note_of_training(const std::vector<double>& values,
                                                    std::int64_t trained) {
  return {{kTrainedOnKey, trained_on_text(values, trained)}};
}

std::int64_t rows_trained_on(const SafeTensors& file, const std::vector<double>& values) {
  const auto found = file.metadata.find(kTrainedOnKey);
  if (found == file.metadata.end()) return 0;
  const std::string count = found->second.substr(0, found->second.find(' '));
  std::int64_t trained = 0;
  if (!parse_whole(count, trained) || trained < 1 || trained > std::ssize(values)) return 0;
  return found->second == trained_on_text(values, trained) ? trained : 0;
}

}  // namespace keel

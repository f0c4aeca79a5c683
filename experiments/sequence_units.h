// The units of a series, as nets that continue it see them, and as their files of weights name
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../nn/safetensors.h"
#include "command.h"

namespace keel {

/// A series' own values are those of nets times `scale`, plus `centre`.
struct SequenceUnits {
  double centre = 0, scale = 1;

  double standardised(double own) const { return (own - centre) / scale; }
  double own(double standardised) const { return scale * standardised + centre; }
  std::vector<double> standardised(std::vector<double> own) const;
  std::vector<double> own(std::vector<double> standardised) const;
};

/// For a file's metadata.
std::map<std::string, std::string> notes_of(const SequenceUnits& units);

/// Those that the file at `path` names; where it names none, the nets' own, with a note. Throws
/// keel::Error where it names one alone, or they are no numbers that can be used.
SequenceUnits units_of_file(const SafeTensors& file, const std::string& path,
                            const Context& context);

/// For a file's metadata, of nets that were trained on the first `trained` of these values: how
/// many, and their fingerprint.
std::map<std::string, std::string> note_of_training(const std::vector<double>& values,
                                                    std::int64_t trained);

/// How many of these values, from the first, the nets of that file were trained on: 0 where it does
/// not say, or names others.
std::int64_t rows_trained_on(const SafeTensors& file, const std::vector<double>& values);

}  // namespace keel

// WeightsReader: a file of weights, tensor by tensor, and what to say of those that do not fit.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "parameter_names.h"
#include "spec.h"

namespace keel {

/// Throws keel::Error that names the first element of `name` that is no finite number.
void check_finite_weights(const Tensor& values, const std::string& path, const std::string& name);

/// The tensors of the file that was read from `path`, and the names that nobody has taken yet.
/// `path` and `spec` must outlive it.
class WeightsReader {
 public:
  static constexpr std::string_view kRunningMean = ".running_mean";

  WeightsReader(const SafeTensors& file, const std::string& path, const Spec& spec,
                const std::vector<std::string>& modules)
      : path_(path),
        spec_(spec),
        by_number_(modules.empty()),
        content_(by_layer_names(file, path, modules)),
        left_(content_.names()) {}

  /// find_parameter(), as PyTorch has it, of this shape, all of it finite; else keel::Error, with
  /// what may help.
  Tensor take(const std::string& name, const Shape& shape);

  bool has(const std::string& name) const;

  /// The layer is there, and was made without a bias: save_weights() leaves none out.
  bool lacks_bias(const std::string& name) const;

  /// A norm of Flax's or Keras's is there with a bias, and was made without a gain.
  bool lacks_gain(const std::string& name) const;

  bool of_another_library() const { return library_of(content_) != Library::pytorch; }

  /// As messages have it: as_in_file().
  std::string shown_name(const std::string& name) const { return as_in_file(content_, name); }

  void leave(const std::string& name) { left_.erase(name); }

  /// Throws keel::Error unless all was taken, and keel wrote nothing else of what it is.
  void finish() const;

 private:
  std::string hint() const;                         // of what was not taken
  std::string hint(const std::string& name) const;  // what may help, or nothing

  const std::string& path_;
  const Spec& spec_;
  bool by_number_;
  SafeTensors content_;
  std::set<std::string> left_;
};

}  // namespace keel

// Net: a SPEC with its parameters, for one member or an ensemble of S that run at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "layout.h"

namespace keel {

struct NetOptions {
  Parameterisation parameterisation = Parameterisation::standard;
  std::int64_t members = 1;
  std::uint64_t seed = 0;              ///< member s is drawn from seed + s,
  std::vector<std::uint64_t> seeds{};  ///< or from seeds[s]: then `members` may stay 1
  DType dtype = DType::f32;
  Device device{};
  double sigma_w2 = 2;                     ///< of every dense layer,
  std::optional<double> first_sigma_w2{};  ///< but the first, where this is given
  double sigma_b2 = 0.01;
  Distribution weights = Distribution::normal;
};

/// The parameters live in one flat tensor, laid out by layout(). Member s has exactly the weights
/// of a net of one member with that seed, on every device. Moving is cheap; copying is by clone(),
/// since tensors share their elements.
class Net {
 public:
  /// Throws keel::Error where the SPEC is empty or has a slope, alpha or beta out of its range,
  /// there are no members or not a seed each, sigma_w2 is not above 0, sigma_b2 is below 0 or one
  /// is not finite, and as check_residuals(); ShapeError where a width is below 1.
  Net(Spec spec, std::int64_t input_width, NetOptions options = {});

  /// The same of a SPEC's text. Throws what parse_spec() throws, too.
  Net(std::string_view spec, std::int64_t input_width, NetOptions options = {});
  Net(Net&&) = default;
  Net& operator=(Net&&) = default;

  const Spec& spec() const { return spec_; }
  const NetOptions& options() const { return options_; }  ///< with seeds filled in
  std::int64_t members() const { return layout_.members(); }
  std::int64_t input_width() const { return input_width_; }
  std::int64_t output_width() const { return output_width_; }
  std::int64_t widest() const { return widest_; }  ///< units of the widest layer, inputs included
  std::int64_t parameters_per_member() const;
  const ParameterLayout& layout() const { return layout_; }

  /// Of layer i of the SPEC: the first of its parameters in layout order; one past the last layer:
  /// their number. Throws std::out_of_range beyond.
  std::size_t first_parameter(std::size_t layer) const { return first_parameter_.at(layer); }
  const Tensor& flat() const { return flat_; }

  /// Parameter p of a member, row by row, times its scale: what a layer multiplies by or adds.
  /// Throws ShapeError where there is no such parameter or member.
  std::vector<double> values(std::size_t p, std::int64_t member = 0) const;

  /// Every parameter as a leaf of `tape`, in layout order: the first slots of a cleared tape.
  std::vector<Var> leaves(Tape& tape) const;

  /// Whether a row's output depends on the other rows: there is a batchnorm.
  bool mixes_rows() const;

  /// Throws keel::Error where it does: frozen() makes a net of which it does not.
  void check_rows_apart(const char* tag) const;

  /// x [n, input_width], or [S, n, input_width] for S > 1 members -> [n, k], or [S, n, k]. Of
  /// several members that begin with a norm or prelu with parameters (parse_tail()) the latter
  /// alone. Throws ShapeError or DeviceError.
  Var forward(const Var& x, std::span<const Var> parameters) const;

  /// As forward, of the first `layers` of the SPEC alone; what relu does in one op with a norm is
  /// not left out.
  Var forward(const Var& x, std::span<const Var> parameters, std::size_t layers) const;

  /// As forward, without a tape, in blocks of rows: memory stays small however long x is. Throws
  /// as forward(), and keel::Error where the net mixes rows.
  Tensor predict(const Tensor& x) const;

  Net clone() const;
  Net to(DType dtype) const;  ///< a copy, its parameters in that type

  /// A copy of member s, as a net of its own. Throws ShapeError where there is none.
  Net member(std::int64_t s) const;

  /// Copies the parameters of `one`, a net of one member of the same SPEC and input width. Throws
  /// ShapeError where it is another, or of other scales, or there is no member s.
  void set_member(std::int64_t s, const Net& one);

  /// A layernorm or rmsnorm followed by relu runs as one op, to the same bits (on unless a test
  /// says otherwise).
  void fuse(bool on);

 private:
  // A step of the execution plan: one layer, or a norm and its relu.
  struct Step {
    std::size_t layer, parameter, count;  // its own, and its run of parameters
    bool with_relu;
  };
  struct Undrawn {};
  Net(Undrawn, Spec spec, std::int64_t input_width, NetOptions options);
  void check_input(const char* tag, const Tensor& x) const;
  Var run(const Step& step, const Var& x, std::span<const Var> parameters) const;

  Spec spec_;
  std::int64_t input_width_, output_width_ = 0, widest_ = 0;
  NetOptions options_;
  std::vector<std::shared_ptr<const Layer>> layers_;  // none for what joins
  std::vector<std::size_t> first_parameter_;  // of each layer, and the total behind the last
  std::vector<Step> plan_;
  ParameterLayout layout_;
  Tensor flat_;
};

}  // namespace keel

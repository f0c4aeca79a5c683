// ParameterLayout: where each parameter of a net, or of an ensemble, lies in one flat tensor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "layer.h"

namespace keel {

/// Parameters one after another; each is [o, i] or [o], or with S > 1 members [S, o, i] or [S, o]:
/// what dense and layer_norm take. Begins are rounded up to 64 bytes of float32; the gaps stay
/// zero.
class ParameterLayout {
 public:
  struct Entry {
    std::string name;  ///< "2.weight": the layer's number_of() in the SPEC, and its own
    Shape member;      ///< shape within one member
    std::int64_t begin;
    double mean, stddev, scale;  ///< as in ParameterSpec
    Distribution distribution;
  };

  explicit ParameterLayout(std::int64_t members) : members_(members) {}
  void push_back(const std::string& layer, const ParameterSpec& parameter);
  void push_back(std::int64_t layer, const ParameterSpec& parameter) {
    push_back(fmt::to_string(layer), parameter);
  }

  const std::vector<Entry>& entries() const { return entries_; }
  std::int64_t members() const { return members_; }
  std::int64_t elements() const { return elements_; }  ///< of a flat tensor, gaps included

  /// Of parameter p of all members: [o, i], or [S, o, i].
  Shape shape(std::size_t p) const;

  /// Parameter p of all members within `flat`.
  Tensor view(const Tensor& flat, std::size_t p) const;

  /// Parameter p of member s within `flat`: [o, i]. Throws ShapeError, as view() does, where there
  /// is none of that number.
  Tensor member_view(const Tensor& flat, std::size_t p, std::int64_t s) const;

 private:
  std::int64_t members_, elements_ = 0;
  std::vector<Entry> entries_;
};

/// What training starts from, as a flat tensor on the CPU: parameter p of member s is drawn by
/// (seeds[s], p) alone, so that it is that of a net of one member with that seed. Throws ShapeError
/// where there is not a seed a member.
Tensor initial_values(const ParameterLayout& layout, std::span<const std::uint64_t> seeds,
                      DType dtype);

/// Copies member s of `from` over member t of `into`: layouts of one net, for any number of
/// members. Throws ShapeError where they are of two, or of two parameterisations.
void copy_member(const ParameterLayout& into_layout, const Tensor& into, std::int64_t t,
                 const ParameterLayout& from_layout, const Tensor& from, std::int64_t s);

}  // namespace keel

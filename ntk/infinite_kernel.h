// InfiniteKernel: what the kernels of a net tend to as its hidden layers widen. Derivations:
// docs/kernels.md.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "../kernels/kernel_pairs.h"
#include "../nn/layer.h"
#include "kernel.h"
#include "supremum.h"

namespace keel {

struct InfiniteKernelOptions {
  /// standard: Theta of the standard parameterisation, each weight block times fan_in / sigma_w2
  /// and each bias block times 1 / sigma_b2, with the fan_in that the SPEC states.
  Parameterisation parameterisation = Parameterisation::ntk;
  double sigma_w2 = 2;                     ///< of every dense layer,
  std::optional<double> first_sigma_w2{};  ///< but the first, where this is given
  double sigma_b2 = 0.01;
  Device device{};
};

/// ntk: Theta, the kernel of trained nets. nngp: K, the covariance of the output at initialisation.
enum class KernelOutput { ntk, nngp };

/// Arithmetic is in double, whatever the tensors that take the results hold. Inputs may be as long
/// as |x|^2 / n0 = 1e100; x = 0 is as good as any other.
class InfiniteKernel : public Kernel {
 public:
  /// Throws keel::Error naming the word of the SPEC that has no kernel map where it stands: an
  /// activation, say, on what another activation left, which is not Gaussian.
  InfiniteKernel(Spec spec, std::int64_t input_width, InfiniteKernelOptions options = {},
                 KernelOutput output = KernelOutput::ntk);
  InfiniteKernel(std::string_view spec, std::int64_t input_width,
                 InfiniteKernelOptions options = {}, KernelOutput output = KernelOutput::ntk);

  const Spec& spec() const { return spec_; }
  const InfiniteKernelOptions& options() const { return options_; }
  KernelOutput output() const { return output_; }
  std::int64_t input_width() const override { return input_width_; }
  Device device() const override { return options_.device; }

  /// Throws keel::Error naming a row that is not finite or too long.
  std::shared_ptr<const Points> points(const Tensor& x) const override;
  void gram(const Points& a, const Points& b, const Tensor& into,
            const WorkProgress& progress = {}) const override;
  void gram_lower(const Points& a, const Tensor& into,
                  const WorkProgress& progress = {}) const override;
  Tensor diag(const Points& a) const override;

  /// Each tile of pairs serves its rows and its columns; the same bits for any number of threads.
  Tensor product(const Points& a, const Tensor& v) const override;
  double rounding(const Points& of) const override;

  /// The kernel at (x, x), a function of r = |x|^2 / n0 alone.
  double diagonal(double r) const;

  /// The kernel at (x, x') from r = |x|^2 / n0, r' and c = x.x' / n0.
  double entry(double r, double r2, double c) const;

  /// farthest: over |x| <= farthest alone.
  Supremum supremum(double farthest = kInfinity) const;

 private:
  class Inputs;
  struct Scratch;
  struct Block;
  const Inputs& inputs(const char* tag, const Points& points) const;
  std::int64_t gpu_tile() const;  // rows and columns of a tile there
  Scratch scratch(std::int64_t rows, std::int64_t cols) const;
  void tile(const Inputs& a, const Inputs& b, const Block& block, bool lower,
            const Scratch& scratch, const Tensor& into, std::int64_t into_row,
            std::int64_t into_col) const;
  void fill(const Inputs& a, const Inputs& b, bool lower, const Tensor& into,
            const WorkProgress& progress) const;

  Spec spec_;
  std::int64_t input_width_;
  InfiniteKernelOptions options_;
  KernelOutput output_;
  std::shared_ptr<const KernelMaps> maps_, host_maps_;  // on device(), and on the CPU
};

}  // namespace keel

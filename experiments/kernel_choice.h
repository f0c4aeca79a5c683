// Which kernel a command works with: the options that `keel ntk`, `regress` and `certify` share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../nn/safetensors.h"
#include "../ntk/empirical_kernel.h"
#include "../ntk/infinite_kernel.h"
#include "command.h"

namespace keel {

struct KernelChoice {
  std::string net, mode = "infinite", parameterisation = "ntk", dtype, weights, modules;
  double sigma_w2 = 2, sigma_b2 = 0.01;
  std::optional<double> first_sigma_w2;
  std::int64_t seeds = 1;
  bool may_be_trained = false;  ///< set by a command with a --mode trained, which has no kernel

  bool trained() const { return mode == "trained"; }
  bool infinite() const { return mode == "infinite"; }
  DType element() const { return dtype == "f32" ? DType::f32 : DType::f64; }
};

/// --net, --mode, --param, --dtype, --sigma-w2, --first-sigma-w2, --sigma-b2, --seeds, --weights,
/// --modules. `dtypes`: what f32 and f64 are of.
void declare_kernel(CLI::App& app, KernelChoice& choice, const std::string& dtypes);

/// The words of --modules, one for each layer that has weights.
std::vector<std::string> modules_of(const std::string& text);

/// What --weights holds, if it was given; it says the SPEC where --net does not. Throws UsageError
/// where options contradict each other or nothing says a SPEC, and keel::Error where the file is
/// none of one net.
std::optional<SafeTensors> completed(KernelChoice& choice);

/// The net of --mode empirical, members --seed, --seed + 1, ... or that of completed()'s `weights`.
Net make_net(const KernelChoice& choice, std::int64_t input_width,
             const std::optional<SafeTensors>& weights, const Context& context);

std::shared_ptr<const InfiniteKernel> make_infinite(const KernelChoice& choice,
                                                    std::int64_t input_width,
                                                    const Context& context,
                                                    KernelOutput output = KernelOutput::ntk);

/// The one or the other, by --mode.
std::shared_ptr<const Kernel> make_kernel(const KernelChoice& choice, std::int64_t input_width,
                                          const std::optional<SafeTensors>& weights,
                                          const Context& context);

/// For summary.json.
Json kernel_json(const KernelChoice& choice, const Context& context);

}  // namespace keel

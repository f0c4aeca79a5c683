// Figures 1, 5 and 6, RMSNorm's, residual connections' and other activations': one-dimensional data
// sets, ensembles trained on them, curves far outside.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../core/tensor.h"
#include "../ntk/interval.h"
#include "statistics.h"

namespace keel {

/// The paper's text gives neither formulas nor ranges; ours: y = f(x) at 100 evenly spaced points
/// of [-5, 5], both ends included.
struct ToyData {
  const char* name;
  const char* formula;
  double (*f)(double x);
};

/// sinusoid y = sin x, linear y = x / 2, quadratic y = x^2 / 5.
const std::vector<ToyData>& toy_data();

inline constexpr std::int64_t kToyPoints = 100;
inline constexpr double kToyEnd = 5;     ///< data on [-kToyEnd, kToyEnd]
inline constexpr double kCurveEnd = 25;  ///< curves on [-kCurveEnd, kCurveEnd]
inline constexpr std::int64_t kCurvePoints = 501;
inline constexpr double kFarBegin = 1e2, kFarEnd = 1e4;  ///< |x| of what is far from the data

/// `count` values from `begin` to `end`, both included; at equal ratios for log_spaced.
std::vector<double> evenly_spaced(double begin, double end, std::int64_t count);
std::vector<double> log_spaced(double begin, double end, std::int64_t count);

/// [values / width, width] float64 on the CPU.
Tensor rows_of(const std::vector<double>& values, std::int64_t width);

/// A column of a figure.
struct ToyNet {
  std::string net;         ///< standard; or first, second or every behind ln_, rms_ or bn_;
                           ///< of residuals also ln_within and ln_last
  std::string activation;  ///< a word of a SPEC
  std::string spec;
};

/// Two hidden layers of 128 and one output; Layer Norm, RMSNorm or Batch Norm between a layer and
/// its activation. `net` as in ToyNet.
ToyNet toy_net(const std::string& net, const std::string& activation);

/// What became of one net on one data set; every list has one entry a seed, unless said.
struct ToyPanel {
  const ToyData* data;
  ToyNet net;
  std::vector<std::vector<double>> curves{};  ///< predictions at ToyRun::x
  std::vector<Estimate> band{};               ///< of their mean, by x
  std::vector<double> train_mse{};
  std::vector<double> exponents{};  ///< far-field growth: see far_field_exponent
  std::vector<double> far_size{};   ///< mean of |f(-1e4)| and |f(1e4)|
  std::vector<Interval> proved{};   ///< f of every x is in; empty where nothing bounds the net
  bool closed = false;              ///< each of their ends is next to what f reaches: kNearFound
  Interval proved_of_all() const;   ///< that no seed's net leaves; there must be one
};

struct ToyOptions {
  std::int64_t seeds = 5, epochs = 3000;
  std::uint64_t first_seed = 0;
  Device device;
  std::function<void(std::int64_t)> progress;  ///< epochs done, of toy_epochs(); from any thread
};

struct ToyRun {
  std::vector<double> training_x, x;  ///< of the data, of the curves
  std::vector<ToyPanel> panels;       ///< data sets within nets
  double training_seconds = 0, proof_seconds = 0;
};

/// Epochs that run_toy_figure trains, summed over nets and members.
std::int64_t toy_epochs(std::size_t nets, const ToyOptions& options);

/// Trains, for each net, one ensemble of data sets x seeds: standard parameterisation, Kaiming
/// normal weights, biases N(0, 0.01), full-batch Adam with step size 1e-3, float32. Batch Norms
/// have the training points' statistics, once training is done.
ToyRun run_toy_figure(const std::vector<ToyNet>& nets, const ToyOptions& options);

/// Least-squares slope of log|f| over log|x|, mean of the two sides. `x` are the absolute values,
/// `left` and `right` the predictions at -x and x.
double far_field_exponent(const std::vector<double>& x, const std::vector<double>& left,
                          const std::vector<double>& right);

}  // namespace keel

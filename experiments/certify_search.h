// The search that tries to break a bound: what `keel certify` does in every mode, and forecast.
#pragma once

#include <optional>
#include <string>

#include "../ntk/certificate.h"
#include "command.h"
#include "interrupt.h"
#include "standardiser.h"

namespace keel {

struct SearchChoice {
  double farthest = 1e6;           ///< of |x|, standardised
  std::optional<double> within{};  ///< what is proved, too, is of |x| up to this alone
  std::string ranges{};  ///< or of features in the ranges of this table's columns; "": of none
  double widen = 1;      ///< these about their middles
  std::optional<std::int64_t> directions, steps;
  std::optional<double> exceed;

  /// How far out the search goes.
  double region() const { return within.value_or(farthest); }

  /// What is to be passed, in f's units: one of them is `scale` of y's own.
  std::optional<double> wanted(double scale) const {
    return exceed ? std::optional(*exceed / scale) : std::nullopt;
  }
};

/// --within, --ranges, --widen, --farthest, --directions, --steps, --exceed.
void declare_search(CLI::App& app, SearchChoice& choice);

/// Throws UsageError where --within or --ranges was given with an option that goes beyond it.
void check_region(const CLI::App& app);

/// " for |x| <= 10, standardised", " in these ranges", or nothing.
std::string within_text(const SearchChoice& choice, const Standardiser& units);

/// Of gradient ascent where --steps does not say: a kernel's prediction is smooth, and takes long,
/// as a sequence's do.
inline constexpr std::int64_t kKernelSteps = 40, kNetSteps = 200, kSequenceSteps = 50;

/// Random directions where --directions does not say, of a transformer: each takes many
/// predictions.
inline constexpr std::int64_t kSequenceDirections = 64;

/// `usual`, but for what was chosen.
SearchOptions search_options(const SearchChoice& choice, SearchOptions usual);

/// Training rows x [n, d], evenly spread over the table: directions worth trying.
Tensor search_starts(const Tensor& x);

/// What the search found, and where |f| passes what was asked for.
struct Attack {
  Found largest;
  std::optional<Found> beyond;
  double wanted = 0;  ///< in standardised units, as f is; 0: nothing was
};

/// `size` is |f| in standardised units, as is `wanted`, which is to be passed: where there is no
/// bound, by default a thousand times what was found.
Attack attack(std::optional<double> wanted, const RowFunction& size, const Tensor& starts,
              const SearchOptions& options, bool bounded, const RowGradient& gradient = {});

/// For summary.json, in y's own units.
Json attack_json(const Attack& attack, const Standardiser& units, double farthest);

/// A line on what --exceed came to; empty where nothing was to be exceeded.
std::string exceed_line(const Attack& attack, const Standardiser& units);

/// Times a bound: what evaluating in double may add to it.
inline constexpr double kKept = 1 + 1e-6;

/// Throws where the search found more than was proved, beyond double's rounding: both in
/// standardised units.
void check_kept(double found, double bound, const Standardiser& units);

/// What certify returns once all is written: 0, or, where Ctrl-C ended its work early, what a
/// shell reports for that, with a line that says so.
int ended(const Interrupt& interrupt, Context& context);

/// "|f(x)|", or "|f(x) - 12.5|" where y was centred.
std::string about_text(const Standardiser& units);

}  // namespace keel

// Gradient-boosted trees, by XGBoost's C library where the build found it.
#pragma once

#include <string>
#include <vector>

#include "examples.h"

namespace keel {

/// Whether this build has XGBoost (Debian: libxgboost-dev).
bool has_boosting();

/// The library's version; empty without it.
std::string boosting_version();

/// 100 rounds of squared error with the library's defaults, on all of keel's threads.
class Boosting {
 public:
  /// Throws keel::Error: a build without XGBoost, or what the library says.
  explicit Boosting(const Examples& training);
  ~Boosting();
  Boosting(const Boosting&) = delete;
  Boosting& operator=(const Boosting&) = delete;

  std::vector<double> predict(const Examples& examples) const;

 private:
  [[maybe_unused]] void* booster_ = nullptr;  // without XGBoost
};

}  // namespace keel

#include "boosting.h"

#include "../core/threads.h"
#ifdef KEEL_WITH_XGBOOST
#include <xgboost/c_api.h>

#include <limits>
#endif

namespace keel {

#ifdef KEEL_WITH_XGBOOST

namespace {

void check_xgboost(int status) {
  if (status == 0) return;
  std::string message = XGBGetLastError();  // a line, then the library's stack
  message.resize(std::min(message.find('\n'), message.size()));
  fail("xgboost", "{}", message);
}

class Matrix {
 public:
  explicit Matrix(const Examples& examples) {
    const std::vector<float> x(examples.x.begin(), examples.x.end());
    check_xgboost(XGDMatrixCreateFromMat(x.data(), static_cast<bst_ulong>(examples.rows),
                                         static_cast<bst_ulong>(examples.features),
                                         std::numeric_limits<float>::quiet_NaN(), &handle));
  }
  ~Matrix() { XGDMatrixFree(handle); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  DMatrixHandle handle = nullptr;
};

}  // namespace

bool has_boosting() { return true; }

std::string boosting_version() {
  int major = 0, minor = 0, patch = 0;
  XGBoostVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

Boosting::Boosting(const Examples& training) {
  constexpr int kRounds = 100;
  const Matrix matrix(training);
  const std::vector<float> y(training.y.begin(), training.y.end());
  check_xgboost(XGDMatrixSetFloatInfo(matrix.handle, "label", y.data(), y.size()));
  check_xgboost(XGBoosterCreate(&matrix.handle, 1, &booster_));
  try {
    check_xgboost(XGBoosterSetParam(booster_, "objective", "reg:squarederror"));
    check_xgboost(XGBoosterSetParam(booster_, "verbosity", "0"));
    const std::string threads = std::to_string(thread_count());
    check_xgboost(XGBoosterSetParam(booster_, "nthread", threads.c_str()));
    for (int round = 0; round < kRounds; ++round)
      check_xgboost(XGBoosterUpdateOneIter(booster_, round, matrix.handle));
  } catch (...) {
    XGBoosterFree(booster_);
    throw;
  }
}

Boosting::~Boosting() { XGBoosterFree(booster_); }

std::vector<double> Boosting::predict(const Examples& examples) const {
  const Matrix matrix(examples);
  bst_ulong count = 0;
  const float* values = nullptr;
  check_xgboost(XGBoosterPredict(booster_, matrix.handle, 0, 0, 0, &count, &values));
  check(count == static_cast<bst_ulong>(examples.rows), "xgboost", "got {} predictions, wanted {}",
        count, examples.rows);
  return {values, values + count};
}

#else

bool has_boosting() { return false; }
std::string boosting_version() { return ""; }

Boosting::Boosting(const Examples&) {
  fail("xgboost",
       "this build has no XGBoost: install its C library (Debian: libxgboost-dev) and build again");
}
Boosting::~Boosting() = default;
std::vector<double> Boosting::predict(const Examples&) const { return {}; }

#endif

}  // namespace keel

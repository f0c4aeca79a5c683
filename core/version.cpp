#include "version.h"

#include <cblas.h>
#include <fmt/format.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef KEEL_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace keel {

const char* version() { return KEEL_VERSION; }
const char* git_commit() { return KEEL_GIT_COMMIT; }

std::vector<std::pair<std::string, std::string>> backends() {
  std::vector<std::pair<std::string, std::string>> rows;
#if defined(__clang__)
  rows.emplace_back("compiler", fmt::format("clang++ {}.{}", __clang_major__, __clang_minor__));
#else
  rows.emplace_back("compiler", fmt::format("g++ {}.{}", __GNUC__, __GNUC_MINOR__));
#endif
#ifdef _OPENMP
  rows.emplace_back("threads", fmt::format("OpenMP, {} threads", omp_get_max_threads()));
#else
  rows.emplace_back("threads", "none (built without OpenMP)");
#endif
  rows.emplace_back("BLAS",
                    fmt::format("{}, {} kernels", openblas_get_config(), openblas_get_corename()));
#ifdef KEEL_WITH_CUDA
  int driver = 0, runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);  // 0 where there is no driver
  const auto dotted = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
  rows.emplace_back("CUDA", fmt::format("toolkit {}, driver {}", dotted(runtime),
                                        driver ? "for " + dotted(driver) : "not found"));
#else
  rows.emplace_back("CUDA", "not in this build");
#endif
  return rows;
}

}  // namespace keel

#include "start_again.h"

#include <cblas.h>
#include <unistd.h>

#include <cstdlib>

namespace keel {

void start_again_with(char** argv, const std::vector<Setting>& settings) {
  if (settings.empty()) return;
  for (const Setting& setting : settings)
    if (setenv(setting.name, setting.value.c_str(), 1) != 0) return;
  execv("/proc/self/exe", argv);
}

// Prescott, of 2004, is what a build for many processors takes for one that it does not know.
std::string kernels_in_place_of(std::string_view taken, bool avx2_and_fma, bool avx512) {
  if (taken != "Prescott" || !avx2_and_fma) return "";
  return avx512 ? "SkylakeX" : "Haswell";
}

std::vector<Setting> better_blas_kernels() {
  constexpr const char* kName = "OPENBLAS_CORETYPE";
  if (std::getenv(kName)) return {};
#ifdef __x86_64__
  const bool avx2_and_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const std::string better = kernels_in_place_of(openblas_get_corename(), avx2_and_fma, avx512);
  if (!better.empty()) return {{kName, better}};
#endif
  return {};
}

}  // namespace keel

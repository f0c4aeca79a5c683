#include <csignal>
#include <cstdlib>
#include <iostream>

#include "../core/start_again.h"
#include "command_line.h"
#include "interrupt.h"

namespace {

// libgomp's threads spin for a millisecond or so before they sleep. Where other processes want the
// same processors, the thread that is waited for is not running meanwhile: docs/performance.md has
// a training that took twenty times as long. 1000 turns are what libgomp takes itself where it
// knows of more threads than processors.
std::vector<keel::Setting> brief_spinning() {
#ifdef _OPENMP
  constexpr const char* kName = "GOMP_SPINCOUNT";
  if (!std::getenv(kName) && !std::getenv("OMP_WAIT_POLICY")) return {{kName, "1000"}};
#endif
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<keel::Setting> settings = brief_spinning();
  for (const keel::Setting& setting : keel::better_blas_kernels()) settings.push_back(setting);
  keel::start_again_with(argv, settings);
  keel::say_when_stopped();
  std::signal(SIGXFSZ, SIG_IGN);  // a file larger than `ulimit -f` is then an error with words
  return keel::run_command_line({argv + 1, argv + argc}, std::cout, std::cerr);
}

#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "command_line.h"

namespace {

// libgomp's threads spin for a millisecond or so before they sleep. Where other processes want the
// same processors, the thread that is waited for is not running meanwhile: docs/performance.md has
// a training that took twenty times as long. 1000 turns are what libgomp takes itself where it
// knows of more threads than processors. It reads the environment as it is loaded, so keel starts
// itself again, unless somebody has set it.
void spin_briefly([[maybe_unused]] char** argv) {
#ifdef _OPENMP
  for (const char* name : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"})
    if (std::getenv(name)) return;
  // Where that cannot be done, all goes on as it was.
  if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0) execv("/proc/self/exe", argv);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  spin_briefly(argv);
  return keel::run_command_line({argv + 1, argv + argc}, std::cout, std::cerr);
}

// Kernels by nvcc: KEEL_EMULATED_PTX names a folder of PTX files (target keel_ptx makes them), and
// what it has runs in place of what the host's compiler made of the same kernels.
#pragma once

#include <string>
#include <vector>

#include "code.h"

namespace keel::emulated::ptx {

/// nvcc's code of this kernel of the host's; null where no folder is named, or for a kernel of a
/// test. Ends the program where the folder lacks one of the library's.
const Kernel* find_kernel(const void* host_kernel);

/// How many kernels have run so, of how many that the folder has. Printed as the program ends; the
/// names of the rest go to the file that KEEL_EMULATED_PTX_LEFT names.
struct Coverage {
  std::size_t kernels = 0, run = 0;
  std::vector<std::string> left;  // those that have not, as "source: name"
};
Coverage coverage();

/// An anonymous namespace's names by nvcc, as g++ and clang++ have them.
std::string host_name(const std::string& kernel);

}  // namespace keel::emulated::ptx

#include <iostream>

#include "command_line.h"

int main(int argc, char** argv) {
  return keel::run_command_line({argv + 1, argv + argc}, std::cout, std::cerr);
}

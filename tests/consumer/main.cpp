#include <keel/keel.h>

#include <cstdio>
#include <string>

int main() {
  const std::string version(keel::version());
  std::printf("consumer of keel %s\n", version.c_str());
}

#include "../../core/version.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "../../core/device.h"

using namespace keel;

TEST_CASE("version and commit have the form that summary.json promises") {
  int major = -1, minor = -1, patch = -1, end = 0;
  std::sscanf(version(), "%d.%d.%d%n", &major, &minor, &patch, &end);
  CHECK((major >= 0 && minor >= 0 && patch >= 0));
  CHECK(version()[end] == 0);

  std::string commit = git_commit();
  if (commit == "unknown") return;
  if (commit.ends_with("-dirty")) commit.resize(commit.size() - 6);
  CHECK(commit.size() >= 7);
  CHECK(commit.find_first_not_of("0123456789abcdef") == std::string::npos);
}

TEST_CASE("backends name compiler, threads, BLAS and CUDA, each once and with words") {
  const auto rows = backends();
  REQUIRE(rows.size() == 4);
  const char* names[] = {"compiler", "threads", "BLAS", "CUDA"};
  for (int i = 0; i < 4; ++i) {
    CHECK(rows[i].first == names[i]);
    CHECK_FALSE(rows[i].second.empty());
  }
  CHECK(rows[0].second.find("++ ") != std::string::npos);
  CHECK(rows[2].second.find("OpenBLAS") != std::string::npos);
}

TEST_CASE("backends and devices agree on whether this build has CUDA") {
  const std::string cuda = backends()[3].second;
  const bool built_without = why_no_cuda().find("this build has no CUDA") != std::string::npos;
  CHECK((cuda == "not in this build") == built_without);
  if (!built_without) CHECK(cuda.starts_with("toolkit "));
}

#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "../../experiments/boosting.h"
#include "../../nn/safetensors.h"
#include "../sanitized.h"
#include "table1_data.h"

namespace keel {
namespace {

constexpr const char* kLong = test::kSanitized ? "100" : "1000";

std::vector<std::string> three_seeds(bool resume) {
  std::vector<std::string> arguments = {
      "--seeds", "3", "--methods",
      has_boosting() ? "ln_every,xgboost,ntk_ln_first" : "ln_every,ntk_ln_first"};
  if (resume) arguments.push_back("--resume");
  return arguments;
}

/// The same table in one go, once for all cases.
struct Whole {
  Table1Data data;
  std::string out = data.folder / "whole";
  Whole() { REQUIRE(data.run(out, three_seeds(false), kLong).code == 0); }
};

const Whole& whole() {
  static const Whole once;
  return once;
}

void check_same_as_whole(const std::string& out) {
  for (const char* name :
       {"table1.csv", "seeds.csv", "predictions_ln_every.csv", "predictions_ntk_ln_first.csv"})
    CHECK(content_of(out + "/" + name) == content_of(whole().out + "/" + name));
}

// Rows of costs.csv (method, seed, seconds, peak_bytes) that took longer.
int costs_above(const std::string& path, double seconds) {
  std::ifstream lines(path);
  std::string line;
  std::getline(lines, line);  // the header
  int count = 0;
  while (std::getline(lines, line))
    count += std::stod(line.substr(line.find(',', line.find(',') + 1) + 1)) > seconds;
  return count;
}

TEST_CASE("table1: stopped in the middle of a net, it resumes to the same bytes") {
  const Table1Data data;
  const std::string parts = data.folder / "parts";
  std::thread ctrl_c([&] {  // once the first of three nets is done, and a part of the second
    const auto begin = std::chrono::steady_clock::now();
    while (!std::filesystem::exists(parts + "/members/ln_every_x-affine-standard_3.safetensors"))
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::this_thread::sleep_for((std::chrono::steady_clock::now() - begin) / 3);
    std::raise(SIGINT);
  });
  const Ran stopped = data.run(parts, three_seeds(false), kLong);
  ctrl_c.join();
  CHECK(stopped.code == 130);
  CHECK(stopped.out == "");
  CHECK(stopped.err.find("\nkeel: stopped; to go on: keel reproduce table1 --data ") !=
        std::string::npos);
  CHECK(stopped.err.ends_with(" --resume\n"));
  CHECK_FALSE(std::filesystem::exists(parts + "/table1.csv"));

  // The day that the stopped net took so far is part of what it costs.
  std::string begun;
  for (const auto& file : std::filesystem::directory_iterator(parts + "/members"))
    if (file.path().extension() == ".unfinished") begun = file.path().string();
  REQUIRE(!begun.empty());
  SafeTensors checkpoint = read_safetensors(begun);
  checkpoint.metadata["seconds"] = "86400";
  write_safetensors(begun, checkpoint);

  const Ran resumed = data.run(parts, three_seeds(true), kLong);
  CHECK(resumed.code == 0);
  check_same_as_whole(parts);
  CHECK(costs_above(parts + "/costs.csv", 86400) == 1);
  for (const auto& file : std::filesystem::directory_iterator(parts + "/members"))
    CHECK(file.path().extension() == ".safetensors");  // no leftovers
}

TEST_CASE("table1: killed between members, it resumes to the same bytes; the others are kept") {
  const Table1Data& data = whole().data;
  const std::string parts = data.folder / "parts";
  // What kill -9 leaves: finished members, nothing else, and a temporary file.
  std::filesystem::create_directories(parts + "/members");
  const std::string first = "/members/ln_every_x-affine-standard_3.safetensors";
  std::filesystem::copy_file(whole().out + first, parts + first);
  std::ofstream(parts + first + ".tmp") << "half a file";
  const Ran resumed = data.run(parts, three_seeds(true), kLong);
  CHECK(resumed.code == 0);
  CHECK(resumed.err.find(has_boosting() ? "table1: 6 members left" : "table1: 3 members left") !=
        std::string::npos);
  check_same_as_whole(parts);

  // A finished table again, from its members alone.
  const std::string before = content_of(parts + "/table1.csv");
  const Ran again = data.run(parts, three_seeds(true), kLong);
  CHECK(again.err.find("table1: 0 members left") != std::string::npos);
  CHECK(content_of(parts + "/table1.csv") == before);

  // Another number of epochs is another table: its members are not to be mixed with these.
  const Ran refused = data.run(parts, three_seeds(true), "999");
  CHECK(refused.code == 1);
  CHECK(refused.err.find("is of 'ln_every on data ") != std::string::npos);

  // Without --resume a new run sets the old members aside.
  std::vector<std::string> fresh = {"--seeds", "1", "--methods", "standard"};
  const Ran set_aside = data.run(parts, fresh);
  CHECK(set_aside.code == 0);
  CHECK(set_aside.err.ends_with("note: what an earlier run had finished is in " + parts +
                                "/members.old now\n"));
  CHECK(std::filesystem::exists(parts + "/members.old" + first.substr(8)));
  // Those of the run between them, too.
  CHECK(data.run(parts, fresh).code == 0);
  CHECK(std::filesystem::exists(parts + "/members.old" + first.substr(8)));
  CHECK(!std::filesystem::is_empty(parts + "/members.old2"));
}

TEST_CASE(
    "table1: a begun net's checkpoint that is damaged is refused, and not read without --resume") {
  const Table1Data data;
  const std::string out = data.folder / "out";
  std::vector<std::string> arguments = {"--seeds", "1", "--methods", "standard"};
  REQUIRE(data.run(out, arguments).code == 0);
  std::string begun;
  for (const auto& file : std::filesystem::directory_iterator(out + "/members"))
    begun = file.path().string();
  std::filesystem::remove(begun);
  begun += ".unfinished";
  std::ofstream(begun) << "no checkpoint";
  arguments.push_back("--resume");
  const Ran refused = data.run(out, arguments);
  CHECK(refused.code == 1);
  CHECK(refused.err.find(begun) != std::string::npos);
  CHECK(content_of(begun) == "no checkpoint");
  arguments.pop_back();
  CHECK(data.run(out, arguments).code == 0);
}

TEST_CASE("table1: a finished member's file that is damaged is refused by one line") {
  const Table1Data data;
  const std::string out = data.folder / "out";
  const std::vector<std::string> arguments = {"--seeds",      "1",           "--methods",
                                              "ntk_ln_first", "--ntk-ridge", "0.1",
                                              "--ntk-rows",   "50",          "--resume"};
  REQUIRE(data.run(out, arguments).code == 0);
  const std::string path = out + "/members/ntk_ln_first_3.safetensors";
  const SafeTensors sound = read_safetensors(path);
  const auto refused = [&](auto change) {
    SafeTensors content = sound;
    change(content);
    write_safetensors(path, content);
    const Ran ran = data.run(out, arguments);
    CHECK(ran.code == 1);
    const std::string last = "keel: table1: " + path + ": ";
    const std::size_t at = ran.err.find(last);
    REQUIRE(at != std::string::npos);
    CHECK(ran.err.find('\n', at) == ran.err.size() - 1);
    return ran.err.substr(at + last.size());
  };
  const auto with_details = [&](const char* details) {
    return refused([&](SafeTensors& content) { content.metadata["details"] = details; });
  };
  for (const char* details : {"", "{\"bound\"", "[1]", "{}"})
    CHECK(with_details(details) == "its details are no JSON object with a bound\n");
  const auto with_tensor = [&](const std::string& name, const Tensor& other) {
    return refused([&](SafeTensors& content) {
      for (auto& [key, tensor] : content.tensors)
        if (key == name) tensor = other;
    });
  };
  CHECK(with_tensor("id", Tensor::zeros({25}, DType::f64)) ==
        "'id' is [25], wanted 26 finite numbers\n");
  CHECK(with_tensor("ood", Tensor::full({40}, std::nan(""), DType::f64)) ==
        "'ood' is [40], wanted 40 finite numbers\n");
  CHECK(with_tensor("cost", Tensor::full({2}, -1, DType::f64)) == "got cost -1 s and -1 bytes\n");

  SafeTensors tiny = sound;  // std::stod takes no denormal number
  tiny.metadata["details"] = R"({"bound":1e-310})";
  write_safetensors(path, tiny);
  CHECK(data.run(out, arguments).code == 0);
}

}  // namespace
}  // namespace keel

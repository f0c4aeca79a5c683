// A net that keel train has trained, and certify of its weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../../core/random.h"
#include "helpers.h"

namespace keel {

// y = 50 + 10 (sin(a) + b / 2); 40 rows. A net is trained on them, and its weights kept.
struct Trained {
  explicit Trained(const char* net = kNet, const char* standardise = "x") : spec(net) {
    const auto draws = normal({40, 2}, {1, 0}, 1, DType::f64).to_vector<double>();
    std::string text = "a,b,y\n";
    for (std::size_t row = 0; row < 40; ++row)
      text += fmt::format("{},{},{}\n", draws[2 * row], draws[2 * row + 1],
                          50 + 10 * (std::sin(draws[2 * row]) + draws[2 * row + 1] / 2));
    table = folder.file("t.csv", text);
    const Ran ran = run_keel({"train",
                              "--net",
                              net,
                              "--data",
                              table,
                              "--target",
                              "y",
                              "--standardise",
                              standardise,
                              "--epochs",
                              "1500",
                              "--lr",
                              "0.01",
                              "--save-weights",
                              weights,
                              "--out",
                              folder / "train",
                              "--device",
                              "cpu",
                              "--quiet"});
    REQUIRE(ran.err == "");
  }

  Ran certify(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"certify",      "--mode",   "trained", "--out",
                                          folder / "out", "--device", "cpu",     "--directions",
                                          "16",           "--steps",  "5"};
    for (const auto& [name, value] : {std::pair("--net", spec), {"--weights", weights}})
      if (std::find(more.begin(), more.end(), name) == more.end())
        arguments.insert(arguments.end(), {name, value});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
  nlohmann::json summary() const { return json_of(folder / "out/summary.json"); }

  TemporaryFolder folder;
  std::string spec, table, weights = folder / "w.safetensors";
};

}  // namespace keel

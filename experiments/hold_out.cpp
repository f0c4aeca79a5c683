#include "hold_out.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "../core/random.h"
#include "../nn/streams.h"

namespace keel {
namespace {

RowSplit drawn(const Examples& all, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> order = permutation(all.rows, {seed, streams::split()});
  std::sort(order.begin(), order.begin() + count);
  std::sort(order.begin() + count, order.end());
  RowSplit split;
  split.rows.assign(order.begin(), order.begin() + count);
  split.held_out = examples_at(all, split.rows);
  split.training = examples_at(all, std::span(order).subspan(static_cast<std::size_t>(count)));
  split.text = Json{{"held_out", count}, {"rows", all.rows}, {"seed", seed}}.dump();
  return split;
}

}  // namespace

void declare_hold_out(CLI::App& app, double& hold_out) {
  app.add_option("--hold-out", hold_out,
                 "in place of --test: rows of --data, or the share of them below 1, to be drawn by "
                 "--seed, kept from training, predicted and judged by")
      ->excludes(app.get_option("--test"))
      ->check(check_positive)
      ->check([](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        return value < 1 || value == std::floor(value)
                   ? ""
                   : fmt::format("got '{}', wanted a number of rows, or a share of them below 1",
                                 text);
      });
}

RowSplit split_of(const Examples& all, double hold_out, std::uint64_t seed,
                  const std::string& file) {
  if (hold_out == 0) return {all, {}};
  const double count =
      hold_out < 1 ? std::round(hold_out * static_cast<double>(all.rows)) : hold_out;
  if (count < 1 || count >= static_cast<double>(all.rows))
    throw DataError(file, fmt::format("got {} rows and --hold-out {:g}, wanted at least one held "
                                      "out and one to learn from",
                                      all.rows, hold_out));
  return drawn(all, static_cast<std::int64_t>(count), seed);
}

RowSplit split_as(const std::string& text, const Examples& all, const std::string& weights,
                  const std::string& file) {
  std::int64_t count = 0, rows = 0;
  std::uint64_t seed = 0;
  try {
    const Json json = Json::parse(text);
    count = json.at("held_out").get<std::int64_t>();
    rows = json.at("rows").get<std::int64_t>();
    seed = json.at("seed").get<std::uint64_t>();
  } catch (const nlohmann::json::exception&) {
    count = 0;
  }
  if (count < 1 || count >= rows)
    throw DataError(weights, fmt::format("got {} {}, wanted how many rows of how many, and a seed",
                                         kHeldOutKey, shown(text)));
  if (all.rows != rows)
    throw DataError(file, fmt::format("got {} rows, wanted the {} of which {} were held out from "
                                      "the net of {}",
                                      all.rows, rows, count, weights));
  return drawn(all, count, seed);
}

}  // namespace keel

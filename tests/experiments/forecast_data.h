// A series, `keel forecast` run on it, and the rows that it writes.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "helpers.h"

namespace keel {

inline constexpr int kRows = 120, kHeldOut = 20, kLength = 6;

// A wave that rises; held-out values may be other ones.
inline std::string series_text(double held_out_by = 0) {
  std::string text = "when,level\n";
  for (int i = 0; i < kRows; ++i)
    text += fmt::format(
        "{},{}\n", i,
        40 + 5 * std::sin(0.5 * i) + 0.02 * i + (i >= kRows - kHeldOut ? held_out_by : 0));
  return text;
}

struct ForecastData {
  TemporaryFolder folder;
  std::string table = folder.file("level.csv", series_text());

  Ran run(std::vector<std::string> more, const std::string& out = "out") const {
    std::vector<std::string> arguments = {
        "forecast", "--data",   table,     "--target",   "level",    "--hold-out", "20",
        "--length", "6",        "--width", "8",          "--heads",  "2",          "--hidden",
        "16",       "--blocks", "1",       "--batch",    "8",        "--ahead",    "4",
        "--device", "cpu",      "--out",   folder / out, "--no-plot"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
  nlohmann::json summary(const std::string& out = "out") const {
    return json_of(folder / (out + "/summary.json"));
  }
  std::string csv(const std::string& out = "out") const {
    return content_of(folder / (out + "/forecast.csv"));
  }
};

struct Row {
  std::string kind, wanted;
  std::vector<double> numbers;  // prediction, and what follows it
};

// By kind and row.
inline std::map<std::pair<std::string, int>, Row> rows_of(const std::string& csv) {
  std::map<std::pair<std::string, int>, Row> rows;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::vector<std::string> cells(1);
    for (char c : line) {
      if (c == ',')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    Row row{cells[1], cells[2], {}};
    for (std::size_t i = 3; i < cells.size(); ++i) row.numbers.push_back(std::stod(cells[i]));
    rows[{cells[1], std::stoi(cells[0])}] = row;
  }
  return rows;
}

}  // namespace keel

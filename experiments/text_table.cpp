#include "text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace keel {

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += i < left ? fmt::format("{:<{}}", row[i], widths[i])
                       : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string brief(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "-";
}

std::string brief_outward(double value, int digits, double side) {
  std::string text = brief(value, digits);
  if (!std::isfinite(value) || value == 0) return text;
  const double unit = std::max(std::pow(10, std::floor(std::log10(std::abs(value))) - digits + 1),
                               std::numeric_limits<double>::denorm_min());
  for (int units = 1; side * (std::strtod(text.c_str(), nullptr) - value) < 0; ++units)
    text = brief(value + side * units * unit, digits);
  return text;
}

std::string text_about(const std::string& f, double about, int digits) {
  if (about == 0) return "|" + f + "|";
  return fmt::format("|{} {} {}|", f, about < 0 ? "+" : "-", brief(std::abs(about), digits));
}

std::string brief(double value, double half_width, int digits) {
  const std::string text = brief(value, digits);
  return std::isfinite(half_width) ? text + " +- " + fmt::format("{:.2g}", half_width) : text;
}

}  // namespace keel

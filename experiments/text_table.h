// Aligned columns for people.
#pragma once

#include <string>
#include <vector>

namespace keel {

/// One line per row, columns as wide as their widest cell and two blanks apart: the first
/// `left` columns flush left, the others flush right.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// A number to `digits` significant digits; "-" where it is not finite.
std::string brief(double value, int digits = 3);

/// The same rounded up or down, never to the other side: what was proved of a bound stays true of
/// what is printed. `side`: 1 or -1.
std::string brief_outward(double value, int digits, double side);

/// "|f|" for "f" about 0, "|f - 3|" and "|f + 3|" about 3 and -3, to `digits` digits.
std::string text_about(const std::string& f, double about, int digits = 6);

/// "0.51 +- 0.02"; without the interval where there is none.
std::string brief(double value, double half_width, int digits);

}  // namespace keel

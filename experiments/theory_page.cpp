#include "theory_page.h"

#include "text_table.h"

namespace keel {

Reproduced theory_page(const Sections& sections, const Json& setting) {
  Reproduced result;
  Json pages = Json::array();
  std::int64_t total = 0, failed = 0;
  for (const auto& [name, checks] : sections) {
    Json list = Json::array();
    result.table += fmt::format("\n{}\n", name);
    std::vector<std::vector<std::string>> rows;
    for (const Check& check : checks) {
      rows.push_back({check.holds ? "  holds" : "  FAILS", check.statement, check.measured});
      Json one = {
          {"statement", check.statement}, {"measured", check.measured}, {"holds", check.holds}};
      one.update(check.numbers);
      list.push_back(std::move(one));
      ++total;
      failed += check.holds ? 0 : 1;
    }
    result.table += text_table(rows, 3);
    pages.push_back({{"section", name}, {"checks", list}});
  }
  result.table =
      fmt::format("theory: {} of {} checks hold\n", total - failed, total) + result.table;
  result.numbers = {{"figure", "theory"},
                    {"setting",
                     "NTK parameterisation, sigma_w^2 = 1, 2, 2, sigma_b^2 = 0.01, LN "
                     "before the activation without gain, bias or eps"}};
  result.numbers.update(setting);
  result.numbers.update({{"all_hold", failed == 0}, {"sections", pages}});
  if (failed > 0) result.problem = fmt::format("theory: {} of {} checks fail", failed, total);
  return result;
}

}  // namespace keel

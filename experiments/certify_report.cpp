#include "certify_report.h"

#include <cmath>
#include <vector>

#include "text_table.h"

namespace keel {

Json findings_json(const RegressionFindings& found, const Standardiser& units,
                   const SearchChoice& search) {
  const Certificate& certificate = found.certificate;
  const double scale = units.y_scale();
  Json json = {{"centre", units.y_mean()},
               {"bound", certificate.bound * scale},
               {"bound_tight", certificate.tight * scale},
               {"bound_loose", certificate.loose * scale},
               {"bounded", certificate.bounded()},
               {"supremum", found.supremum.value()},
               {"supremum_at", found.supremum.proved.at},
               {"growth_exponent", found.supremum.proved.growth},
               {"data_fit", certificate.data_fit},
               {"smallest_eigenvalue", certificate.smallest_eigenvalue},
               {"data_fit_r2", found.r2}};
  if (found.supremum.searched) {
    json["supremum_found"] = found.supremum.searched->value;
    json["supremum_found_at_distance"] = found.supremum.searched->distance();
    json["bound_if_supremum_found"] = found.if_supremum * scale;
  }
  if (search.within) json["within"] = *search.within;
  json.update(attack_json(found.attack, units, search.region()));
  return json;
}

std::string findings_text(const RegressionFindings& found, const Standardiser& units,
                          const SearchChoice& search) {
  const Certificate& certificate = found.certificate;
  const Attack& attack = found.attack;
  const double scale = units.y_scale();
  std::vector<std::vector<std::string>> table;
  const auto row = [&](const std::string& what, double value) {
    table.push_back({what, std::isfinite(value) ? brief(value, 5) : "unbounded"});
  };
  const auto at_most = [&](const std::string& what, double value, const char* no = "unbounded") {
    table.push_back({what, std::isfinite(value) ? brief_outward(value, 5, 1) : no});
  };
  table.push_back({"R^2 on the training rows", brief(found.r2, 5)});  // none, of one value
  const std::string region =
      fmt::format(" for |x| <= {:g}{}", search.region(), units.moves_x() ? ", standardised" : "");
  if (const std::optional<Found>& searched = found.supremum.searched) {
    row("largest Theta(x, x) found" + region, searched->value);
    row("not proved: if there is no larger, " + about_text(units) + " is at most",
        found.if_supremum * scale);
  } else {
    const std::string within = within_text(search, units);
    at_most("largest Theta(x, x)" + (search.within ? within : " over all x"),
            found.supremum.value());
    const char* no = found.supremum.proved.growth == 1 ? "none" : "unbounded";
    at_most("certificate" + within + ": " + about_text(units) + " is at most",
            certificate.bound * scale, no);
    at_most("  without what the ridge leaves unexplained", certificate.tight * scale, no);
    at_most(found.estimated ? "  in the paper's loose form, its eigenvalue estimated"
                            : "  in the paper's loose form, the ridge for its eigenvalue",
            certificate.loose * scale, no);
  }
  row("largest found" + region, attack.largest.value * scale);
  row("  at |x|", attack.largest.distance());
  std::string text = text_table(table, 1);
  if (!found.supremum.searched && !found.supremum.proved.bounded &&
      found.supremum.proved.growth == 1)
    text +=
        "behind a tanh or sigmoid Theta(x, x) grows like |x|, also where a norm follows: of f, "
        "which may be bounded, nothing is proved\n";
  if (found.supremum.searched)
    text += "nets of finite width: nothing is proved (--mode infinite and trained do)\n";
  return text + exceed_line(attack, units);
}

}  // namespace keel

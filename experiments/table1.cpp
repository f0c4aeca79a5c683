#include "table1.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "boosting.h"
#include "table1_run.h"

namespace keel {
namespace {

constexpr std::int64_t kSeeds = 10, kEpochs = 2500;  // the paper's
constexpr const char* kBoosting = "xgboost";

struct Plan {
  std::vector<std::vector<Member>> rows;  // one a line of the table
  std::vector<std::string> left_out;      // methods, with why
};

Plan plan_table(const Table1Task& task) {
  Plan plan;
  const std::vector<std::string>& chosen = task.options.methods;
  for (const std::string& method : table1_methods()) {
    const bool asked = std::find(chosen.begin(), chosen.end(), method) != chosen.end();
    if (!chosen.empty() && !asked) continue;
    if (method == kBoosting && !has_boosting()) {
      check(!asked, kBoosting,
            "this build has no XGBoost: install its C library (Debian: "
            "libxgboost-dev) and build again");
      plan.left_out.push_back(
          "xgboost: left out, this build has no XGBoost (Debian: libxgboost-dev)");
      continue;
    }
    plan.rows.push_back(members_of(task, method, task.options.recipe));
  }
  return plan;
}

Reproduced reproduce_rows(const Table1Task& task) {
  const Plan plan = plan_table(task);
  for (const std::string& line : plan.left_out) task.context.note(line);
  const Table1Rows ran = run_members(task, plan.rows);
  if (ran.stopped) return stopped(task);
  write_table1(ran.rows, task.protein, task.folder);
  Reproduced result;
  result.numbers = setting_json(task);
  result.numbers["recipe"] = recipe_json(task.options.recipe);
  Json rows = Json::array();
  for (const Table1Row& row : ran.rows) rows.push_back(row_json(row));
  result.numbers["rows"] = rows;
  result.numbers["left_out"] = plan.left_out;
  result.numbers["statements"] = statements(ran.rows);
  result.table = fmt::format(
      "table1: {}\n{} epochs of full-batch Adam; {}; mean +- 95% interval over seeds; * intervals "
      "that do not overlap the paper's\n{}",
      task.protein.found, task.epochs, task.options.recipe.text(), table1_text(ran.rows));
  for (const std::string& line : plan.left_out) result.table += line + "\n";
  for (const auto& [what, holds] : result.numbers["statements"].items())
    if (holds.is_boolean())
      result.table += fmt::format("{}: {}\n", what, holds.get<bool>() ? "holds" : "does NOT hold");
  return result;
}

}  // namespace

void declare_table1(CLI::App& app, Table1Options& options) {
  const char* group = "table1";
  app.add_option("--data", options.data,
                 "table1: CASP.csv or CASP.txt, or the folder that holds it; uci: a folder of "
                 "folders, each with data.txt, index_features.txt and index_target.txt")
      ->group(group);
  auto* methods =
      app.add_option("--methods", options.methods, "some of the rows, separated by commas")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(one_of(table1_methods()))
          ->group(group);
  app.add_option("--standardise", options.recipe.standardise, "what of the nets' data: x or xy")
      ->check(one_of({"x", "xy"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--ln-affine", options.recipe.ln_affine, "Layer Norm with gain and bias, 0 or 1")
      ->capture_default_str()
      ->group(group);
  app.add_option("--param", options.recipe.parameterisation, "of the nets: standard or ntk")
      ->check(one_of({"standard", "ntk"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--weights", options.recipe.weights,
                 "what the nets' weights are drawn from: normal or uniform")
      ->check(one_of({"normal", "uniform"}))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--recipes", options.recipes,
               "standard and ln_every with every recipe instead (default: 1 seed)")
      ->excludes(methods)
      ->group(group);
  app.add_option("--ntk-rows", options.ntk_rows,
                 "training rows of the exact kernel regressions; 0: all")
      ->check(check_whole(0, 10000000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--ntk-seeds", options.ntk_seeds, "splits on which they are solved")
      ->check(check_whole(1, 1000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--ntk-ridge", options.ntk_ridge,
                 "relative ridge (default: chosen on held-out training rows)")
      ->check(check_not_negative)
      ->group(group);
  app.add_flag("--resume", options.resume, "go on with the members that --out has finished")
      ->group(group);
}

Reproduced reproduce_table1(const Context& context, const ReproduceOptions& chosen,
                            const OutputFolder& folder) {
  const Table1Options& options = chosen.table1;
  if (options.data.empty())
    throw UsageError("table1",
                     "wanted --data PATH: CASP.csv of the UCI data set \"Physicochemical "
                     "Properties of Protein Tertiary Structure\", DOI 10.24432/C5QW3H");
  const Table1Task task{context,
                        options,
                        folder,
                        read_protein(options.data),
                        chosen.seeds.value_or(options.recipes ? 1 : kSeeds),
                        chosen.epochs.value_or(kEpochs)};
  context.note("table1: " + task.protein.found);
  split_protein(task.protein, context.options.seed);  // too few rows: said before any work
  return options.recipes ? reproduce_recipes(task) : reproduce_rows(task);
}

}  // namespace keel

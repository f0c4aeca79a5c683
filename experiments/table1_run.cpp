#include "table1_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "boosting.h"
#include "interrupt.h"
#include "progress_bar.h"

namespace keel {
namespace {

namespace fs = std::filesystem;

// What earlier runs had finished stays, as members.old, members.old2 and so on, when this one does
// not build on it.
void set_aside(const fs::path& members, const Context& context) {
  std::error_code ignored;
  if (!fs::exists(members, ignored)) return;
  fs::path old = members.string() + ".old";
  for (int more = 2; fs::exists(old, ignored); ++more)
    old = fmt::format("{}.old{}", members.string(), more);
  fs::rename(members, old);
  context.note(fmt::format("note: what an earlier run had finished is in {} now", old.string()));
}

}  // namespace

std::vector<Member> members_of(const Table1Task& task, const std::string& method,
                               const Recipe& recipe) {
  std::vector<Member> members;
  Member member{method, task.context.options.seed, recipe, task.epochs};
  const std::int64_t seeds =
      member.is_kernel() ? std::min(task.options.ntk_seeds, task.seeds) : task.seeds;
  for (std::int64_t s = 0; s < seeds; ++s, ++member.seed) members.push_back(member);
  return members;
}

Table1Rows run_members(const Table1Task& task, const std::vector<std::vector<Member>>& rows) {
  const Context& context = task.context;
  if (!task.options.resume) set_aside(task.folder.path("members"), context);
  const Interrupt interrupt;
  const Members members(task.protein, context, task.options, task.folder, interrupt.flag());
  std::vector<std::vector<std::unique_ptr<Outcome>>> kept;  // looked at before any work starts
  std::int64_t epochs = 0, left = 0, done = 0;
  for (const auto& row : rows) {
    kept.emplace_back();
    for (const Member& member : row) {
      kept.back().push_back(members.load(member));
      left += !kept.back().back();
      if (member.is_net() && !kept.back().back()) epochs += member.epochs;
    }
  }
  if (task.options.resume) context.note(fmt::format("table1: {} members left to compute", left));
  Table1Rows ran;
  std::optional<ProgressBar> bar;
  if (epochs > 0) bar.emplace("table1", epochs, context.shows_progress());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    ran.rows.push_back({rows[r][0].method, {}, {}, {}, {}, {}, {}});
    if (!rows[r][0].is_net()) bar.reset();
    for (std::size_t m = 0; m < rows[r].size(); ++m) {
      const Member& member = rows[r][m];
      std::unique_ptr<Outcome> outcome = std::move(kept[r][m]);
      if (!outcome) {
        if (!interrupt.flag()->load())
          outcome = members.run(member, [&](std::int64_t at) {
            if (bar) bar->update(done + at);
          });
        if (!outcome) {
          ran.stopped = true;
          return ran;
        }
        if (member.is_net()) done += member.epochs;
      }
      ran.rows.back().add(member.seed, std::move(*outcome), task.protein);
    }
  }
  return ran;
}

Json setting_json(const Table1Task& task) {
  const ProteinSplit split = split_protein(task.protein, task.context.options.seed);
  return {{"table", "table1"},
          {"data", task.options.data},
          {"found", task.protein.found},
          {"train_rows", split.train.size()},
          {"id_rows", split.id.size()},
          {"ood_rows", split.ood.size()},
          {"seeds", task.seeds},
          {"first_seed", task.context.options.seed},
          {"epochs", task.epochs},
          {"nets",
           "2 x 128 ReLU, LN before the activation (eps 1e-5), weights of variance 2 / fan_in, "
           "biases N(0, 0.01), full-batch Adam, step size 0.001"},
          {"kernels",
           "infinite width, sigma_w2 1 in the first layer and 2 in the others, sigma_b2 "
           "0.01, LN without gain and bias, NTK parameterisation; inputs and target "
           "standardised"},
          {"ntk_seeds", task.options.ntk_seeds},
          {"xgboost_version", boosting_version()}};
}

Json recipe_json(const Recipe& recipe) {
  return {{"name", recipe.name()},
          {"text", recipe.text()},
          {"standardise", recipe.standardise},
          {"ln_affine", recipe.ln_affine},
          {"parameterisation", recipe.parameterisation},
          {"weights", recipe.weights}};
}

Reproduced stopped(const Table1Task& task) {
  Reproduced result;
  result.stopped = fmt::format("stopped; to go on: {}{}", task.context.command_line,
                               task.options.resume ? "" : " --resume");
  return result;
}

}  // namespace keel

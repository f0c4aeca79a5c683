// What `keel reproduce table1` and its --recipes share: a list of members, computed one after
// another.
#pragma once

#include <string>
#include <vector>

#include "reproduce.h"
#include "table1_member.h"
#include "table1_report.h"

namespace keel {

struct Table1Task {
  const Context& context;
  const Table1Options& options;
  const OutputFolder& folder;
  Protein protein;
  std::int64_t seeds, epochs;
};

/// The members of one line of a table: a seed each.
std::vector<Member> members_of(const Table1Task& task, const std::string& method,
                               const Recipe& recipe);

struct Table1Rows {
  std::vector<Table1Row> rows;
  bool stopped = false;  ///< by Ctrl-C
};

/// Runs every member that --resume does not find finished.
Table1Rows run_members(const Table1Task& task, const std::vector<std::vector<Member>>& rows);

/// Data, split and settings, for summary.json.
Json setting_json(const Table1Task& task);
Json recipe_json(const Recipe& recipe);

/// What a run that was stopped leaves to be said.
Reproduced stopped(const Table1Task& task);

/// standard and ln_every with every defensible reading of the paper's text.
Reproduced reproduce_recipes(const Table1Task& task);

}  // namespace keel

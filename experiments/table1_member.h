// One method on one split of the protein data: trained or solved, or read back from a file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../core/work_progress.h"
#include "command.h"
#include "output.h"
#include "protein.h"
#include "table1.h"

namespace keel {

/// What everything in table1.csv is computed from, so that a resumed run ends with the same bytes.
struct Outcome {
  std::vector<double> id, ood;  ///< predictions in the target's unit, in the split's order
  double seconds = 0;
  double peak_bytes = 0;  ///< of keel's memory; 0 where a library's was not counted
  Json details = Json::object();
};

struct Member {
  std::string method;
  std::uint64_t seed = 0;  ///< of the split, and of the net
  Recipe recipe;           ///< nets
  std::int64_t epochs = 0;

  bool is_net() const { return !is_kernel() && method != "xgboost"; }
  bool is_kernel() const { return method.starts_with("ntk_"); }
  std::string spec() const;  ///< of the net, or of the net whose infinite-width kernel it is
  std::string file() const;  ///< "members/ln_every_x-affine-standard_3.safetensors"
};

/// Every method, in the order of the table.
const std::vector<std::string>& table1_methods();

/// What runs, and reruns, members.
class Members {
 public:
  Members(const Protein& protein, const Context& context, const Table1Options& options,
          const OutputFolder& folder, StopFlag stop);

  /// What the finished member's file holds, with --resume; else null. Throws keel::Error where it
  /// belongs to another run.
  std::unique_ptr<Outcome> load(const Member& member) const;

  /// Computes and keeps it; null where it was stopped. `progress`: epochs done of this member.
  std::unique_ptr<Outcome> run(const Member& member,
                               const std::function<void(std::int64_t)>& progress) const;

 private:
  std::string identity(const Member& member) const;  // what its file must belong to
  void save(const Member& member, const Outcome& outcome) const;
  bool train(const Member& member, const ProteinSplit& split,
             const std::function<void(std::int64_t)>& progress, Outcome& outcome) const;

  const Protein& protein_;
  const Context& context_;
  const Table1Options& options_;
  const OutputFolder& folder_;
  StopFlag stop_;
  std::string fingerprint_;  // of the data
};

/// The exact infinite-width regression of member.spec() on the split's training rows. Throws
/// Interrupted once `stop` is raised.
Outcome solve_kernel(const Member& member, const Protein& protein, const ProteinSplit& split,
                     const Table1Options& options, const Context& context, StopFlag stop);

}  // namespace keel

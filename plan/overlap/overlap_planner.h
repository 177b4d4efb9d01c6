// Plans a step's overlap, and what the others' ways would take beside it. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "plan/overlap/group_search.h"
#include "plan/overlap/layers.h"

namespace plait::plan {

// One way to fuse and to share.
struct OverlapSolution {
  std::string method;  // "LIBRA", "MG-WFBP", ..
  std::string share;   // "chosen a group", "best", "a library's"
  std::vector<OverlapGroup> groups;
  BackwardTime time;           // of the exact schedule
  double chunked_seconds = 0;  // of the dynamic program: T(K, L, Z); 0: it made none
};

struct OverlapComparison {
  OverlapSolution libra;                  // groups and shares together
  std::vector<OverlapSolution> variants;  // parts of it: shares alone for MG-WFBP's groups, groups alone with one share
  std::vector<OverlapSolution> baselines;  // SE, WFBP, buckets, MG-WFBP, each with the best and with a library's share
  double guarantee = 1;                    // 1 + (L - 1)/Z: of what the dynamic program finds to the best of all
  bool keeps_given = false;                // the last of the variants is that of given groups
  // What a plan should be made of: of given groups, else the least of all that overlap.
  const OverlapSolution& best() const;
  // The baselines' least.
  const OverlapSolution& best_baseline() const;
};

// The share that a library takes which knows of no contention: the one with the most resources, and the fewest threads
// among those.
std::size_t library_share(const OverlapModel& model);

// Precondition: the pass has calls and its computation is not zero. `startup`: a of a reduction, for MG-WFBP. `given`:
// groups to choose shares for; empty: none. Where there are some, they are the plan.
OverlapComparison compare_overlap(const BackwardPass& pass, const OverlapModel& model,
                                  const GroupSearchOptions& options, double startup,
                                  const std::vector<OverlapGroup>& given = {});

// The solution as a plan. Precondition: it is one of this table's backward pass.
OverlapPlan overlap_plan_of(const LayerTable& table, const Fingerprint& fingerprint, const OverlapSolution& solution);

}  // namespace plait::plan

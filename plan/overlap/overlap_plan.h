// An overlap plan: how the reductions of one training step are fused into groups, and what share of the machine each
// group's communication may take while the step computes. A file (docs/overlap.md, docs/overlap.schema.json) that
// `plait overlap plan` writes and PLAIT_OVERLAP names. The method is LIBRA's (Liu et al., "Contention-Aware GPU Thread
// Allocation for Data Parallel Training in High Speed Networks", sections III and IV).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/machine.h"

namespace plait::plan {

// The paper's r: what communication may take of a process's cores while computation runs beside it.
struct CommunicationShare {
  int threads = 1;  // helper threads of the process
  double duty = 1;  // the share of a core that each of them may take; 0 < duty <= 1

  friend bool operator==(const CommunicationShare&, const CommunicationShare&) = default;
};

// "1 x 0.25": threads x duty.
std::string share_text(const CommunicationShare& share);

// One reduction that the step posts.
struct OverlapCall {
  std::size_t bytes = 0;  // of its payload; at least 1
  std::string layer;      // whose gradient it is; for people
};

// Calls that become one reduction: consecutive in the order in which they are posted.
struct OverlapGroup {
  std::size_t first_call = 0, calls = 0;
  CommunicationShare share;
};

struct OverlapPlan {
  std::string model;
  Fingerprint fingerprint;  // of the system that it was made for; empty: fits all (mismatch(), plan/choose/table.h)
  std::vector<OverlapCall> calls;    // of one step, in the order in which they are posted
  std::vector<OverlapGroup> groups;  // cover all calls in order, without gaps
  // Predicted, of one backward pass; 0: not known.
  double backward_seconds = 0;     // from its start until the last group is reduced
  double computation_seconds = 0;  // of which computation takes with communication beside it ...
  double exposed_seconds = 0;      // ... and communication takes alone
};

// The payload of a group in bytes. Groups of a plan that was read don't overflow.
std::size_t group_bytes(const OverlapPlan& plan, const OverlapGroup& group);

// Fails (invalid) with the place and what was expected there.
Result<OverlapPlan> parse_overlap_plan(std::string_view text);
std::string overlap_plan_json(const OverlapPlan& plan);

// What a plan may hold; larger ones are refused.
inline constexpr std::size_t most_overlap_calls = 65536;
inline constexpr int most_helper_threads = 1024;
inline constexpr double least_duty = 0.01;
inline constexpr std::size_t largest_overlap_file = std::size_t{16} << 20;
// Reads and parses a file. Fails (invalid) with its name, the place and the reason. Blocks on the disk.
Result<OverlapPlan> read_overlap_plan(const std::string& path);

}  // namespace plait::plan

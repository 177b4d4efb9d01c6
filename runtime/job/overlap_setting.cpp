#include "runtime/job/overlap_setting.h"

#include <algorithm>
#include <utility>

#include "core/text_hash.h"
#include "runtime/job/tuning_table.h"

namespace plait::runtime {
namespace {

OwnOverlapPlan refused_plan(const std::string& reason) {
  return {nullptr, false, OwnOverlapPlan::refused, "PLAIT_OVERLAP is not used: " + reason};
}

}  // namespace

OwnOverlapPlan read_own_overlap_plan(const Config& config, const std::string& mpi_release) {
  if (config.overlap.empty()) return {};
  if (config.overlap == "auto") return {nullptr, true, hash_text(config.overlap), {}};
  Result<OverlapPlan> plan = read_overlap_plan(config.overlap);
  if (!plan.ok()) return refused_plan(plan.status().message());
  const Fingerprint job = plan->fingerprint.empty() ? Fingerprint() : job_fingerprint(config, mpi_release);
  if (const std::string entry = mismatch(plan->fingerprint, job); !entry.empty())
    return refused_plan("\"" + config.overlap + "\": it was made for " + entry + " '" + plan->fingerprint.at(entry) +
                        "', and here it is '" + job.at(entry) + "'");
  const std::uint64_t hash = std::max(hash_text(overlap_plan_json(*plan)), OwnOverlapPlan::refused + 1);
  return {std::make_shared<const OverlapPlan>(std::move(*plan)), false, hash, {}};
}

}  // namespace plait::runtime

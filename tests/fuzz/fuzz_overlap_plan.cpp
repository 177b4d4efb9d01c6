// An overlap plan that is read comes back from what is written of it, and its groups are all its calls in order.
#include "plan/overlap/overlap_plan.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;
using namespace plait::plan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<OverlapPlan> plan = parse_overlap_plan(fuzz::text_of(data, size));
  if (!plan.ok()) {
    fuzz::require(!plan.status().message().empty(), "a refusal says why");
    return 0;
  }
  std::size_t next = 0;
  for (const OverlapGroup& group : plan->groups) {
    fuzz::require(group.first_call == next && group.calls > 0, "groups follow each other");
    fuzz::require(group_bytes(*plan, group) >= group.calls, "each call has a byte at least");
    fuzz::require(group.share.threads > 0 && group.share.duty > 0 && group.share.duty <= 1, "a share is one");
    next += group.calls;
  }
  fuzz::require(next == plan->calls.size(), "groups are all calls");
  const std::string written = overlap_plan_json(*plan);
  const Result<OverlapPlan> again = parse_overlap_plan(written);
  fuzz::require(again.ok() && overlap_plan_json(*again) == written, "what is written is that plan");
  return 0;
}

#include "fused/ground/fused_plan.h"

#include <mutex>
#include <vector>

#include "core/immortal.h"

namespace plait::fused {
namespace {

struct AlivePlans {
  std::mutex guard;
  std::vector<FusedPlan*> all;
};
AlivePlans& alive_plans() {
  static Immortal<AlivePlans> made;  // never destroyed: plans may be freed until the process ends
  return *made;
}

}  // namespace

FusedPlan::FusedPlan() {
  const std::scoped_lock lock(alive_plans().guard);
  alive_plans().all.push_back(this);
}

FusedPlan::~FusedPlan() {
  const std::scoped_lock lock(alive_plans().guard);
  std::erase(alive_plans().all, this);
}

void finish_fused_plans() {
  std::vector<FusedPlan*> all;
  {
    const std::scoped_lock lock(alive_plans().guard);
    all = alive_plans().all;
  }
  for (FusedPlan* one : all) delete one;
}

}  // namespace plait::fused

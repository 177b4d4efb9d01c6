#include "fused/frame/tile_plan.h"

#include <algorithm>
#include <utility>

#include "fused/run/plan_text.h"

namespace plait::fused {

Status TilePlan::connect(Oob& all, const MakeMembers& make_members) {
  Result<std::unique_ptr<Ground>> ground = Ground::make(all, make_members);
  if (!ground.ok()) return ground.status();
  ground_ = std::move(*ground);
  Oob& oob = ground_->members().oob();
  if (Status status = meet(oob); !status.ok()) return status;
  Result<PlanCosts> costs = agree_on_costs(oob, ground_->team());
  if (!costs.ok()) return costs.status();
  costs_ = *costs;
  if (Status status = agree_on_workers(oob); !status.ok()) return status;
  ExchangeRequest exchange;
  TileRunRequest run;
  const Status laid_out = attempt([&]() -> Status {
    run.processors = costs_.processors;
    run.workers = options().workers;
    run.aware = options().aware;
    run.plan = name();
    for (int of = 0; of < ranks(); ++of) run.node_of.push_back(node_of(of));
    return lay_out(exchange, run);
  });
  if (Status status = oob.go_on_together(laid_out); !status.ok()) return status;
  Result<std::unique_ptr<Exchange>> made = Exchange::make(ground_->team(), std::move(exchange));
  if (!made.ok()) return made.status();
  return attempt([&]() -> Status {
    run_ = std::make_unique<TileRun>(static_cast<TileWork&>(*this), ground_->team(), std::move(*made), std::move(run));
    prepare();
    describe();
    return {};
  });
}

Status TilePlan::agree_on_workers(Oob& oob) {
  const std::int64_t mine = options().workers != 0 ? options().workers : costs_.processors.own;
  return oob.reduce_all(&mine, &most_workers_, 1, Element::i64, Op::max, "agree on how many workers they have");
}

bool TilePlan::goes_far() const {
  return ground_->team() != nullptr && ground_->team()->planner.hierarchy().nodes() > 1;
}

// Within a node little is left to hide, and large blocks are worth more than many; between nodes the first block that
// is sent is to be there soon.
std::int64_t TilePlan::enough_blocks() const {
  constexpr std::int64_t near = 2, far = 8, for_each_worker = 4;
  return std::max(goes_far() ? far : near, for_each_worker * most_workers_ / ranks());
}

int TilePlan::node_of(int rank) const {
  return ground_->team() != nullptr ? ground_->team()->planner.hierarchy().node_of(rank) : 0;
}

std::size_t TilePlan::slice_bytes_for(std::uint64_t bytes) const {
  if (options().slice_bytes != 0) return options().slice_bytes;
  return slice_bytes(goes_far() ? costs_.far : costs_.near, bytes);
}

void TilePlan::describe() {
  PlanNumbers numbers{.workers = run_->workers(), .ranks = ranks()};
  for (const Pane& pane : run_->panes()) {
    numbers.slices += pane.slices.size();
    numbers.tiles += pane.tiles.size();
  }
  description_ = plan_text(name(), numbers, run_->exchange());
}

Status TilePlan::wait() {
  if (Status status = run_->wait(); !status.ok()) return status;
  const auto& refusal = run_->refusal();
  if (!refusal) return {};
  return attempt([&] {
    return Status(Code::invalid, text_of(refusal->complaint) + " (on rank " + std::to_string(refusal->rank) + ")");
  });
}

}  // namespace plait::fused

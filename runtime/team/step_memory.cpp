// The part of the set-up that lets its further steps go through the memory of the nodes (runtime/oob/node_oob.h). Where
// that does not work on all ranks they go on as they have met.

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "core/attempt.h"
#include "core/log.h"
#include "runtime/layer.h"
#include "runtime/oob/node_oob.h"
#include "runtime/team/set_up_steps.h"
#include "tl/shm/shm_channel.h"

namespace plait::runtime {
namespace {

// Fewer have met in less time than such a memory takes to make.
constexpr int fewest_ranks = 8;

}  // namespace

// The same on all ranks.
bool SetUp::may_step_in_memory() const {
  return ranks_ >= fewest_ranks && ranks_ <= NodeOob::most_ranks && steps_ == nullptr && may_use(ChannelKind::shm) &&
         oob_->messages() != nullptr;
}

// No rank knows yet whether it is its node's first one.
void SetUp::offer_steps(Entry& mine) {
  const Status made = attempt([&]() -> Status {
    Result<SharedSegment> memory = SharedSegment::create_unreserved(NodeOob::memory_bytes);
    if (!memory.ok()) return memory.status();
    step_memory_ = std::move(*memory);
    mine.steps = step_memory_.offer();
    return {};
  });
  if (!made.ok()) debug("set-up: " + made.message());
}

Status SetUp::open_steps() {
  if (step_offer_.bytes == 0) return {Code::unavailable, "the node's first rank has no memory for the steps"};
  if (neighbours_.front() == rank_) {
    if (Status reserved = step_memory_.reserve(); !reserved.ok()) return reserved;
  } else {
    Result<SharedSegment> attached = SharedSegment::attach(step_offer_);
    if (!attached.ok()) return attached.status();
    step_memory_ = std::move(*attached);
  }
  steps_ = std::make_unique<NodeOob>(*oob_, hierarchy_, std::span(step_memory_.data(), step_memory_.bytes()));
  return {};
}

// Nobody touches the memory before all know that it is there.
Status SetUp::step_in_memory() {
  if (by_node_ || !may_step_in_memory() || hierarchy_.nodes() == ranks_) return {};
  const Status opened = attempt([&] { return open_steps(); });
  if (!opened.ok()) debug("set-up: " + opened.message());
  const std::array<int, 1> mine = {opened.ok()};
  std::array<int, 1> all = {0};
  Status met = reduce_all(*oob_, mine, all, Op::min, "agree on their steps");
  if (!met.ok() || all.front() == 0) steps_.reset();
  step_memory_.close_descriptor();
  if (steps_ == nullptr) step_memory_ = {};
  return met;
}

}  // namespace plait::runtime

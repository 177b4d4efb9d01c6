#include "fused/run/tile_run.h"

#include <algorithm>
#include <utility>

namespace plait::fused {
namespace {

// Looks in vain between two looks whether a rank has failed.
constexpr std::uint32_t failures_every = 256;

int workers_of(const TileRunRequest& request) {
  return request.workers != 0 ? request.workers : request.processors.own;
}

}  // namespace

TileRun::TileRun(TileWork& work, Team* team, std::unique_ptr<Exchange> exchange, TileRunRequest request)
    : work_(work),
      team_(team),
      exchange_(std::move(exchange)),
      kept_(request.kept),
      panes_(std::move(request.panes)),
      crew_(workers_of(request), request.processors.crowded || workers_of(request) > request.processors.own) {
  for (const Pane& pane : panes_) left_.push_back(std::make_unique<std::atomic<std::uint32_t>[]>(pane.slices.size()));
  line_up_tiles(request);
  arm();
}

TileRun::~TileRun() {
  if (started_) static_cast<void>(wait());
}

// What goes by messages comes first, an owner after the other: it has the longest way. What is written to where it
// stays waits for nothing but memory, which is used best where each column's source is read once for all owners.
void TileRun::line_up_tiles(const TileRunRequest& request) {
  const int rank = team_ != nullptr ? team_->oob->rank() : 0;
  if (!request.aware) {
    for (const int owner : plain_order(static_cast<int>(panes_.size()))) add_queue({owner});
    return;
  }
  std::vector<int> near;
  for (const int owner : communication_order(request.node_of, rank))
    if (exchange_->reach(owner) == Reach::messages)
      add_queue({owner});
    else
      near.push_back(owner);
  add_queue(std::move(near));
}

void TileRun::add_queue(std::vector<int> owners) {
  std::vector<const Pane*> panes;
  for (const Pane& pane : panes_) panes.push_back(&pane);
  queues_.push_back(std::make_unique<Queue>());
  queues_.back()->turns = line_up(panes, owners);
  queues_.back()->owners = std::move(owners);
}

// Tiles that were not computed, of a run that was over before, count again.
void TileRun::arm() {
  for (std::size_t owner = 0; owner < panes_.size(); ++owner)
    for (std::size_t slice = 0; slice < panes_[owner].slices.size(); ++slice)
      left_[owner][slice].store(panes_[owner].slices[slice].tiles, std::memory_order_relaxed);
}

// ---- A run ----

Status TileRun::start(const Complaint* complaint) {
  if (!failure_.ok()) return failure_;
  if (started_) return {Code::unsupported, "start: the plan's last run has not been waited for"};
  for (const auto& queue : queues_) queue->next.store(0, std::memory_order_relaxed);
  exchange_->begin(complaint);
  started_ = true;
  crew_.begin(worker_);
  return {};
}

Status TileRun::wait() {
  if (!started_) return {Code::unsupported, "wait: the plan has not been started"};
  crew_.join();
  started_ = false;
  if (const Status status = exchange_->conclude(); !status.ok()) {
    failure_ = team_->reason_of(status);
    team_->give_up(failure_);
    return failure_;
  }
  if (refusal()) arm();
  return {};
}

bool TileRun::may_take(const Queue& queue) const {
  return std::ranges::all_of(
      queue.owners, [this](int owner) { return kept_ ? exchange_->may_leave(owner) : exchange_->may_write(owner); });
}

// `first`: queues before this one have no tiles left.
TileRun::Take TileRun::take(std::size_t& first, Turn& taken) {
  bool later = false;
  for (std::size_t at = first; at < queues_.size(); ++at) {
    Queue& queue = *queues_[at];
    if (queue.next.load(std::memory_order_relaxed) >= queue.turns.size()) {
      if (at == first) ++first;
      continue;
    }
    if (!may_take(queue)) {
      later = true;
      continue;
    }
    const std::uint32_t turn = queue.next.fetch_add(1, std::memory_order_relaxed);
    if (turn >= queue.turns.size()) continue;
    taken = queue.turns[turn];
    return Take::one;
  }
  return later ? Take::later : Take::none;
}

void TileRun::compute(const Turn& taken) {
  const auto owner = static_cast<std::size_t>(taken.owner);
  const Tile& tile = panes_[owner].tiles[taken.tile];
  const Slice& slice = panes_[owner].slices[tile.slice];
  work_.compute({taken.owner, slice, tile, exchange_->target(taken.owner, tile.slice)});
  // Who ends the slice has seen what the others wrote. The count is as it was for the next run.
  std::atomic<std::uint32_t>& left = left_[owner][tile.slice];
  if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  left.store(slice.tiles, std::memory_order_relaxed);
  exchange_->finished(taken.owner, tile.slice);
}

void TileRun::serve(int worker) noexcept {
  const bool leads = worker == 0;
  std::size_t first = 0;
  std::uint32_t vain = 0;
  Patience patience(crew_.crowded());
  while (!exchange_->is_over()) {
    Turn taken;
    const Take found = take(first, taken);
    if (found == Take::one) compute(taken);
    bool moved = exchange_->turn(leads);
    if (found != Take::one && exchange_->is_good()) moved |= work_.use_what_has_come(worker);
    if (moved || found == Take::one) {
      patience.reset();
      continue;
    }
    if (found == Take::none && work_.has_used_all() && (!leads || exchange_->is_settled())) return;
    patience.wait();
    if (leads && ++vain % failures_every == 0) exchange_->look_for_failures();
  }
  while (leads && !exchange_->is_settled())
    if (!exchange_->turn(true)) patience.wait();
}

}  // namespace plait::fused

#include "fused/run/tile_run.h"

#include <algorithm>
#include <utility>

#include "runtime/job/job.h"
#include "tl/trace.h"

namespace plait::fused {
namespace {

// Looks in vain between two looks whether a rank has failed.
constexpr std::uint32_t failures_every = 256;

}  // namespace

TileRun::TileRun(TileWork& work, Team* team, std::unique_ptr<Exchange> exchange, TileRunRequest request)
    : work_(work),
      team_(team),
      exchange_(std::move(exchange)),
      panes_(std::move(request.panes)),
      chains_(static_cast<std::size_t>(request.chains)),
      keeps_(request.keeps),
      tiles_first_(request.tiles_first),
      serial_(request.serial),
      crew_(request.worker_count(), request.processors.crowded || request.worker_count() > request.processors.own,
            request.processors.places) {
  for (const Pane& pane : panes_) left_.push_back(std::make_unique<std::atomic<std::uint32_t>[]>(pane.slices.size()));
  line_up_tiles(request);
  arm();
  if (!job().tracing) return;
  trace_ = std::make_unique<WorkersTrace>(request.plan, static_cast<int>(panes_.size()), crew_.workers());
  exchange_->record(&trace_->messages);
}

TileRun::~TileRun() {
  if (started_) static_cast<void>(wait());
  if (trace_ != nullptr) keep_trace(std::move(trace_));
}

// What goes by messages comes first, an owner after the other: it has the longest way. What is written to where it
// stays waits for nothing but memory, which is used best where each column's source is read once for all owners. What
// is kept may be left with each owner as soon as that one is ready, whoever else is not.
void TileRun::line_up_tiles(const TileRunRequest& request) {
  const int rank = team_ != nullptr ? team_->oob->rank() : 0;
  if (!request.aware) {
    for (const int owner : plain_order(static_cast<int>(panes_.size()))) add_queue({owner});
    return;
  }
  std::vector<int> near;
  for (const int owner : communication_order(request.node_of, rank))
    if (keeps_ || exchange_->reach(owner) == Reach::messages)
      add_queue({owner});
    else
      near.push_back(owner);
  if (!near.empty()) add_queue(std::move(near));
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

Status TileRun::may_start() const {
  if (!failure_.ok()) return failure_;
  if (started_) return {Code::unsupported, "start: the plan's last run has not been waited for"};
  return {};
}

Status TileRun::start(const Complaint* complaint) {
  if (Status status = may_start(); !status.ok()) return status;
  for (const auto& queue : queues_) queue->next.store(0, std::memory_order_relaxed);
  for (Chain& chain : chains_) {
    chain.next.store(0, std::memory_order_relaxed);
    chain.done.store(0, std::memory_order_relaxed);
  }
  if (trace_ != nullptr) {
    ++runs_;
    began_ns_ = monotonic_ns();
  }
  exchange_->begin(complaint);
  started_ = true;
  crew_.begin(worker_);
  return {};
}

Status TileRun::wait() {
  if (!started_) return {Code::unsupported, "wait: the plan has not been started"};
  crew_.join();
  started_ = false;
  if (trace_ != nullptr) trace_->runs.add({.begin_ns = began_ns_, .end_ns = monotonic_ns(), .run = runs_});
  if (const Status status = exchange_->conclude(); !status.ok()) {
    failure_ = team_->reason_of(status);
    team_->give_up(failure_);
    return failure_;
  }
  if (refusal()) arm();
  return {};
}

Status TileRun::break_off(const Status& cause) {
  failure_ = cause;
  if (team_ != nullptr) team_->give_up(failure_);
  return failure_;
}

bool TileRun::may_take(const Queue& queue) const {
  return std::ranges::all_of(
      queue.owners, [this](int owner) { return keeps_ ? exchange_->may_leave(owner) : exchange_->may_write(owner); });
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

void TileRun::compute(const Turn& taken, int worker) {
  const auto owner = static_cast<std::size_t>(taken.owner);
  const Tile& tile = panes_[owner].tiles[taken.tile];
  const Slice& slice = panes_[owner].slices[tile.slice];
  const std::uint64_t begin_ns = trace_ != nullptr ? monotonic_ns() : 0;
  work_.compute({taken.owner, slice, tile, exchange_->target(taken.owner, tile.slice), worker});
  if (trace_ != nullptr) note(worker, WorkerAct::tile, taken.owner, begin_ns);
  // Who ends the slice has seen what the others wrote. The count is as it was for the next run.
  std::atomic<std::uint32_t>& left = left_[owner][tile.slice];
  if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  left.store(slice.tiles, std::memory_order_relaxed);
  const std::uint64_t finish_ns = trace_ != nullptr ? monotonic_ns() : 0;
  exchange_->finished(taken.owner, tile.slice);
  if (trace_ != nullptr && exchange_->reach(taken.owner) != Reach::self)
    note(worker, WorkerAct::send, taken.owner, finish_ns, exchange_->bytes_of(taken.owner, tile.slice));
}

// ---- The trace ----

void TileRun::note(int worker, WorkerAct act, int peer, std::uint64_t begin_ns, std::uint64_t bytes) {
  trace_->workers[static_cast<std::size_t>(worker)].add(
      {.begin_ns = begin_ns, .end_ns = monotonic_ns(), .bytes = bytes, .peer = peer, .run = runs_, .act = act});
}

// ---- Tasks ----

// The first that is ready. A task that another worker takes first is looked for again in the next turn.
bool TileRun::follow_one(int worker) {
  if (chains_.empty() || !exchange_->is_good()) return false;
  for (std::size_t at = 0; at < chains_.size(); ++at) {
    Chain& chain = chains_[at];
    Task task{static_cast<int>(at), chain.next.load(std::memory_order_relaxed)};
    if (task.number >= work_.tasks_of(task.chain) || !work_.is_ready(task)) continue;
    if (serial_ && chain.done.load(std::memory_order_acquire) != task.number) continue;
    std::uint32_t number = task.number;
    if (!chain.next.compare_exchange_strong(number, number + 1, std::memory_order_relaxed)) continue;
    const std::uint64_t begin_ns = trace_ != nullptr ? monotonic_ns() : 0;
    work_.follow(task, worker);
    if (trace_ != nullptr) note(worker, WorkerAct::task, -1, begin_ns);
    chain.done.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

bool TileRun::is_all_followed() const {
  for (std::size_t at = 0; at < chains_.size(); ++at)
    if (chains_[at].done.load(std::memory_order_acquire) != work_.tasks_of(static_cast<int>(at))) return false;
  return true;
}

// ---- Workers ----

void TileRun::breathe(int worker) noexcept {
  if (worker == 0) static_cast<void>(exchange_->turn(true));
}

// Whether anything was done or moved.
bool TileRun::step(bool leads, int worker, std::size_t& first, Take& found) {
  Turn taken;
  found = take(first, taken);
  if (found == Take::one) compute(taken, worker);
  const bool moved = exchange_->turn(leads);
  if (tiles_first_ && found == Take::one) return true;
  return follow_one(worker) || moved || found == Take::one;
}

void TileRun::serve(int worker) noexcept {
  work(worker);
  if (trace_ != nullptr) trace_->workers[static_cast<std::size_t>(worker)].end_wait(runs_, monotonic_ns());
}

void TileRun::work(int worker) noexcept {
  const bool leads = worker == 0;
  std::size_t first = 0;
  std::uint32_t vain = 0;
  Patience patience(crew_.crowded());
  while (!exchange_->is_over()) {
    Take found;
    if (step(leads, worker, first, found)) {
      patience.reset();
      continue;
    }
    if (found == Take::none && is_all_followed() && (!leads || exchange_->is_settled())) return;
    wait_in_vain(patience, worker, vain);
  }
  while (leads && !exchange_->is_settled())
    if (!exchange_->turn(true)) wait_in_vain(patience, worker, vain);
}

void TileRun::wait_in_vain(Patience& patience, int worker, std::uint32_t& vain) {
  if (trace_ != nullptr) trace_->workers[static_cast<std::size_t>(worker)].begin_wait(monotonic_ns());
  patience.wait();
  if (worker == 0 && ++vain % failures_every == 0) exchange_->look_for_failures();
}

}  // namespace plait::fused

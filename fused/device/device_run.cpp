#include "fused/device/device_run.h"

#include <algorithm>
#include <utility>

namespace plait::fused {
namespace {

// Looks in vain between two looks whether a rank has failed.
constexpr std::uint32_t device_failures_every = 256;

}  // namespace

Status DeviceWork::add(DeviceStream&, const DeviceParts&) {
  return {Code::internal, "an operator on devices has no sum"};
}

DeviceRun::~DeviceRun() {
  if (started_) static_cast<void>(wait());
  if (working_) stream_->finish();
}

std::uint64_t DeviceRun::reserved_bytes() const {
  return parts_.bytes() + tiles_.bytes() + slices_.bytes() + counters_.bytes();
}

// ---- A run ----

Status DeviceRun::may_start() const {
  if (!failure_.ok()) return failure_;
  if (started_) return {Code::unsupported, "start: the plan's last run has not been waited for"};
  return {};
}

// What fails here is said by wait(): all ranks start the run, and are told there.
Status DeviceRun::start() {
  if (Status status = may_start(); !status.ok()) return status;
  started_ = true;
  if (!computes()) return {};
  working_ = true;
  start_failure_ = request_.ground.driver->record_program(*program_);
  if (start_failure_.ok()) start_failure_ = stream_->follow(*program_);
  if (start_failure_.ok()) start_failure_ = work_.look(*stream_);
  if (start_failure_.ok()) start_failure_ = stream_->record(*end_);
  return {};
}

Status DeviceRun::wait() {
  if (!started_) return {Code::unsupported, "wait: the plan has not been started"};
  started_ = false;
  const Status status = run();
  if (status.ok()) return {};
  // A kernel always ends. No event is asked: what has failed may be that one could not be recorded.
  if (std::exchange(working_, false)) stream_->finish();
  failure_ = team_ != nullptr ? team_->reason_of(status) : status;
  if (team_ != nullptr) team_->give_up(failure_);
  return failure_;
}

template <class Done>
Status DeviceRun::wait_until(Done&& done) {
  Patience patience(request_.crowded);
  for (std::uint32_t vain = 0;;) {
    const Result<bool> is_done = done();
    if (!is_done.ok() || *is_done) return is_done.status();
    if (exchange_->has_failed()) return exchange_->conclude();
    patience.wait();
    if (++vain % device_failures_every == 0) exchange_->look_for_failures();
  }
}

Status DeviceRun::run() {
  if (Status status = announce(); !status.ok()) return status;
  if (!exchange_->is_good()) return exchange_->conclude();
  if (Status status = compute(); !status.ok()) return status;
  if (sums())
    if (Status status = add_parts(); !status.ok()) return status;
  const Status ended = wait_until([this]() -> Result<bool> {
    if (working_) {
      const Result<bool> passed = end_->passed();
      if (!passed.ok()) return passed;
      working_ = !*passed;
    }
    exchange_->turn(true);
    return !working_ && all_came() && exchange_->is_settled();
  });
  return ended.ok() ? exchange_->conclude() : ended;
}

// Once the others may touch this rank's memory; and until all have said so of theirs.
Status DeviceRun::announce() {
  if (!start_failure_.ok()) return std::exchange(start_failure_, {});
  if (computes())
    if (const Status looked = wait_until([this] { return end_->passed(); }); !looked.ok()) return looked;
  working_ = false;
  Complaint complaint;
  const Result<bool> bad = work_.complains(complaint);
  if (!bad.ok()) return bad.status();
  std::ranges::fill(seen_, 0u);
  exchange_->begin(*bad ? &complaint : nullptr);
  return wait_until([this]() -> Result<bool> {
    exchange_->turn(true);
    return exchange_->is_good() || exchange_->is_over();
  });
}

Status DeviceRun::compute() {
  if (tile_count_ == 0) return {};
  working_ = true;
  const DeviceTiles tiles{.tiles = reinterpret_cast<const DeviceTile*>(tiles_.data()),
                          .slices = reinterpret_cast<const DeviceSlice*>(slices_.data()),
                          .counters = reinterpret_cast<std::uint32_t*>(counters_.data()),
                          .count = static_cast<std::uint32_t>(tile_count_),
                          .run = exchange_->run()};
  const Status started = work_.compute(*stream_, tiles, aligned_);
  return started.ok() ? stream_->record(*end_) : started;
}

// This rank's own parts are in the order of its stream.
Status DeviceRun::add_parts() {
  if (request_.part_bytes != 0) {
    const Status all = wait_until([this]() -> Result<bool> {
      exchange_->turn(true);
      for (int source = 0; source < ranks_; ++source)
        if (!came(source, request_.coming[index(source)])) return false;
      return true;
    });
    if (!all.ok()) return all;
    working_ = true;
    Status added = work_.add(*stream_, sum_);
    if (added.ok()) added = stream_->record(*end_);
    if (!added.ok()) return added;
    if (Status status = wait_until([this] { return end_->passed(); }); !status.ok()) return status;
    working_ = false;
  }
  if (request_.sum == DeviceSum::to_all)
    for (int owner = 0; owner < ranks_; ++owner)
      if (owner != rank_)
        exchange_->finished(owner, static_cast<std::uint32_t>(request_.panes[index(owner)].slices.size()));
  return {};
}

bool DeviceRun::came(int source, std::uint32_t until) {
  if (source == rank_) return true;
  std::uint32_t& seen = seen_[index(source)];
  while (seen < until && exchange_->has_come(source, seen)) ++seen;
  return seen >= until;
}

// Of a sum to all there is one more: the source's own share.
bool DeviceRun::all_came() {
  const std::uint32_t shares = request_.sum == DeviceSum::to_all ? 1 : 0;
  for (int source = 0; source < ranks_; ++source)
    if (!came(source, request_.coming[index(source)] + shares)) return false;
  return true;
}

}  // namespace plait::fused

#include "fused/device/device_run.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

namespace plait::fused {
namespace {

// Looks in vain between two looks whether a rank has failed.
constexpr std::uint32_t device_failures_every = 256;

}  // namespace

DeviceTile DeviceWork::place(int, const Slice&, const Tile&, std::byte*) const { return {}; }

Status DeviceWork::follow(DeviceStream&, const DeviceParts&) {
  return {Code::internal, "an operator on devices makes nothing of parts"};
}

Status RankPlaces::can_add(const DeviceGround& ground, int ranks) {
  if (static_cast<std::size_t>(ranks) > most_device_parties)
    return {Code::unsupported, "devices add the parts of " + std::to_string(most_device_parties) + " ranks at most"};
  if (!ground.driver->reduces(ground.memory, Op::sum, Element::f32))
    return {Code::unsupported, "device memory: no kernels that combine"};
  return {};
}

DeviceReduction RankPlaces::sum_of(const DeviceParts& sum, const Numbers& numbers) {
  for (std::size_t of = 0; of < parts_.size(); ++of) parts_[of] = sum.parts[of] + numbers.in_part;
  outputs_.clear();
  for (std::byte* output : sum.outputs)
    if (output != nullptr) outputs_.push_back(output + numbers.in_output);
  return {.op = Op::sum, .element = Element::f32, .elements = numbers.count, .sources = parts_, .results = outputs_};
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
  if (takes_parts())
    if (Status status = follow_parts(); !status.ok()) return status;
  const Status ended = wait_until([this]() -> Result<bool> {
    const Result<bool> idle = is_idle();
    while (exchange_->turn(true)) {  // a slice each, though nothing of it is copied
    }
    return idle.ok() && *idle ? all_came() && exchange_->is_settled() : idle;
  });
  return ended.ok() ? exchange_->conclude() : ended;
}

Result<bool> DeviceRun::is_idle() {
  if (!working_) return true;
  const Result<bool> passed = end_->passed();
  if (passed.ok()) working_ = !*passed;
  return passed;
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

// To owners of no tiles there is nothing to wait for.
Status DeviceRun::cut_tiles() {
  cut_tiles_.clear();
  work_.cut({.order = request_.order, .bases = their_parts_}, cut_tiles_);
  for (DeviceSlice& slice : cut_slices_) slice.tiles = 0;
  for (const DeviceTile& tile : cut_tiles_) ++cut_slices_[tile.slice].tiles;
  for (std::size_t at = 0; at < cut_slices_.size(); ++at)
    if (const int owner = request_.order[at]; cut_slices_[at].tiles == 0 && owner != rank_)
      exchange_->finished(owner, 0);
  tile_count_ = cut_tiles_.size();
  if (tile_count_ == 0) return {};
  working_ = true;
  const std::size_t bytes = tile_count_ * sizeof(DeviceTile), slice_bytes = cut_slices_.size() * sizeof(DeviceSlice);
  std::memcpy(sent_tiles_.data(), cut_tiles_.data(), bytes);
  std::memcpy(sent_slices_.data(), cut_slices_.data(), slice_bytes);
  const Status sent = stream_->copy(tiles_.data(), sent_tiles_.data(), bytes);
  return sent.ok() ? stream_->copy(slices_.data(), sent_slices_.data(), slice_bytes) : sent;
}

Status DeviceRun::compute() {
  if (request_.most_tiles != 0)
    if (Status status = cut_tiles(); !status.ok()) return status;
  if (tile_count_ == 0 && !follows_) return {};
  working_ = true;
  const DeviceTiles tiles{.tiles = reinterpret_cast<const DeviceTile*>(tiles_.data()),
                          .slices = reinterpret_cast<const DeviceSlice*>(slices_.data()),
                          .counters = reinterpret_cast<std::uint32_t*>(counters_.data()),
                          .count = static_cast<std::uint32_t>(tile_count_),
                          .run = exchange_->run(),
                          .shares = shares_};
  const Status started = work_.compute(*stream_, tiles, aligned_);
  return started.ok() ? stream_->record(*end_) : started;
}

// Once the device is through with the tiles.
bool DeviceRun::were_followed() const {
  if (!follows_) return false;
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(missed_.data())).load(std::memory_order_acquire) !=
         exchange_->run();
}

// This rank's own parts are in the order of its stream; its device is asked all the same, as others wait for what fails
// there.
Status DeviceRun::follow_when_all_came() {
  const Status all = wait_until([this]() -> Result<bool> {
    if (const Result<bool> idle = is_idle(); !idle.ok()) return idle;
    exchange_->turn(true);
    for (int source = 0; source < ranks_; ++source)
      if (!came(source, request_.coming[index(source)])) return false;
    return true;
  });
  if (!all.ok()) return all;
  working_ = true;
  Status made = work_.follow(*stream_, sum_);
  if (made.ok()) made = stream_->record(*end_);
  if (made.ok()) made = wait_until([this] { return is_idle(); });
  const bool lacks = made.ok() && work_.follows() == DeviceWork::Follows::as_expected && !were_followed();
  return lacks ? Status(Code::internal, "a device leaves undone what all parts are there for") : made;
}

Status DeviceRun::follow_parts() {
  if (follows_)
    if (Status status = wait_until([this] { return is_idle(); }); !status.ok()) return status;
  if (request_.part_bytes != 0 && !were_followed())
    if (Status status = follow_when_all_came(); !status.ok()) return status;
  if (request_.parts_to == PartsTo::all)
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
  const std::uint32_t shares = request_.parts_to == PartsTo::all ? 1 : 0;
  for (int source = 0; source < ranks_; ++source)
    if (!came(source, request_.coming[index(source)] + shares)) return false;
  return true;
}

}  // namespace plait::fused

#include "plugin/schedule_cache.h"

#include <algorithm>
#include <string>

#include "plugin/process.h"
#include "plugin/reasons.h"

namespace plait {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

std::string channel_names(std::uint32_t used) {
  std::string names;
  for (int kind = 0; kind < channel_kinds; ++kind)
    if ((used >> kind & 1u) != 0) names.append(names.empty() ? "" : ",").append(name(static_cast<ChannelKind>(kind)));
  return names;
}

// Whether a call's count is that of one rank's part.
bool counts_parts(Collective collective) {
  switch (collective) {
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::gather:
    case Collective::scatter:
    case Collective::reduce_scatter_block:
    case Collective::scan:
    case Collective::exscan:
      return true;
    default:
      return false;
  }
}

bool is_scan(Collective collective) { return collective == Collective::scan || collective == Collective::exscan; }

// The call that a plan is made for. A scan brings all vectors together; each rank combines them itself.
Call call_to_plan(const Call& call) {
  Call planned = call;
  if (!is_scan(call.collective)) return planned;
  planned.collective = Collective::allgather;
  planned.commutative = true;
  return planned;
}

// No rank waits for those behind it where the whole scan is one step of a node.
void wait_for_lower_ranks_only(BoundSchedule& schedule) {
  if (schedule.steps.size() != 1) return;
  for (BoundGroup& group : schedule.groups) group.lower_only = group.kind == GroupKind::all_gather;
}

}  // namespace

bool is_short(const Call& call, int ranks) {
  const std::size_t parts = counts_parts(call.collective) ? static_cast<std::size_t>(ranks) : 1;
  return payload_bytes(call, ranks) <= short_call_bytes / parts;
}

bool ScheduleCache::same_values(const std::size_t* a, const std::size_t* b) const {
  return a != nullptr && b != nullptr && std::equal(a, a + ranks_, b);
}

std::uint64_t ScheduleCache::hash(const CallShape& shape) const {
  const Call& call = shape.call;
  std::uint64_t value = mix(static_cast<std::uint64_t>(call.collective), call.count);
  value = mix(value, call.element_bytes);
  value = mix(value, static_cast<std::uint64_t>(call.root) * 4 + (shape.in_place ? 2 : 0) + (call.commutative ? 1 : 0));
  value = mix(value, static_cast<std::uint64_t>(shape.way));
  for (const std::size_t* list : {call.counts, shape.displacements})
    for (int i = 0; list != nullptr && i < ranks_; ++i) value = mix(value, list[i]);
  return value;
}

const PreparedCall& ScheduleCache::search(const CallShape& shape) {
  const std::uint64_t wanted = hash(shape);
  const std::size_t first = (wanted >> 32) % sets * ways;
  std::shared_ptr<Entry>* slot = nullptr;
  for (std::size_t way = 0; way < ways; ++way) {
    std::shared_ptr<Entry>& entry = entries_[first + way];
    if (entry == nullptr) {
      slot = &entry;
    } else if (entry->hash == wanted && same(entry->shape(), shape)) {
      last_[static_cast<std::size_t>(shape.call.collective)] = entry.get();
      return entry->prepared;
    }
  }
  if (slot == nullptr) slot = &entries_[first + next_victim_++ % ways];
  store(*slot, make(shape, take_out(*slot)));
  return (*slot)->prepared;
}

// What the slot had, for its memory; a new one where an operation still holds that.
std::shared_ptr<ScheduleCache::Entry> ScheduleCache::take_out(std::shared_ptr<Entry>& slot) {
  std::shared_ptr<Entry> entry = slot;
  forget(slot);
  if (entry == nullptr || entry.use_count() > 1) return std::make_shared<Entry>();
  // Another thread may have been the last to hold it: a release of ours comes after its release.
  std::shared_ptr<Entry>(entry).reset();
  return entry;
}

std::shared_ptr<ScheduleCache::Entry> ScheduleCache::make(const CallShape& shape, std::shared_ptr<Entry> entry) {
  entry->call = shape.call;
  entry->in_place = shape.in_place;
  entry->way = shape.way;
  entry->displaced = shape.displacements != nullptr;
  entry->hash = hash(shape);
  if (shape.call.counts != nullptr) {
    entry->counts.assign(shape.call.counts, shape.call.counts + ranks_);
    entry->call.counts = entry->counts.data();
  }
  if (entry->displaced) entry->displacements.assign(shape.displacements, shape.displacements + ranks_);
  prepare(*entry);
  const BoundSchedule& schedule = entry->prepared.schedule;
  entry->bytes = sizeof(Entry) + bytes_of(schedule.steps) + bytes_of(schedule.spans) + bytes_of(schedule.grids) +
                 bytes_of(schedule.successors) + bytes_of(schedule.lanes) + bytes_of(schedule.lane_steps) +
                 bytes_of(entry->counts) + bytes_of(entry->displacements);
  return entry;
}

// Only a call in its settled way is known to have a trial.
Choice ScheduleCache::choose(const Entry& entry, const Call& planned) {
  if (const TrialClass* tried = entry.prepared.tried; tried != nullptr) {
    const int way = tried->trial.taken();
    return way == Trial::host ? Choice{nullptr, reasons::host_is_faster} : trials_.choose(planned, *tried, way);
  }
  if (entry.way <= planners_way) return planner_.choose(planned);
  return trials_.choose(planned, *trials_.of(planned), entry.way);
}

void ScheduleCache::prepare(Entry& entry) {
  PreparedCall& prepared = entry.prepared;
  prepared = {.schedule = std::move(prepared.schedule)};
  const Call& call = entry.call;
  prepared.payload = payload_bytes(call, ranks_);
  prepared.too_long = only_short_ && !is_short(call, ranks_);
  if (prepared.too_long) return;
  const Call planned = call_to_plan(call);
  if (entry.way == settled_way) prepared.tried = trials_.of(call);
  const Choice choice = choose(entry, planned);
  if (choice.plan == nullptr) {
    prepared.reason = intern(choice.reason);
  } else {
    Placement placement = dense_placement(planned);
    placement.in_place = entry.in_place;
    placement.displacements = entry.shape().displacements;
    prepared.accelerated = true;
    bind(choice.plan->schedule, choice.plan->semantics, rank_, placement, prepared.schedule);
    if (is_scan(call.collective)) wait_for_lower_ranks_only(prepared.schedule);
    const PlanNames& names = names_of(*choice.plan, call.collective, prepared.schedule.channels_used);
    prepared.plan = names.plan;
    prepared.channels = names.channels;
    if (reporting()) prepared.saved_nanoseconds = static_cast<std::uint64_t>(planner_.saved_by_table(call) * 1e9);
  }
  if (!reporting()) return;
  prepared.row = &report_row({.collective = call.collective,
                              .ranks = ranks_,
                              .size_class = size_class(prepared.payload),
                              .plan = prepared.plan,
                              .channels = prepared.channels,
                              .reason = prepared.reason,
                              .grid = grid_});
}

const ScheduleCache::PlanNames& ScheduleCache::names_of(const ReadyPlan& plan, Collective collective,
                                                        std::uint32_t channels_used) {
  PlanNames& names = names_[static_cast<std::size_t>(collective)];
  if (names.of != &plan || names.channels_used != channels_used)
    names = {&plan, channels_used, intern(plan.name), intern(channel_names(channels_used))};
  return names;
}

void ScheduleCache::store(std::shared_ptr<Entry>& slot, std::shared_ptr<Entry> entry) {
  forget(slot);
  if (bytes_ + entry->bytes > max_bytes)
    for (std::shared_ptr<Entry>& other : entries_) forget(other);
  bytes_ += entry->bytes;
  slot = std::move(entry);
  last_[static_cast<std::size_t>(slot->call.collective)] = slot.get();
}

void ScheduleCache::clear() {
  ++changes_;
  for (std::shared_ptr<Entry>& entry : entries_) forget(entry);
  names_ = {};
}

void ScheduleCache::forget(const TrialClass& tried) {
  ++changes_;
  for (std::shared_ptr<Entry>& entry : entries_)
    if (entry != nullptr && entry->prepared.tried == &tried) forget(entry);
}

void ScheduleCache::forget(std::shared_ptr<Entry>& slot) {
  if (slot == nullptr) return;
  bytes_ -= slot->bytes;
  std::ranges::replace(last_, static_cast<const Entry*>(slot.get()), static_cast<const Entry*>(nullptr));
  slot.reset();
}

}  // namespace plait

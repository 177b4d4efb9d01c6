#include "runtime/team/schedule_cache.h"

#include <algorithm>
#include <string>

#include "core/intern.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
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
  for (BoundShmCollective& collective : schedule.collectives)
    collective.lower_only = collective.kind == ShmCollectiveKind::all_gather;
}

}  // namespace

bool is_short(const Call& call, int ranks) {
  const std::size_t parts = counts_parts(call.collective) ? static_cast<std::size_t>(ranks) : 1;
  return payload_bytes(call, ranks) <= short_call_bytes / parts;
}

bool ScheduleCache::same_values(const std::size_t* a, const std::size_t* b) const {
  return a != nullptr && b != nullptr && std::equal(a, a + ranks_, b);
}

// Whether the length is all that tells this call from others of its class, for which the choice is the same.
bool ScheduleCache::has_class(const CallShape& shape) const {
  return shape.call.counts == nullptr && shape.displacements == nullptr && shape.call.count != 0 &&
         shape.call.element_bytes != 0 && planner_.chooses_by_class();
}

bool ScheduleCache::same_class(const CallShape& a, const CallShape& b) const {
  return a.call.root == b.call.root && a.in_place == b.in_place && a.candidate == b.candidate &&
         a.call.commutative == b.call.commutative && a.call.collective == b.call.collective &&
         class_of_payload(payload_bytes(a.call, ranks_)) == class_of_payload(payload_bytes(b.call, ranks_));
}

std::uint64_t ScheduleCache::hash(const CallShape& shape, bool by_class) const {
  const Call& call = shape.call;
  std::uint64_t value = mix(1, static_cast<std::uint64_t>(call.collective));
  if (by_class) {
    value = mix(value, ~static_cast<std::uint64_t>(class_of_payload(payload_bytes(call, ranks_))));
  } else {
    value = mix(value, call.count);
    value = mix(value, call.element_bytes);
  }
  value = mix(value, static_cast<std::uint64_t>(call.root) * 4 + (shape.in_place ? 2 : 0) + (call.commutative ? 1 : 0));
  value = mix(value, static_cast<std::uint64_t>(shape.candidate));
  for (const std::size_t* list : {call.counts, shape.displacements})
    for (int i = 0; list != nullptr && i < ranks_; ++i) value = mix(value, list[i]);
  return value;
}

const PreparedCall& ScheduleCache::search(const CallShape& shape) {
  const auto take = [&](const std::shared_ptr<Entry>& entry) -> const PreparedCall& {
    last_[static_cast<std::size_t>(shape.call.collective)] = entry.get();
    return entry->prepared;
  };
  const auto each = [&](std::uint64_t wanted, auto&& fits) -> std::shared_ptr<Entry>* {
    for (std::size_t slot = set_of(wanted), end = slot + ways; slot < end; ++slot)
      if (hashes_[slot] == wanted && entries_[slot] != nullptr && fits(entries_[slot])) return &entries_[slot];
    return nullptr;
  };
  if (has_class(shape))
    if (const auto* found = each(hash(shape, true), [&](auto& entry) { return adapt(entry, shape); }))
      return take(*found);
  const auto is_same = [&](auto& entry) { return !entry->by_class && same(entry->shape(), shape); };
  if (const auto* found = each(hash(shape, false), is_same)) return take(*found);
  return add(shape);
}

// Makes the entry of a class that of this call; false: it cannot be.
bool ScheduleCache::adapt(std::shared_ptr<Entry>& entry, const CallShape& shape) {
  if (!entry->by_class || !same_class(entry->shape(), shape)) return false;
  if (only_short_ && !is_short(shape.call, ranks_)) return false;
  const std::uint64_t payload = payload_bytes(shape.call, ranks_);
  if (payload == entry->prepared.payload && shape.call.element_bytes == entry->call.element_bytes) return true;
  if (entry.use_count() > 1) return false;  // an operation runs by it
  // Another thread may have been the last to hold it: a release of ours comes after its release.
  std::shared_ptr<Entry>(entry).reset();
  if (entry->schedule != nullptr)
    rebind(*entry->schedule, {entry->prepared.payload, payload, shape.call.element_bytes}, entry->prepared.schedule);
  entry->call = shape.call;
  entry->prepared.payload = payload;
  return true;
}

const PreparedCall& ScheduleCache::add(const CallShape& shape) {
  const std::uint64_t begin_ns = monotonic_ns();
  const Answer answer = ask(shape);
  const ReadyPlan* plan = answer.choice.plan;
  const bool even = !answer.too_long && (plan == nullptr || grows_evenly(plan->semantics));
  // Where an operation holds the entry of the class, lengths beside its own have theirs.
  const bool by_class = even && has_class(shape) && !has_entry(hash(shape, true));
  const std::uint64_t wanted = hash(shape, by_class);
  const std::size_t slot = slot_for(wanted);
  std::shared_ptr<Entry> entry = take_out(slot);
  entry->hash = wanted;
  entry->by_class = by_class;
  fill(*entry, shape, answer);
  store(slot, std::move(entry));
  if (answer.by_trial != nullptr && answer.choice.plan != nullptr)
    answer.by_trial->trial.note_making(answer.candidate, monotonic_ns() - begin_ns);
  return entries_[slot]->prepared;
}

bool ScheduleCache::has_entry(std::uint64_t wanted) const {
  for (std::size_t slot = set_of(wanted), end = slot + ways; slot < end; ++slot)
    if (hashes_[slot] == wanted && entries_[slot] != nullptr) return true;
  return false;
}

// An empty one, or that of any other.
std::size_t ScheduleCache::slot_for(std::uint64_t wanted) {
  const std::size_t first = set_of(wanted);
  for (std::size_t slot = first; slot < first + ways; ++slot)
    if (entries_[slot] == nullptr) return slot;
  return first + next_victim_++ % ways;
}

// What the slot had, for its memory; a new one where an operation still holds that.
std::shared_ptr<ScheduleCache::Entry> ScheduleCache::take_out(std::size_t slot) {
  std::shared_ptr<Entry> entry = entries_[slot];
  forget(slot);
  if (entry == nullptr || entry.use_count() > 1) return std::make_shared<Entry>();
  std::shared_ptr<Entry>(entry).reset();  // as in adapt()
  return entry;
}

// Only a call in its settled candidate is known to have a trial.
ScheduleCache::Answer ScheduleCache::ask(const CallShape& shape) {
  const Call& call = shape.call;
  Answer answer{.too_long = only_short_ && !is_short(call, ranks_)};
  if (answer.too_long) return answer;
  const Call planned = call_to_plan(call);
  if (shape.candidate < planners_candidate) {
    const auto [tried, changed] =
        trials_.find(call, shape.candidate == own_moment_candidate ? Moment::own : Moment::in_order);
    if (changed) forget(*tried);
    answer.tried = answer.by_trial = tried;
    if (tried != nullptr) answer.candidate = tried->trial.taken();
  } else if (shape.candidate > planners_candidate) {
    answer.by_trial = trials_.of(planned);
    answer.candidate = shape.candidate;
  }
  if (answer.by_trial == nullptr)
    answer.choice = planner_.choose(planned);
  else if (answer.candidate == Trial::host)
    answer.choice = {nullptr, answer.by_trial->trial.planned() ? plan::reasons::host_is_faster : reasons::few_calls};
  else
    answer.choice = trials_.choose(planned, *answer.by_trial, answer.candidate);
  return answer;
}

void ScheduleCache::fill(Entry& entry, const CallShape& shape, const Answer& answer) {
  entry.call = shape.call;
  entry.in_place = shape.in_place;
  entry.candidate = shape.candidate;
  entry.displaced = shape.displacements != nullptr;
  entry.schedule = nullptr;
  if (shape.call.counts != nullptr) {
    entry.counts.assign(shape.call.counts, shape.call.counts + ranks_);
    entry.call.counts = entry.counts.data();
  }
  if (entry.displaced) entry.displacements.assign(shape.displacements, shape.displacements + ranks_);
  PreparedCall& prepared = entry.prepared;
  prepared = {.schedule = std::move(prepared.schedule)};
  prepared.payload = payload_bytes(shape.call, ranks_);
  prepared.too_long = answer.too_long;
  prepared.tried = answer.tried;
  if (answer.choice.plan != nullptr)
    bind_to_call(entry, *answer.choice.plan);
  else if (!answer.too_long)
    prepared.reason = intern(answer.choice.reason);
  const BoundSchedule& schedule = prepared.schedule;
  entry.bytes = sizeof(Entry) + bytes_of(schedule.steps) + bytes_of(schedule.spans) + bytes_of(schedule.grids) +
                bytes_of(schedule.successors) + bytes_of(schedule.lanes) + bytes_of(schedule.lane_steps) +
                bytes_of(entry.counts) + bytes_of(entry.displacements);
  if (!reporting() || answer.too_long) return;
  prepared.row = &report_row({.collective = shape.call.collective,
                              .ranks = ranks_,
                              .size_class = size_class(prepared.payload),
                              .plan = prepared.plan,
                              .channels = prepared.channels,
                              .reason = prepared.reason,
                              .grid = grid_});
}

void ScheduleCache::bind_to_call(Entry& entry, const ReadyPlan& plan) {
  PreparedCall& prepared = entry.prepared;
  const Call& call = entry.call;
  Placement placement = dense_placement(call_to_plan(call));
  placement.in_place = entry.in_place;
  placement.displacements = entry.shape().displacements;
  prepared.accelerated = true;
  entry.schedule = &plan.schedule;
  bind(plan.schedule, plan.semantics, rank_, placement, prepared.schedule);
  if (is_scan(call.collective)) wait_for_lower_ranks_only(prepared.schedule);
  const PlanNames& names = names_of(plan, call.collective, prepared.schedule.channels_used);
  prepared.plan = names.plan;
  prepared.channels = names.channels;
  if (reporting()) prepared.saved_nanoseconds = static_cast<std::uint64_t>(planner_.saved_by_table(call) * 1e9);
}

const ScheduleCache::PlanNames& ScheduleCache::names_of(const ReadyPlan& plan, Collective collective,
                                                        ChannelSet channels_used) {
  PlanNames& known = names_[static_cast<std::size_t>(collective)];
  if (known.of != &plan || known.channels_used != channels_used)
    known = {&plan, channels_used, intern(plan.name), intern(names(channels_used))};
  return known;
}

void ScheduleCache::store(std::size_t slot, std::shared_ptr<Entry> entry) {
  forget(slot);
  if (bytes_ + entry->bytes > max_bytes) forget_all();
  bytes_ += entry->bytes;
  hashes_[slot] = entry->hash;
  entries_[slot] = std::move(entry);
  last_[static_cast<std::size_t>(entries_[slot]->call.collective)] = entries_[slot].get();
}

void ScheduleCache::clear() {
  ++changes_;
  forget_all();
  names_ = {};
}

void ScheduleCache::forget_all() {
  for (std::size_t slot = 0; slot < entries_.size(); ++slot) forget(slot);
}

void ScheduleCache::forget(const TrialClass& tried) {
  ++changes_;
  for (std::size_t slot = 0; slot < entries_.size(); ++slot)
    if (entries_[slot] != nullptr && entries_[slot]->prepared.tried == &tried) forget(slot);
}

void ScheduleCache::plan(const TrialClass& unplanned) {
  forget(unplanned);
  trials_.plan(unplanned);
}

void ScheduleCache::forget(std::size_t slot) {
  std::shared_ptr<Entry>& entry = entries_[slot];
  if (entry == nullptr) return;
  bytes_ -= entry->bytes;
  std::ranges::replace(last_, static_cast<const Entry*>(entry.get()), static_cast<const Entry*>(nullptr));
  entry.reset();
}

}  // namespace plait::runtime

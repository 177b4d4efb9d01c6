#include "runtime/record/worker_trace.h"

#include <mutex>
#include <new>
#include <utility>

#include "core/immortal.h"

namespace plait::runtime {
namespace {

constexpr std::size_t records_a_lane = 1u << 14, runs_a_plan = 1u << 12;
constexpr std::size_t worker_records_a_process = 1u << 19;

struct KeptWorkers {
  std::mutex guard;
  std::vector<std::unique_ptr<WorkersTrace>> traces;
  std::size_t records = 0;
  std::uint64_t dropped = 0;
};

KeptWorkers& kept_workers() {
  static Immortal<KeptWorkers> all;  // never destroyed: plans may end until the process does
  return *all;
}

std::size_t records_of(const WorkersTrace& trace) {
  std::size_t records = trace.messages.records().size() + trace.runs.records().size();
  for (const WorkerLane& lane : trace.workers) records += lane.records().size();
  return records;
}

}  // namespace

std::string_view name(WorkerAct act) {
  constexpr std::string_view names[] = {"tile", "task", "send", "message", "wait"};
  return names[static_cast<std::size_t>(act)];
}

void WorkerLane::add(const WorkerRecord& record) {
  if (waits_since_ns_ != 0) end_wait(record.run, record.begin_ns);
  put(record);
}

void WorkerLane::end_wait(std::uint32_t run, std::uint64_t now_ns) {
  if (waits_since_ns_ == 0) return;
  put({.begin_ns = waits_since_ns_, .end_ns = now_ns, .run = run, .act = WorkerAct::wait});
  waits_since_ns_ = 0;
}

void WorkerLane::put(const WorkerRecord& record) {
  if (records_.size() < records_.capacity())
    records_.push_back(record);
  else
    ++dropped_;
}

WorkersTrace::WorkersTrace(std::string_view of_plan, int of_ranks, int of_workers)
    : plan(of_plan), ranks(of_ranks), messages(records_a_lane), runs(runs_a_plan) {
  for (int worker = 0; worker < of_workers; ++worker) workers.emplace_back(records_a_lane);
}

// What there is no memory for is dropped.
void keep_trace(std::unique_ptr<WorkersTrace> trace) noexcept {
  KeptWorkers& all = kept_workers();
  const std::scoped_lock lock(all.guard);
  const std::size_t records = records_of(*trace);
  if (all.records + records > worker_records_a_process) {
    all.dropped += records;
    return;
  }
  try {
    all.traces.push_back(std::move(trace));
    all.records += records + 1;  // the one bounds the number of plans that did nothing
  } catch (const std::bad_alloc&) {
    all.dropped += records;
  }
}

void for_each_workers_trace(const std::function<void(const WorkersTrace& trace)>& take) {
  const std::scoped_lock lock(kept_workers().guard);
  for (const auto& trace : kept_workers().traces) take(*trace);
}

std::uint64_t dropped_worker_records() {
  const std::scoped_lock lock(kept_workers().guard);
  return kept_workers().dropped;
}

}  // namespace plait::runtime

// What the workers of a fused operator's plan did, recorded for PLAIT_TRACE (report/trace_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/layer.h"

namespace plait::runtime {

// A tile that was computed, a task on what had come, a slice that was told of or handed to the messages, a message
// under way, or a time without any of these in a run.
enum class WorkerAct : std::uint8_t { tile, task, send, message, wait };
std::string_view name(WorkerAct act);

struct WorkerRecord {
  std::uint64_t begin_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t bytes = 0;                 // of what is sent; else 0
  std::int32_t peer = -1;                  // rank in the communicator: whose tile it is, who it is sent to; -1: nobody
  std::uint32_t run = 0;
  WorkerAct act = WorkerAct::tile;
};

// One thread's. Bounded: when it is full, later acts are counted and dropped. Not thread-safe.
class WorkerLane {
 public:
  explicit WorkerLane(std::size_t capacity) { records_.reserve(capacity); }
  // A wait that was begun ends where this begins.
  void add(const WorkerRecord& record);
  // From now on, unless it waits already; until it does something.
  void begin_wait(std::uint64_t now_ns) {
    if (waits_since_ns_ == 0) waits_since_ns_ = now_ns;
  }
  void end_wait(std::uint32_t run, std::uint64_t now_ns);
  const std::vector<WorkerRecord>& records() const { return records_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  void put(const WorkerRecord& record);
  std::vector<WorkerRecord> records_;
  std::uint64_t waits_since_ns_ = 0;
  std::uint64_t dropped_ = 0;
};

// What one plan did.
struct WorkersTrace {
  WorkersTrace(std::string_view plan, int ranks, int workers);

  std::string plan;  // its operator: "embedding"
  int ranks;
  std::vector<WorkerLane> workers;
  WorkerLane messages;  // several at once
  WorkerLane runs;      // as `tile`: from a run's start to the end of its wait
};

// Takes over the record of a plan that ends. Thread-safe.
void keep_trace(std::unique_ptr<WorkersTrace> trace) noexcept;

// What was kept, in its order, and how many records were dropped before. Thread-safe.
void for_each_workers_trace(const std::function<void(const WorkersTrace& trace)>& take);
std::uint64_t dropped_worker_records();

}  // namespace plait::runtime

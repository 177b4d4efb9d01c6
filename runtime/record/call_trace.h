// What this process records for PLAIT_TRACE while the job runs (report/trace_file.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/model/collective.h"
#include "runtime/layer.h"
#include "tl/trace.h"

namespace plait::runtime {

struct CallRecord {
  std::uint64_t begin_ns, end_ns, bytes;
  const char* plan;  // interned
  Collective collective;
};

// What one communicator did. Bounded: what comes when it is full is dropped, and the file says how much.
struct CommunicatorTrace {
  CommunicatorTrace();
  void add(const CallRecord& call);

  std::string label;  // "MPI_COMM_WORLD, 8 ranks"
  StepTrace steps;
  std::vector<CallRecord> calls;
  std::uint64_t dropped_calls = 0;
};

// Takes over the record of a communicator that ends. Thread-safe.
void keep_trace(std::unique_ptr<CommunicatorTrace> trace) noexcept;

// What was kept, in its order, and how many records were dropped before. Thread-safe.
void for_each_trace(const std::function<void(const CommunicatorTrace& trace)>& take);
std::uint64_t dropped_records();

}  // namespace plait::runtime

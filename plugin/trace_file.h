// PLAIT_TRACE: the timeline of every accelerated call and its steps, on all ranks, in one file in Chrome's trace format
// (chrome://tracing, Perfetto). A process of the trace is a rank of MPI_COMM_WORLD, its threads are communicators: the
// first row of each shows the calls, the rows below it the steps, as many as there were at once. Ranks on one machine
// share a clock; those on others are shifted so that the end of a last barrier falls together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "plan/model/collective.h"
#include "plugin/layer.h"
#include "tl/trace.h"

namespace plait::plugin {

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

// Collective over MPI_COMM_WORLD, before the host's MPI_Finalize and after the last keep_trace(): rank 0 writes the
// file.
void finish_trace(const Config& config);

}  // namespace plait::plugin

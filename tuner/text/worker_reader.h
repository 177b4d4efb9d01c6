// A run of a fused operator's plan, out of the file that PLAIT_TRACE wrote (runtime/report/trace_file.h). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Times are seconds from the run's begin on the first rank that began it.
struct WorkerSpan {
  double begin = 0, end = 0;
  std::string kind;  // "tile", "task", "send", "wait"; of messages "message"
  std::size_t bytes = 0;
  int peer = -1;  // rank in the communicator
};

struct WorkerRow {
  std::string name;               // "worker 0"; of messages "messages"
  std::vector<WorkerSpan> spans;  // in the order of the file
};

struct FusedRank {
  int rank = 0;  // in MPI_COMM_WORLD
  double begin = 0, end = 0;
  std::vector<WorkerRow> rows;  // workers, then messages
};

struct FusedRun {
  std::string plan;      // "fused embedding, 4 ranks"
  double seconds = 0;    // on the slowest rank
  std::size_t runs = 0;  // of this plan that all ranks have in the trace; this is the one of the middle by its seconds
  std::vector<FusedRank> ranks;
};

// Of the plans of this operator ("embedding"; "": of any) that with the most runs. Fails (invalid) with what is wrong
// and where, or with the plans that there are instead.
Result<FusedRun> fused_run(std::string_view trace, std::string_view plan);

// How a rank's workers spent the run, and what became of its messages: seconds, over all workers.
struct FusedShares {
  double computes = 0, tells = 0, waits = 0, rest = 0;  // tiles and tasks, sends, waits, what is in none
  double messages = 0;                                  // that any message was under way
  double hidden = 0;                                    // of that, while a worker computed
};
FusedShares shares_of(const FusedRank& rank);

}  // namespace plait::tuner

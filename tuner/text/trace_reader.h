// A call of a measured run, out of the file that PLAIT_TRACE wrote (runtime/report/trace_file.h). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

inline constexpr std::size_t longest_trace_file = std::size_t{256} << 20;

// Times are seconds from the call's begin on the first rank that made it.
struct MeasuredStep {
  double begin = 0, end = 0;
  std::string kind;     // "send", "recv_reduce", "shm_collective": as name(StepKind)
  std::string channel;  // of messages: "shm", "tcp", "ucx", "mpi"; else empty
  std::size_t bytes = 0;
  int peer = -1;  // rank in the communicator
};

// Where a step of a run belongs: to the network, to a node's inside, or to a rank's own work on its data.
enum class StepPlace { network, node, own };
StepPlace place_of(const MeasuredStep& step);
std::string_view text(StepPlace place);  // "between nodes", "within nodes", "copies and sums"

struct MeasuredRank {
  int rank = 0;  // in MPI_COMM_WORLD
  double begin = 0, end = 0;
  std::vector<MeasuredStep> steps;  // in the order of the file
};

struct MeasuredCall {
  std::string communicator, plan;
  double seconds = 0;               // on the slowest rank
  std::size_t calls = 0;            // that were like this one; this is the one of the middle by its seconds
  std::vector<MeasuredRank> ranks;  // of the communicator, in the order of MPI_COMM_WORLD
};

// What is looked for. Where the run made such calls by this plan, one of them; else by the plan of most of them.
struct TraceQuestion {
  Collective collective = Collective::allreduce;
  std::size_t bytes = 0;  // as payload_bytes() counts them
  int ranks = 0;
  std::string plan;
};

// Fails (invalid) with what is wrong and where, or with the calls that the run made instead. Takes memory for the calls
// and one call's steps only.
Result<MeasuredCall> measured_call(std::string_view trace, const TraceQuestion& question);

}  // namespace plait::tuner

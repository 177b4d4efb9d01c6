// One rank of a pipeline's stage: does its task list, computing by a timed wait that sleeps, as a program whose
// accelerator computes, and looks after its transfers meanwhile. The ranks of a stage begin each computing task
// together, as those of one mesh do: else each would run a pipeline of its own.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "perf/layer.h"
#include "perf/pipeline_channel.h"
#include "plan/pipeline/simulation.h"
#include "plan/pipeline/task_list.h"

namespace plait::perf {

// Seconds of a clock that all waits use.
double now();

// The four directions of a stage's transfers, in the order of their tasks.
class StageLinks {
 public:
  // Collective over MPI_COMM_WORLD. Check why() before use.
  StageLinks(Road road, int stages, int ranks, std::size_t share_bytes, Layout layout, int micro_batches);
  ~StageLinks();
  StageLinks(const StageLinks&) = delete;
  StageLinks& operator=(const StageLinks&) = delete;

  const std::string& why() const { return why_; }  // empty: they are there
  int stage() const { return stage_; }
  MPI_Comm together() const { return together_; }  // the stage's ranks
  int ranks() const { return ranks_; }             // of a stage

  struct Link {
    std::unique_ptr<Channel> channel;
    bool sends = false;
    std::size_t share_bytes = 0, buffer_bytes = 0;
    std::vector<std::vector<char>> buffers;  // by micro-batch
  };
  // Precondition: the stage has such transfers.
  Link& link(plait::plan::PipelineTaskKind kind);

 private:
  void add(plait::plan::PipelineTaskKind kind, std::unique_ptr<Channel> channel, const Crossing& crossing,
           int micro_batches);

  int stage_ = 0, ranks_ = 1;
  MPI_Comm together_ = MPI_COMM_NULL;
  std::string why_;
  std::array<Link, 4> links_;
};

// One iteration: from the common start until this rank's last task and transfer have ended; seconds. `wrong` counts
// shares that arrived with what they should not hold. Collective over MPI_COMM_WORLD.
double run_iteration(const plait::plan::PipelineTasks& tasks, const plait::plan::PipelineStageCost& cost,
                     bool weights_apart, bool overlap, StageLinks& links, int& wrong);

// A transfer of activations from stage 0 to stage 1 alone, after a rest: the median of several, seconds, the same on
// all ranks. Collective over MPI_COMM_WORLD.
double transfer_alone(StageLinks& links, int repeats, double rest);

}  // namespace plait::perf

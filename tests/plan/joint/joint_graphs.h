// Step graphs as programs have them, and random ones; seeded. For tests and for perf/joint_schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/joint/step_graph.h"

namespace plait::plan::joint {

enum class GraphKind {
  data_parallel,   // a backward pass whose gradients are reduced, layer by layer, for the next forward pass
  fully_sharded,   // all-gathers before each layer, forward and backward, reduce-scatters behind it (FSDP)
  recommendation,  // two multilayer perceptrons and embedding tables: all-reduces and all-to-alls, prefetched input
                   // (DLRM)
  pipeline,        // a stage of 1F1B with transfers of each micro-batch, then gradients
  random,          // tasks in any order with random dependencies, some across steps
};
inline constexpr GraphKind graph_kinds[] = {GraphKind::data_parallel, GraphKind::fully_sharded,
                                            GraphKind::recommendation, GraphKind::pipeline, GraphKind::random};
const char* name(GraphKind kind);

struct GraphRequest {
  GraphKind kind = GraphKind::random;
  int operations = 10;  // about
  int channels = 2;
  double communication = 1;  // of the busiest channel with greedy options, as a multiple of computation
  bool contended = false;    // pieces take from computation, and the last channel is shared
  int most_options = 6;      // an operation
  int most_pieces = 8;       // an option
  std::uint64_t seed = 1;
};

// Each operation has some of: one piece on the first channel (in two algorithms), on another channel and slower, 2 to 8
// segments with an overhead each, pieces on two channels at the same time, a chain over two channels.
StepGraph random_graph(const GraphRequest& request);

}  // namespace plait::plan::joint

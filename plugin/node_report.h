// What the report says of the traffic within nodes: the ways of group steps, buffers, shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "plugin/layer.h"
#include "plugin/shared_memory.h"
#include "plugin/single_copy.h"
#include "tl/shm/shm_channel.h"

namespace plait::plugin {

// ---- Counted by each process. Thread-safe ----

GroupWays& group_ways();

// A segment of this process's making, while it lives.
void note_segment(std::uint64_t bytes);
void forget_segment(std::uint64_t bytes);

// What a communicator of this process chose.
void note_single_copy(const SingleCopySizes& sizes);

// ---- Over the ranks of the job ----

struct NodeReport {
  std::uint64_t at_once = 0, directly = 0, by_kernel = 0, in_stages = 0;  // group steps, over all ranks
  BufferCounts buffers;                   // collectives, as the first rank of each communicator counted them
  std::uint64_t arena_peak = 0;           // bytes, of the rank that has most
  std::map<int, std::uint64_t> segments;  // most bytes at a time, by node
  std::uint64_t largest_segment = 0;      // bytes
  SingleCopySizes sizes;                  // the largest; not known: none was chosen
};

SortedJson own_node_facts();
void merge_node_facts(NodeReport& report, const SortedJson& facts, int node);

// What stands below the table. `shared` is the setting PLAIT_SHARED.
std::vector<std::string> node_report_lines(const NodeReport& report, const std::string& shared);
// The object "node" of the file (report.h).
SortedJson node_report_json(const NodeReport& report, const std::string& shared);

}  // namespace plait::plugin

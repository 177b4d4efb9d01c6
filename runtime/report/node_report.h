// What the report says of the traffic within nodes: the ways of shared-memory collectives, buffers, shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "runtime/layer.h"
#include "runtime/record/node_counts.h"
#include "runtime/team/single_copy.h"

namespace plait::runtime {

struct NodeReport {
  // Shared-memory collectives, over all ranks.
  std::uint64_t at_once = 0, directly = 0, by_kernel = 0, in_stages = 0, on_devices = 0;
  BufferCounts buffers;                   // collectives, as the first rank of each communicator counted them
  std::uint64_t shared_heap_peak = 0;     // bytes, of the rank that has most
  std::map<int, std::uint64_t> segments;  // most bytes at a time, by node
  std::uint64_t largest_segment = 0;      // bytes
  SingleCopySizes sizes;                  // the largest; not known: none was chosen
};

SortedJson own_node_facts();
void merge_node_facts(NodeReport& report, const SortedJson& facts, int node);

// What the report says to a user most of whose large calls worked on private buffers; "" where there is nothing to
// say. `shared` is the setting PLAIT_SHARED.
std::string shared_memory_advice(const BufferCounts& counts, const std::string& shared);

// What stands below the table. `shared` is the setting PLAIT_SHARED.
std::vector<std::string> node_report_lines(const NodeReport& report, const std::string& shared);
// The object "node" of the file (report.h).
SortedJson node_report_json(const NodeReport& report, const std::string& shared);

}  // namespace plait::runtime

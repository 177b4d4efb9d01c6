#include "runtime/report/node_report.h"

#include <algorithm>

#include "core/units.h"
#include "tl/shm/shared_heap.h"

namespace plait::runtime {
namespace {

using json = SortedJson;

void raise_to(std::uint64_t& most, const json& value) { most = std::max(most, value.get<std::uint64_t>()); }

std::uint64_t steps(const NodeReport& report) {
  return report.at_once + report.directly + report.by_kernel + report.in_stages + report.on_devices;
}

std::uint64_t largest_node(const NodeReport& report) {
  std::uint64_t most = 0;
  for (const auto& [node, bytes] : report.segments) most = std::max(most, bytes);
  return most;
}

}  // namespace

std::string shared_memory_advice(const BufferCounts& counts, const std::string& shared) {
  const std::uint64_t calls = counts.shared_calls + counts.private_calls;
  if (counts.private_calls == 0 || counts.private_bytes < counts.shared_bytes) return {};
  std::string text = "memory: the buffers of " + std::to_string(counts.private_calls) + " of " + std::to_string(calls) +
                     " collectives of 64 KiB and more within a node (" + format_bytes(counts.private_bytes) +
                     ") are private, so that their data is copied; ";
  if (shared == "malloc")
    return text + "they were not allocated by malloc after MPI_Init, or there is no shared heap (docs/memory.md)";
  return text + "PLAIT_SHARED=malloc would let the ranks reach them directly (docs/memory.md)";
}

json own_node_facts() {
  const BufferCounts buffers = buffer_counts();
  const std::uint64_t peak = SharedHeap::instance() == nullptr ? 0 : SharedHeap::instance()->usage().peak_bytes;
  const ShmCollectiveWays& ways = shm_collective_ways();
  const NodeCounts counts = node_counts();
  return {{"ways",
           {ways.at_once.load(), ways.directly.load(), ways.by_kernel.load(), ways.in_stages.load(),
            ways.on_devices.load()}},
          {"buffers", {buffers.shared_calls, buffers.private_calls, buffers.shared_bytes, buffers.private_bytes}},
          {"shared_heap", peak},
          {"segments", {counts.segments_peak, counts.largest_segment}},
          {"single_copy", {counts.kernel_from, counts.mapped_from}}};
}

void merge_node_facts(NodeReport& report, const json& facts, int node) {
  const json& ways = facts["ways"];
  report.at_once += ways[0].get<std::uint64_t>();
  report.directly += ways[1].get<std::uint64_t>();
  report.by_kernel += ways[2].get<std::uint64_t>();
  report.in_stages += ways[3].get<std::uint64_t>();
  report.on_devices += ways[4].get<std::uint64_t>();
  const json& buffers = facts["buffers"];
  report.buffers.shared_calls += buffers[0].get<std::uint64_t>();
  report.buffers.private_calls += buffers[1].get<std::uint64_t>();
  report.buffers.shared_bytes += buffers[2].get<std::uint64_t>();
  report.buffers.private_bytes += buffers[3].get<std::uint64_t>();
  raise_to(report.shared_heap_peak, facts["shared_heap"]);
  report.segments[node] += facts["segments"][0].get<std::uint64_t>();
  raise_to(report.largest_segment, facts["segments"][1]);
  raise_to(report.sizes.kernel_from, facts["single_copy"][0]);
  raise_to(report.sizes.mapped_from, facts["single_copy"][1]);
}

std::vector<std::string> node_report_lines(const NodeReport& report, const std::string& shared) {
  std::vector<std::string> lines;
  const auto line = [&lines](const std::string& content) {
    if (!content.empty()) lines.push_back(content);
  };
  if (report.largest_segment > 0)
    line("memory: shared segments of at most " + format_bytes(largest_node(report)) + " on a node, the largest " +
         format_bytes(report.largest_segment));
  if (report.shared_heap_peak > 0)
    line("memory: at most " + format_bytes(report.shared_heap_peak) + " of a rank in blocks that peers can map");
  if (steps(report) > 0)
    line("within nodes: shared-memory collectives at once " + std::to_string(report.at_once) + ", directly " +
         std::to_string(report.directly) + ", by the kernel " + std::to_string(report.by_kernel) + ", in stages " +
         std::to_string(report.in_stages) +
         (report.on_devices > 0 ? ", between devices " + std::to_string(report.on_devices) + " over cuda" : "") +
         " (all ranks)");
  if (report.sizes.known())
    line("within nodes: single copies by the kernel " + size_text(report.sizes.kernel_from) + ", by XPMEM " +
         size_text(report.sizes.mapped_from));
  line(shared_memory_advice(report.buffers, shared));
  return lines;
}

json node_report_json(const NodeReport& report, const std::string& shared) {
  const auto size = [](std::uint64_t from) { return from == never ? json() : json(from); };
  json object = {{"segment_bytes", largest_node(report)},
                 {"largest_segment_bytes", report.largest_segment},
                 {"shared_heap_peak_bytes", report.shared_heap_peak},
                 {"shm_collectives",
                  {{"at_once", report.at_once},
                   {"directly", report.directly},
                   {"by_kernel", report.by_kernel},
                   {"in_stages", report.in_stages},
                   {"on_devices", report.on_devices}}},
                 {"large_calls",
                  {{"shared", report.buffers.shared_calls},
                   {"private", report.buffers.private_calls},
                   {"shared_bytes", report.buffers.shared_bytes},
                   {"private_bytes", report.buffers.private_bytes}}}};
  if (report.sizes.known())
    object["single_copy_from"] = {{"kernel", size(report.sizes.kernel_from)},
                                  {"xpmem", size(report.sizes.mapped_from)}};
  const std::string advice = shared_memory_advice(report.buffers, shared);
  if (!advice.empty()) object["advice"] = advice;
  return object;
}

}  // namespace plait::runtime

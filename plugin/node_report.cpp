#include "plugin/node_report.h"

#include <algorithm>
#include <atomic>

#include "core/units.h"
#include "tl/shm/arena.h"

namespace plait::plugin {
namespace {

using json = SortedJson;

constinit GroupWays all_ways;
constinit std::atomic<std::uint64_t> segments_now{0}, segments_peak{0}, segment_largest{0};
constinit std::atomic<std::uint64_t> chosen_kernel{0}, chosen_mapped{0};

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  std::uint64_t known = most.load();
  while (known < value && !most.compare_exchange_weak(known, value)) {
  }
}

void raise_to(std::uint64_t& most, const json& value) { most = std::max(most, value.get<std::uint64_t>()); }

std::uint64_t steps(const NodeReport& report) {
  return report.at_once + report.directly + report.by_kernel + report.in_stages;
}

std::uint64_t largest_node(const NodeReport& report) {
  std::uint64_t most = 0;
  for (const auto& [node, bytes] : report.segments) most = std::max(most, bytes);
  return most;
}

}  // namespace

GroupWays& group_ways() { return all_ways; }

void note_segment(std::uint64_t bytes) {
  raise_to(segments_peak, segments_now += bytes);
  raise_to(segment_largest, bytes);
}

void forget_segment(std::uint64_t bytes) { segments_now -= bytes; }

void note_single_copy(const SingleCopySizes& sizes) {
  raise_to(chosen_kernel, sizes.kernel_from);
  raise_to(chosen_mapped, sizes.mapped_from);
}

json own_node_facts() {
  const BufferCounts buffers = buffer_counts();
  const std::uint64_t peak = Arena::instance() == nullptr ? 0 : Arena::instance()->usage().peak_bytes;
  return {{"ways",
           {all_ways.at_once.load(), all_ways.directly.load(), all_ways.by_kernel.load(), all_ways.in_stages.load()}},
          {"buffers", {buffers.shared_calls, buffers.private_calls, buffers.shared_bytes, buffers.private_bytes}},
          {"arena", peak},
          {"segments", {segments_peak.load(), segment_largest.load()}},
          {"single_copy", {chosen_kernel.load(), chosen_mapped.load()}}};
}

void merge_node_facts(NodeReport& report, const json& facts, int node) {
  const json& ways = facts["ways"];
  report.at_once += ways[0].get<std::uint64_t>();
  report.directly += ways[1].get<std::uint64_t>();
  report.by_kernel += ways[2].get<std::uint64_t>();
  report.in_stages += ways[3].get<std::uint64_t>();
  const json& buffers = facts["buffers"];
  report.buffers.shared_calls += buffers[0].get<std::uint64_t>();
  report.buffers.private_calls += buffers[1].get<std::uint64_t>();
  report.buffers.shared_bytes += buffers[2].get<std::uint64_t>();
  report.buffers.private_bytes += buffers[3].get<std::uint64_t>();
  raise_to(report.arena_peak, facts["arena"]);
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
  if (report.arena_peak > 0)
    line("memory: at most " + format_bytes(report.arena_peak) + " of a rank in blocks that peers can map");
  if (steps(report) > 0)
    line("within nodes: group steps at once " + std::to_string(report.at_once) + ", directly " +
         std::to_string(report.directly) + ", by the kernel " + std::to_string(report.by_kernel) + ", in stages " +
         std::to_string(report.in_stages) + " (all ranks)");
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
                 {"arena_peak_bytes", report.arena_peak},
                 {"group_steps",
                  {{"at_once", report.at_once},
                   {"directly", report.directly},
                   {"by_kernel", report.by_kernel},
                   {"in_stages", report.in_stages}}},
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

}  // namespace plait::plugin

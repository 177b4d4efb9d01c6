#include "tuner/text/overlap_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/units.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::vector<const OverlapSolution*> all_solutions(const OverlapComparison& comparison) {
  std::vector<const OverlapSolution*> all = {&comparison.libra};
  for (const auto* list : {&comparison.variants, &comparison.baselines})
    for (const OverlapSolution& solution : *list) all.push_back(&solution);
  return all;
}

std::string solution_line(const OverlapSolution& solution, const OverlapSolution& libra) {
  return left(solution.method, 18) + left(solution.share, 24) + padded(std::to_string(solution.groups.size()), 6) +
         padded(format_seconds(solution.time.seconds), 12) + padded(format_seconds(solution.time.computation), 13) +
         padded(format_seconds(solution.time.exposed), 12) +
         formatted("%9.3fx", solution.time.seconds / libra.time.seconds) + '\n';
}

std::string group_line(const OverlapReport& report, const OverlapSolution& solution, std::size_t index) {
  const OverlapGroup& group = solution.groups[index];
  const std::vector<OverlapCall> calls = overlap_calls(report.table);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < group.calls; ++i) bytes += calls[group.first_call + i].bytes;
  std::string layers = calls[group.first_call].layer;
  if (group.calls > 1) layers += " .. " + calls[group.first_call + group.calls - 1].layer;
  return padded(std::to_string(index), 5) + padded(std::to_string(group.calls), 7) + padded(format_bytes(bytes), 12) +
         padded(share_text(group.share), 12) + padded(format_seconds(solution.time.groups[index].begin), 12) +
         padded(format_seconds(solution.time.groups[index].end), 12) + "  " + layers + '\n';
}

Json groups_json(const OverlapSolution& solution) {
  Json groups = Json::array();
  for (std::size_t i = 0; i < solution.groups.size(); ++i) {
    const OverlapGroup& group = solution.groups[i];
    Json json = {{"first_call", group.first_call},
                 {"calls", group.calls},
                 {"threads", group.share.threads},
                 {"duty", group.share.duty}};
    if (i < solution.time.groups.size()) {
      json["begin_seconds"] = solution.time.groups[i].begin;
      json["end_seconds"] = solution.time.groups[i].end;
    }
    groups.push_back(std::move(json));
  }
  return groups;
}

Json solution_json(const OverlapSolution& solution) {
  Json json = {{"method", solution.method},
               {"share", solution.share},
               {"backward_seconds", solution.time.seconds},
               {"computation_seconds", solution.time.computation},
               {"exposed_seconds", solution.time.exposed}};
  if (solution.chunked_seconds > 0) json["chunked_seconds"] = solution.chunked_seconds;
  json["groups"] = groups_json(solution);
  return json;
}

std::string curve_line(const char* name, const char* of_what, const RateCurve& curve) {
  return formatted("  %s  %-42s g1 %.4g, g2 %.4g, g3 %.4g, g4 %.3g; mean error %.1f %%\n", name, of_what, curve.g1,
                   curve.g2, curve.g3, curve.g4, 100 * curve.error);
}

}  // namespace

std::string overlap_report_text(const OverlapReport& report) {
  const OverlapComparison& comparison = report.comparison;
  const BackwardPass pass = backward_pass(report.table);
  double bytes = 0;
  for (const double size : pass.bytes) bytes += size;
  std::string text = report.table.model + ": " + plural(pass.bytes.size(), "reduction") + " of " +
                     format_bytes(static_cast<std::size_t>(bytes)) + ", " + format_seconds(pass.total()) +
                     " of computation; machine " + report.contention.system + ", " +
                     plural(static_cast<std::uint64_t>(report.contention.ranks), "rank") + " on " +
                     plural(static_cast<std::uint64_t>(report.contention.nodes), "node") + ", " +
                     plural(report.model.shares.size(), "share") + "\n\n";
  text += left("method", 18) + left("share (threads x duty)", 24) + padded("groups", 6) + padded("backward", 12) +
          padded("computation", 13) + padded("exposed", 12) + "  to LIBRA\n";
  for (const OverlapSolution* solution : all_solutions(comparison)) text += solution_line(*solution, comparison.libra);
  text += formatted("\nLIBRA at the ends of %d chunks: ", report.search.chunks) +
          format_seconds(comparison.libra.chunked_seconds) +
          "; as it runs: " + format_seconds(comparison.libra.time.seconds) +
          formatted("; within %.3f times the best of all, 1 + (L - 1)/Z\n", comparison.guarantee);
  const OverlapSolution& best = comparison.best();
  text += "\nthe plan: " + best.method + (best.share.empty() ? "" : ", share " + best.share) +
          "\ngroup  calls       bytes       share       begin         end  layers\n";
  for (std::size_t i = 0; i < best.groups.size(); ++i) text += group_line(report, best, i);
  return text;
}

std::string overlap_report_json(const OverlapReport& report) {
  const OverlapComparison& comparison = report.comparison;
  Json json = {{"model", report.table.model},
               {"calls", overlap_calls(report.table).size()},
               {"computation_seconds", backward_pass(report.table).total()},
               {"groups", report.search.groups},
               {"chunks", report.search.chunks},
               {"guarantee", comparison.guarantee},
               {"plan", comparison.best().method},
               {"solutions", Json::array()}};
  for (const OverlapSolution* solution : all_solutions(comparison))
    json["solutions"].push_back(solution_json(*solution));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string contention_text(const Contention& contention) {
  std::string text = "share     " + padded("bytes", 12) + padded("slowdown", 10) + padded("overlapped", 12) +
                     padded("alone", 12) + '\n';
  for (const ContentionSample& sample : contention.samples)
    text += left(share_text(sample.share), 10) + padded(format_bytes(sample.bytes), 12) +
            formatted("%10.3f", sample.overlapped_computation / sample.computation) +
            padded(format_seconds(sample.overlapped), 12) + padded(format_seconds(sample.alone), 12) + '\n';
  if (!contention.fit) return text;
  const SlowdownCurve& g = contention.fit->computation;
  text += formatted("fits\n  g  %-42s a1 %.4g, a2 %.4g; mean error %.1f %%\n", "computation beside communication", g.a1,
                    g.a2, 100 * g.error);
  return text + curve_line("p", "communication beside computation", contention.fit->overlapped) +
         curve_line("q", "communication alone", contention.fit->alone);
}

}  // namespace plait::tuner

#include "tuner/commands/overlap_plan.h"

#include <charconv>
#include <cmath>
#include <iostream>
#include <numeric>
#include <utility>

#include "core/file.h"
#include "plan/choose/table.h"
#include "plan/overlap/plan_reductions.h"
#include "topo/discovery.h"
#include "topo/shape.h"
#include "tuner/commands/grid_options.h"
#include "tuner/text/overlap_report.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

constexpr int most_groups = 1000, most_chunks = 10000, most_nodes = 65536;
constexpr std::size_t most_searched_calls = 8192, most_values = std::size_t{1} << 27;

bool is_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

Result<CommunicationShare> parse_share(const std::string& text) {
  const Status wrong(Code::invalid,
                     "--shares: \"" + text + "\": expected threads x duty, such as 1x0.25, with a duty from 0.01 to 1");
  const std::size_t cross = text.find('x');
  double threads = 0, duty = 0;
  if (cross == text.npos || !is_number(std::string_view(text).substr(0, cross), threads) ||
      !is_number(std::string_view(text).substr(cross + 1), duty))
    return wrong;
  if (threads < 1 || threads > most_helper_threads || threads != std::floor(threads) || duty < least_duty || duty > 1)
    return wrong;
  return CommunicationShare{static_cast<int>(threads), duty};
}

// The machine that was named, or this one as far as it can be told without a job.
Result<Fingerprint> wanted_machine(const std::string& machine) {
  if (machine.empty()) return Fingerprint{{"hardware", describe_processors()}};
  const auto named = load_machine(machine);
  if (!named.ok()) return named.status();
  return named->fingerprint;
}

// The groups of a plan for the same calls.
Result<std::vector<OverlapGroup>> read_groups(const std::string& path, const std::vector<OverlapCall>& calls) {
  const auto plan = read_overlap_plan(path);
  if (!plan.ok()) return Status(plan.status().code(), "--given-groups " + plan.status().message());
  if (plan->calls.size() != calls.size())
    return {Code::invalid, "--given-groups \"" + path + "\": it has " + std::to_string(plan->calls.size()) +
                               " calls, the layers " + std::to_string(calls.size())};
  return plan->groups;
}

}  // namespace

Result<std::vector<CommunicationShare>> parse_shares(const std::string& text) {
  std::vector<CommunicationShare> shares;
  for (const std::string& word : split(text, ',')) {
    const auto share = parse_share(word);
    if (!share.ok()) return share.status();
    if (std::find(shares.begin(), shares.end(), *share) == shares.end()) shares.push_back(*share);
  }
  return shares;
}

Result<Contention> contention_for(const std::string& path, const std::string& machine) {
  auto contention = read_contention(path);
  if (!contention.ok()) return Status(contention.status().code(), "--contention " + contention.status().message());
  const auto wanted = wanted_machine(machine);
  if (!wanted.ok()) return wanted.status();
  const std::string differs = mismatch(contention->fingerprint, *wanted);
  if (differs.empty()) return contention;
  return {Code::invalid, "--contention \"" + path + "\": it is another machine's: " + differs + " is \"" +
                             contention->fingerprint.at(differs) + "\" there, \"" + wanted->at(differs) +
                             "\" here; --machine names the one to plan for"};
}

Result<LayerTable> scaled_layers(const std::string& path, double computation, double bytes_factor) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (computation != 0 && !positive(computation))
    return {Code::invalid, "--computation: expected a positive number of seconds"};
  if (!positive(bytes_factor) || bytes_factor > 1e6)
    return {Code::invalid, "--bytes-factor: expected a positive number, at most 1e6"};
  auto table = read_layers(path);
  if (!table.ok()) return Status(table.status().code(), "--layers " + table.status().message());
  const double seconds_factor = computation != 0 ? computation / backward_pass(*table).total() : 1;
  return scaled(std::move(*table), seconds_factor, bytes_factor);
}

Result<ReductionCosts> reduction_costs(const ReductionChoice& choice, const Contention& contention) {
  if (choice.kind != "plan" && choice.kind != "ring")
    return {Code::invalid, "--reduction: \"" + choice.kind + "\": expected plan or ring"};
  if (choice.nodes < 0 || choice.nodes > most_nodes)
    return {Code::invalid, "--nodes: expected 1 to " + std::to_string(most_nodes)};
  const int nodes = choice.nodes > 0 ? choice.nodes : contention.nodes;
  const int per_node = std::max(1, contention.ranks / contention.nodes);
  const bool measured = nodes == contention.nodes && !contention.reductions.empty();
  if (choice.kind == "plan" && measured) return interpolated(contention.reductions);
  if (choice.kind == "ring" || nodes == contention.nodes)
    return ring_costs(nodes > 1 ? nodes : per_node, contention.latency);
  const auto machine = load_machine(choice.machine.empty() ? "default" : choice.machine);
  if (!machine.ok()) return machine.status();
  const auto shape = parse_shape(std::to_string(nodes) + "x" + std::to_string(per_node));
  if (!shape.ok()) return shape.status();
  if (shape->hierarchy.ranks() < 2) return {Code::invalid, "--nodes: expected two ranks or more in all"};
  auto reductions = plan_reductions(reduction_sizes(static_cast<std::size_t>(choice.most_bytes)),
                                    {.hierarchy = shape->hierarchy, .machine = *machine});
  if (!reductions.ok()) return reductions.status();
  return interpolated(std::move(*reductions));
}

Status check_search(const GroupSearchOptions& options, std::size_t calls) {
  if (options.groups < 1 || options.groups > most_groups)
    return {Code::invalid, "--groups: expected a whole number from 1 to " + std::to_string(most_groups)};
  if (options.chunks < 1 || options.chunks > most_chunks)
    return {Code::invalid, "--chunks: expected a whole number from 1 to " + std::to_string(most_chunks)};
  const std::size_t groups = std::min(static_cast<std::size_t>(options.groups), calls);
  if (calls > most_searched_calls ||
      (groups + 1) * (calls + 1) * static_cast<std::size_t>(options.chunks) > most_values)
    return {Code::invalid, "--layers: " + std::to_string(calls) + " calls are too many to search for " +
                               std::to_string(options.groups) + " groups and " + std::to_string(options.chunks) +
                               " chunks"};
  return {};
}

Result<int> plan_overlap(const OverlapPlanOptions& options) {
  const GroupSearchOptions search{options.groups, options.chunks};
  if (const Status checked = check_search(search, 1); !checked.ok()) return checked;
  const auto table = scaled_layers(options.layers, options.computation, options.bytes_factor);
  if (!table.ok()) return table.status();
  const BackwardPass pass = backward_pass(*table);
  if (const Status checked = check_search(search, pass.bytes.size()); !checked.ok()) return checked;
  const auto contention = contention_for(options.contention, options.machine);
  if (!contention.ok()) return contention.status();
  const auto shares = options.shares.empty() ? known_shares(*contention) : parse_shares(options.shares);
  if (!shares.ok()) return shares.status();
  const auto costs = reduction_costs(
      {options.reduction, options.nodes, options.machine, std::accumulate(pass.bytes.begin(), pass.bytes.end(), 0.)},
      *contention);
  if (!costs.ok()) return costs.status();
  const double agreement = options.reduction == "plan" ? agreement_seconds(*contention, *costs) : 0;
  const auto model = overlap_model(*contention, *shares, *costs, agreement);
  if (!model.ok()) return model.status();
  std::vector<OverlapGroup> given;
  if (!options.given_groups.empty()) {
    auto groups = read_groups(options.given_groups, overlap_calls(*table));
    if (!groups.ok()) return groups.status();
    given = std::move(*groups);
  }
  const double startup = (*costs)(pass.bytes.front()).startup;
  const OverlapReport report{*table, *contention, *model, search,
                             compare_overlap(pass, *model, search, startup, given)};
  const OverlapPlan plan = overlap_plan_of(*table, contention->fingerprint, report.comparison.best());
  if (!options.output.empty())
    if (Status written = replace_file(options.output, overlap_plan_json(plan)); !written.ok())
      return Status(written.code(), "--output " + written.message());
  std::cout << (options.json ? overlap_report_json(report) : overlap_report_text(report));
  return 0;
}

}  // namespace plait::tuner

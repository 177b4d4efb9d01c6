#include "plan/step/step_options.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "plan/choose/candidate.h"
#include "plan/choose/motif_cost.h"
#include "plan/motif/lowering.h"
#include "plan/motif/parts.h"
#include "plan/motif/rewrite.h"

namespace plait::plan::step {
namespace {

using motif::Motif;
using motif::Rewriting;
using motif::Term;

constexpr std::size_t most_parts = motif::most_motifs;

// How pieces go over the rails.
struct Dealing {
  std::string text;        // behind the rules: " @0,0,1"
  std::vector<int> rails;  // as motif::dealt_ways() takes them; empty: each motif over all
};

std::string text_of(const std::vector<int>& rails) {
  std::string text;
  for (const int rail : rails) text += (text.empty() ? " @" : ",") + std::to_string(rail);
  return text;
}

std::vector<Dealing> dealings(std::size_t parts, const std::vector<double>& shares) {
  std::vector<Dealing> all = {{"", {}}};
  if (shares.size() < 2) return all;
  for (int rail = 0; rail < static_cast<int>(shares.size()); ++rail) all.push_back({text_of({rail}), {rail}});
  if (parts > 1) {
    const std::vector<int> rails = deal(parts, shares);
    all.push_back({text_of(rails), rails});
  }
  return all;
}

class Pricing {
 public:
  Pricing(const Hierarchy& hierarchy, const Machine& machine, const OptionLimits& limits)
      : hierarchy_(hierarchy),
        machine_(machine),
        limits_(limits),
        shares_(rail_shares(machine)),
        prices_({.hierarchy = hierarchy, .machine = machine}) {}

  std::vector<joint::Channel> channels() const {
    std::vector<joint::Channel> channels;
    for (std::size_t rail = 0; rail < shares_.size(); ++rail)
      channels.push_back({.name = shares_.size() == 1 ? "network" : "rail " + std::to_string(rail)});
    return channels;
  }

  Result<joint::Task> operation(const Task& task, std::vector<std::string>& motifs) {
    const Result<Rewriting> whole = motif::whole_collective(*task.collective, hierarchy_.ranks(), 0);
    if (!whole.ok()) return Status(whole.status().code(), "task \"" + task.name + "\": " + whole.status().message());
    std::vector<Priced> all = {uncut(task)};
    for (const std::vector<motif::Rule>& rules : motif::rewritings(*whole, limits_.depth, limits_.segments))
      add_options(task, rules, *motif::rewrite(*whole, rules), all);
    joint::Task operation{.name = task.name, .kind = joint::TaskKind::operation};
    for (Priced& priced : quickest(std::move(all))) {
      operation.options.push_back(std::move(priced.option));
      motifs.push_back(std::move(priced.motifs));
    }
    return operation;
  }

 private:
  struct Priced {
    joint::Option option;
    std::string motifs = {}, dealing = {};
    double alone = 0;
  };

  joint::Piece piece(const motif::Part& term, double unit_bytes, int rail) {
    joint::Piece piece{.after = term.after, .load = limits_.load};
    const double share = rail < 0 ? 1 : shares_[static_cast<std::size_t>(rail)];
    piece.channels = rail < 0 ? (1u << shares_.size()) - 1 : 1u << rail;
    for (const Motif* motif : term.motifs) {
      const MotifPrice price = prices_.price(*motif, motif->payload.count * unit_bytes);
      piece.seconds = std::max(piece.seconds, price.latency + (price.seconds - price.latency) / share);
    }
    return piece;
  }

  // As it goes without a schedule.
  Priced uncut(const Task& task) const {
    const CandidateContext context{.hierarchy = hierarchy_, .machine = machine_};
    const Candidate best = candidates({.collective = *task.collective, .count = task.bytes}, context, 1).front();
    joint::Piece piece{.channels = (1u << shares_.size()) - 1, .seconds = best.seconds, .load = limits_.load};
    Priced priced{.option = {.name = default_plan, .pieces = {std::move(piece)}, .segments_only = true},
                  .motifs = best.name};
    priced.alone = best.seconds;
    return priced;
  }

  void add_options(const Task& task, const std::vector<motif::Rule>& rules, const Rewriting& rewriting,
                   std::vector<Priced>& all) {
    const std::vector<motif::Part> pieces = motif::parts_of(rewriting.term);
    if (pieces.size() > static_cast<std::size_t>(joint::most_pieces)) return;
    const double unit_bytes = static_cast<double>(task.bytes) / rewriting.units;
    const bool cut_only =
        std::ranges::all_of(rules, [](const motif::Rule& rule) { return rule.kind == motif::Rule::Kind::segment; });
    const std::vector<std::size_t> parts = motif::dealt_ways(rewriting.term, most_parts);
    for (const Dealing& dealing : dealings(std::ranges::max(parts) + 1, shares_)) {
      Priced priced{.option = {.name = "[" + motif::text(rules) + "]" + dealing.text,
                               .segments_only = cut_only && dealing.rails.empty()},
                    .dealing = dealing.rails.size() > 1 ? "dealt" : dealing.text};
      for (const motif::Part& one : pieces) {
        const int rail = dealing.rails.empty() ? -1 : dealing.rails[parts[one.first] % dealing.rails.size()];
        priced.option.pieces.push_back(piece(one, unit_bytes, rail));
        for (const Motif* motif : one.motifs)
          priced.motifs += (priced.motifs.empty() ? "" : "; ") + motif::text(*motif);
      }
      priced.alone = alone(priced.option);
      all.push_back(std::move(priced));
    }
  }

  // As joint::seconds_alone(), for these channels.
  double alone(const joint::Option& option) const {
    joint::StepGraph graph;
    graph.channels = channels();
    return joint::seconds_alone(graph, option);
  }

  // Of each way over the rails as many, the quickest alone first; what only cuts the payload stays in any case.
  std::vector<Priced> quickest(std::vector<Priced> all) const {
    std::ranges::stable_sort(all, {}, &Priced::alone);
    std::set<std::string> ways;
    for (const Priced& priced : all) ways.insert(priced.dealing);
    const int each = std::max(1, limits_.most_options / static_cast<int>(ways.size()));
    std::map<std::string, int> taken;
    std::vector<Priced> kept;
    for (Priced& priced : all)
      if (taken[priced.dealing]++ < each || priced.option.segments_only) kept.push_back(std::move(priced));
    return kept;
  }

  const Hierarchy& hierarchy_;
  const Machine& machine_;
  const OptionLimits& limits_;
  std::vector<double> shares_;
  MotifPricer prices_;
};

// Names are known (parse_step).
std::vector<int> numbers_of(const std::vector<std::string>& names, const Step& step) {
  std::vector<int> numbers;
  for (const std::string& name : names)
    numbers.push_back(static_cast<int>(std::ranges::find(step.tasks, name, &Task::name) - step.tasks.begin()));
  return numbers;
}

}  // namespace

Result<PricedStep> price_step(const Step& step, const Hierarchy& hierarchy, const Machine& machine,
                              const OptionLimits& limits) {
  Pricing pricing(hierarchy, machine, limits);
  PricedStep priced;
  priced.graph.channels = pricing.channels();
  for (const Task& task : step.tasks) {
    std::vector<std::string>& motifs = priced.motifs.emplace_back();
    joint::Task made{.name = task.name, .seconds = task.seconds};
    if (task.collective) {
      Result<joint::Task> operation = pricing.operation(task, motifs);
      if (!operation.ok()) return operation.status();
      made = std::move(*operation);
    }
    made.after = numbers_of(task.after, step);
    made.after_previous = numbers_of(task.after_previous, step);
    priced.graph.tasks.push_back(std::move(made));
  }
  if (Status status = joint::validate(priced.graph); !status.ok()) return status;
  return priced;
}

}  // namespace plait::plan::step

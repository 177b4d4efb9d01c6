#include "plan/motif/parts.h"

#include <algorithm>
#include <set>
#include <utility>

namespace plait::plan::motif {
namespace {

// The parts of the term behind those that must end before; returns its last ones.
std::vector<int> add_parts(const Term& term, const std::vector<int>& before, std::vector<Part>& parts) {
  const auto add = [&](std::vector<const Motif*> motifs) {
    const std::size_t first = parts.empty() ? 0 : parts.back().first + parts.back().motifs.size();
    parts.push_back({std::move(motifs), before, first});
    return std::vector<int>{static_cast<int>(parts.size()) - 1};
  };
  if (term.kind == Term::Kind::motif) return add({&term.motif});
  if (runs_at_once(term)) return add(motifs_of(term));
  std::vector<int> last, latest = before;
  for (const Term& part : term.parts) {
    if (term.kind == Term::Kind::sequence) {
      latest = add_parts(part, latest, parts);
      continue;
    }
    const std::vector<int> ends = add_parts(part, before, parts);
    last.insert(last.end(), ends.begin(), ends.end());
  }
  return term.kind == Term::Kind::sequence ? latest : last;
}

// What the data of some rank asks for.
void add_data_order(const Schedule& schedule, std::vector<std::set<int>>& after) {
  for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
    const int part = schedule.parts[step];
    const RunList& list = schedule.steps[step].after;
    for (std::uint32_t i = list.first; i < list.first + list.count; ++i)
      if (const int before = schedule.parts[schedule.after[i]]; before != part)
        after[static_cast<std::size_t>(part)].insert(before);
  }
}

}  // namespace

std::vector<Part> parts_of(const Term& term) {
  std::vector<Part> parts;
  add_parts(term, {}, parts);
  return parts;
}

Result<PartedPlan> lower_in_parts(const Rewriting& rewriting, std::span<const Way> ways, Collective collective,
                                  const Hierarchy& hierarchy, const Routes& routes) {
  Result<LoweredPlan> plan = lower(rewriting, ways, collective, hierarchy, routes, Running::part_by_part);
  if (!plan.ok()) return plan.status();
  const std::vector<Part> parts = parts_of(rewriting.term);
  std::vector<std::set<int>> after(parts.size() + 1);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    after[part].insert(parts[part].after.begin(), parts[part].after.end());
    after.back().insert(static_cast<int>(part));
  }
  for (const Schedule& schedule : plan->schedules) add_data_order(schedule, after);
  PartedPlan parted{.plan = std::move(*plan), .parts = static_cast<int>(parts.size()), .after = {}};
  for (const std::set<int>& before : after) parted.after.emplace_back(before.begin(), before.end());
  return parted;
}

Schedule steps_of_part(const Schedule& schedule, int part) {
  Schedule own = schedule;
  own.steps.clear();
  own.after.clear();
  own.parts.clear();
  std::vector<std::uint32_t> number(schedule.steps.size());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (schedule.parts[i] != part) continue;
    Step step = schedule.steps[i];
    const RunList before = step.after;
    step.after.first = static_cast<std::uint32_t>(own.after.size());
    for (std::uint32_t j = before.first; j < before.first + before.count; ++j)
      if (schedule.parts[schedule.after[j]] == part) own.after.push_back(number[schedule.after[j]]);
    step.after.count = static_cast<std::uint32_t>(own.after.size()) - step.after.first;
    number[i] = static_cast<std::uint32_t>(own.steps.size());
    own.steps.push_back(step);
  }
  return own;
}

}  // namespace plait::plan::motif

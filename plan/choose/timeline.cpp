#include "plan/choose/timeline.h"

#include <algorithm>
#include <utility>

#include "plan/choose/breakdown.h"
#include "plan/choose/call_synthesis.h"

namespace plait::plan {
namespace {

class ProgramTimeline {
 public:
  ProgramTimeline(const Candidate& candidate, const Call& call, const CandidateContext& context)
      : candidate_(candidate), context_(context), synthesis_(synthesis_of(call, context)) {
    bind_to_rails(synthesis_, candidate.rails);
    timeline_.seconds = candidate.seconds;
    timeline_.chunks = candidate.chunks;
    timeline_.chunk_rails = candidate.rails;
  }

  PlanTimeline run() {
    for (const ModelLevel& level : synthesis_.model.levels) {
      timeline_.levels.push_back(level.link.name);
      timeline_.network.push_back(level.link.network);
    }
    if (const int node = node_level(); node >= 0) timeline_.rails = level(node).link.rails;
    timeline_.start = synthesis_.model.start_seconds_per_byte * synthesis_.options.bytes;
    double at = timeline_.start;
    LevelState state = synthesis_.task.start;
    for (const Instruction& instruction : candidate_.program.instructions) {
      const PipelineCost cost = instruction_cost(synthesis_.model, synthesis_.options.bytes, state, instruction);
      add(instruction, cost, state, at);
      at += timeline_.steps.back().seconds;
      state = *apply(synthesis_.task, state, instruction.what, instruction.first, instruction.last);
    }
    if (candidate_.chunks > 1) timeline_.period = (candidate_.seconds - at) / (candidate_.chunks - 1);
    return std::move(timeline_);
  }

 private:
  const ModelLevel& level(int index) const { return synthesis_.model.levels[static_cast<std::size_t>(index)]; }

  // Whose children are the nodes: the last before those within a node; -1 on one node.
  int node_level() const {
    if (context_.hierarchy.nodes() < 2) return -1;
    int node = -1;
    for (int l = 0; l < synthesis_.task.levels; ++l)
      if (l == 0 || level(l).link.network) node = l;
    return node;
  }

  void add(const Instruction& instruction, const PipelineCost& cost, LevelState state, double begin) {
    TimelineStep& step = timeline_.steps.emplace_back();
    step.name = text(Program{{instruction}});
    step.level = instruction.first;
    step.begin = begin;
    step.seconds = cost.fill.at(candidate_.chunks);
    if (const int node = node_level(); node >= instruction.first) {
      // A chunk that is bound to a rail occupies it for as long as the port would be by as many chunks as there are
      // rails.
      step.port =
          std::min(step.seconds, level(node).alone * cost.load[static_cast<std::size_t>(node)].at(candidate_.chunks));
    }
    for (int rank = 0; rank < synthesis_.grid.ranks(); ++rank)
      step.takes_part.push_back(takes_part(instruction, state, rank));
  }

  bool takes_part(const Instruction& instruction, LevelState state, int rank) const {
    int partners = 1;
    for (int l = 0; l < synthesis_.grid.levels(); ++l) {
      if (l >= instruction.first && l <= instruction.last)
        partners *= synthesis_.grid.children(rank, l);
      else if (state.at(l) == LevelStatus::rooted && synthesis_.grid.coordinate(rank, l) != 0)
        return false;
    }
    return partners > 1;
  }

  const Candidate& candidate_;
  const CandidateContext& context_;
  CallSynthesis synthesis_;
  PlanTimeline timeline_;
};

// The levels one after the other: their shares of the time.
Result<PlanTimeline> exchange_timeline(const Candidate& candidate, const Call& call, const CandidateContext& context) {
  const Result<Breakdown> breakdown = break_down(candidate.name, call, context);
  if (!breakdown.ok()) return breakdown.status();
  PlanTimeline timeline;
  timeline.seconds = breakdown->seconds;
  const std::vector<bool> all(static_cast<std::size_t>(context.hierarchy.ranks()), true);
  double at = 0;
  const auto add = [&](const std::string& name, int level, double seconds, bool network) {
    timeline.steps.push_back({name, level, at, seconds, network ? seconds : 0, all});
    at += seconds;
  };
  for (const LinkLevel& link : context.machine.levels) {
    const int level = static_cast<int>(timeline.levels.size());
    timeline.levels.push_back(link.name);
    timeline.network.push_back(link.network);
    if (link.network && context.hierarchy.nodes() > 1) timeline.rails = link.rails;
    double seconds = 0;
    for (const TimeShare& share : breakdown->shares)
      if (share.level == link.name) seconds += share.seconds;
    if (seconds > 0) add(candidate.name, level, seconds, link.network);
  }
  // What is no level's: ranks that wait for their core.
  const double rest = timeline.seconds - at;
  if (!timeline.steps.empty() && rest > 0) timeline.steps.back().seconds += rest;
  return timeline;
}

}  // namespace

Result<PlanTimeline> plan_timeline(const std::string& plan, const Call& call, const CandidateContext& context) {
  const Result<Candidate> candidate = named_candidate(plan, call, context);
  if (!candidate.ok()) return candidate.status();
  if (candidate->program.instructions.empty()) return exchange_timeline(*candidate, call, context);
  return ProgramTimeline(*candidate, call, context).run();
}

}  // namespace plait::plan

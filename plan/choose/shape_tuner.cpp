#include "plan/choose/shape_tuner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "plan/choose/call_synthesis.h"
#include "plan/choose/chunk_optimum.h"
#include "plan/choose/planner.h"
#include "plan/choose/size_cover.h"
#include "plan/lower/lowering.h"

namespace plait::plan {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr int steps_an_octave = 8;

Call call_of(Collective collective, std::size_t bytes) {
  return {.collective = collective, .count = bytes, .element_bytes = bytes > 0 ? 1u : 0u};
}

// 8, 9 .. 15 times a power of two, of which 1 is the first: exact, so that a size and its halves are on one grid.
double grid_size(int index) {
  const int octave = index >= 0 ? index / steps_an_octave : -((steps_an_octave - 1 - index) / steps_an_octave);
  return std::ldexp(1 + static_cast<double>(index - octave * steps_an_octave) / steps_an_octave, octave);
}

int grid_index(std::size_t bytes) {
  const int octave = std::bit_width(bytes) - 1;
  return octave * steps_an_octave +
         static_cast<int>((static_cast<double>(bytes) / std::ldexp(1.0, octave) - 1) * steps_an_octave);
}

std::string rails_text(int rails) {
  std::string text;
  for (int rail = 0; rail < rails; ++rail) text += (rail == 0 ? " @" : ",") + std::to_string(rail);
  return text;
}

int most_rails(const Machine& machine) {
  int most = 1;
  for (const LinkLevel& level : machine.levels)
    if (level.network) most = std::max(most, level.rails);
  return most;
}

// The plans of one collective, but for the exchanges.
class Curves {
 public:
  Curves(Collective collective, const CandidateContext& context, const std::vector<std::size_t>& sizes, bool flat)
      : collective_(collective),
        context_(context),
        sizes_(sizes),
        factor_(bytes_factor(collective, context.hierarchy.ranks())),
        synthesis_(synthesis_of(call_of(collective, sizes.back()), context)),
        scope_(flat ? ChunkOptimum::Scope::flat : ChunkOptimum::Scope::all) {}

  std::vector<PlanCurve> run() {
    add_with(synthesis_.model, 1);
    const int rails = context_.hierarchy.nodes() > 1 ? most_rails(context_.machine) : 1;
    for (int used = 2; used <= rails; ++used) add_with(with_chunks_on_rails(synthesis_.model, used), used);
    return std::move(curves_);
  }

 private:
  // `rails`: that the chunks are dealt out to; 1: each message uses all.
  void add_with(const GroupModel& model, int rails) {
    ChunkOptimum optimum(synthesis_, collective_, model, scope_, context_.hierarchy.ranks() <= most_team_ranks);
    std::map<int, int> numbers;  // by the grid's index of the chunk: how many numbers of chunks are asked for
    for (const std::size_t size : sizes_)
      for (int number = 0; number < numbers_at(size); ++number) {
        int& most = numbers[grid_index(std::max<std::size_t>(size, 1)) - number * steps_an_octave];
        most = std::max(most, number + 1);
      }
    std::map<std::pair<int, int>, bool> plans;  // program and number of chunks
    for (const auto& [index, most] : numbers) {
      const double chunk_bytes = sizes_.back() == 0 ? 0 : grid_size(index) * factor_;
      const auto best = optimum.best(chunk_bytes, most);
      for (int number = 0; number < most; ++number)
        if (const int program = best[static_cast<std::size_t>(number)]; program >= 0) plans[{program, number}] = true;
    }
    for (const auto& [plan, used] : plans)
      add(optimum.programs()[static_cast<std::size_t>(plan.first)], optimum.levels(), 1 << plan.second, rails);
  }

  // Of chunks, that a size may be cut into: 1, 2, 4 and so on.
  int numbers_at(std::size_t size) const {
    return std::countr_zero(static_cast<unsigned>(most_chunks_of(static_cast<double>(size) * factor_))) + 1;
  }

  void add(const CostedProgram& program, int levels, int chunks, int rails) {
    if (chunks < rails) return;
    PlanCurve curve{text(program.program) + " x" + std::to_string(chunks) + (rails > 1 ? rails_text(rails) : ""), {}};
    const double shortest = rails > 1 ? shortest_with_parts(program, chunks) : 0;
    for (const std::size_t size : sizes_) {
      const double bytes = static_cast<double>(size) * factor_;
      const bool allowed = chunks <= most_chunks_of(bytes) && bytes >= shortest;
      curve.seconds.push_back(allowed ? seconds(program, levels, bytes, chunks) : never);
    }
    curves_.push_back(std::move(curve));
  }

  // Bytes from which on messages are so long that they go in parts over all rails, unless they are bound to one.
  double shortest_with_parts(const CostedProgram& program, int chunks) const {
    constexpr double shortest_cut_message = 32 << 10;
    const Result<int> segments = segments_needed(program.program, synthesis_.grid, collective_, false);
    return segments.ok() ? shortest_cut_message * *segments * chunks : never;
  }

  Collective collective_;
  const CandidateContext& context_;
  const std::vector<std::size_t>& sizes_;
  int factor_;
  CallSynthesis synthesis_;
  ChunkOptimum::Scope scope_;
  std::vector<PlanCurve> curves_;
};

std::vector<PlanCurve> exchange_curves(const CandidateContext& context, const std::vector<std::size_t>& sizes,
                                       bool flat) {
  std::map<std::string, PlanCurve> curves;
  for (const std::size_t size : sizes)
    for (const Candidate& candidate : candidates(call_of(Collective::alltoall, size), context, 3)) {
      // Rewritings are candidates of some sizes only.
      if (candidate.exchange == nullptr || (flat && candidate.exchange->knows_nodes)) continue;
      PlanCurve& curve = curves[candidate.name];
      curve.plan = candidate.name;
      curve.seconds.push_back(candidate.seconds);
    }
  std::vector<PlanCurve> found;
  for (auto& [name, curve] : curves) found.push_back(std::move(curve));
  return found;
}

// The barrier has no sizes.
std::vector<std::size_t> sizes_of(Collective collective) {
  return collective == Collective::barrier ? std::vector<std::size_t>{0} : tuned_sizes();
}

// Where the range that ends before this point of the grid ends.
std::size_t end_of(const std::vector<std::size_t>& sizes, std::size_t point) {
  return point < sizes.size() ? sizes[point] : sizes.back() + 1;
}

std::vector<std::vector<double>> times_of(const std::vector<PlanCurve>& curves) {
  std::vector<std::vector<double>> times;
  for (const PlanCurve& curve : curves) times.push_back(curve.seconds);
  return times;
}

const PlanCurve& best_at(const std::vector<PlanCurve>& curves, std::size_t point) {
  return *std::min_element(curves.begin(), curves.end(),
                           [&](const PlanCurve& a, const PlanCurve& b) { return a.seconds[point] < b.seconds[point]; });
}

// A curve of the same program with twice the chunks; no seconds where it cannot or need not be cut further, as the
// planner would have it (call_synthesis.h), from the size `from` on.
PlanCurve cut_further(const PlanCurve& curve, Collective collective, const CandidateContext& context,
                      const std::vector<std::size_t>& sizes, std::size_t from) {
  const int ranks = context.hierarchy.ranks();
  const std::size_t space = curve.plan.rfind(" x");
  const Result<Program> program = parse_program(curve.plan.substr(0, space));
  if (!program.ok() || curve.plan.find('@') != std::string::npos) return {};
  const int chunks = std::stoi(curve.plan.substr(space + 2));
  if (2 * chunks > most_chunks_for(1, ranks)) return {};
  CallSynthesis synthesis = synthesis_of(call_of(collective, sizes[from]), context);
  const Result<int> segments = segments_needed(*program, synthesis.grid, collective, false);
  if (!segments.ok() || 2 * chunks > std::min(synthesis.options.most_chunks, most_chunks_for(*segments, ranks)) ||
      !has_long_messages(context.hierarchy.nodes(), synthesis.options.bytes, *segments, chunks))
    return {};
  PlanCurve finer{text(*program) + " x" + std::to_string(2 * chunks), std::vector<double>(sizes.size(), never)};
  SearchOptions& options = synthesis.options;
  options.fewest_chunks = options.most_chunks = 2 * chunks;
  for (std::size_t point = from; point < sizes.size(); ++point) {
    options.bytes = static_cast<double>(sizes[point]) * bytes_factor(collective, ranks);
    const auto priced = price_program(synthesis.task, synthesis.model, options, *program);
    if (priced.ok()) finer.seconds[point] = priced->seconds;
  }
  return finer;
}

// The range's plan, in as many chunks as keep it near the best.
PlanCurve robust_plan(const std::vector<PlanCurve>& curves, const CoveredRange& range, Collective collective,
                      const CandidateContext& context, const std::vector<std::size_t>& sizes) {
  PlanCurve plan = curves[range.plan];
  while (collective != Collective::alltoall && collective != Collective::barrier) {
    PlanCurve finer = cut_further(plan, collective, context, sizes, range.first);
    if (finer.seconds.empty()) break;
    bool near = true;
    for (std::size_t point = range.first; point < range.end && near; ++point)
      near = finer.seconds[point] <= (1 + range_tolerance) * best_at(curves, point).seconds[point];
    if (!near) break;
    plan = std::move(finer);
  }
  return plan;
}

bool has_time(const std::vector<PlanCurve>& curves, std::size_t point) {
  return std::any_of(curves.begin(), curves.end(),
                     [&](const PlanCurve& curve) { return std::isfinite(curve.seconds[point]); });
}

}  // namespace

std::vector<std::size_t> tuned_sizes() {
  std::vector<std::size_t> sizes;
  for (int index = 0; grid_size(index) <= static_cast<double>(largest_tuned_bytes); ++index)
    if (const double size = grid_size(index); size == std::floor(size)) sizes.push_back(static_cast<std::size_t>(size));
  return sizes;
}

bool is_tuned(Collective collective) {
  return planned(collective) && collective != Collective::allgatherv && collective != Collective::reduce_scatter;
}

std::vector<PlanCurve> plan_curves(Collective collective, const CandidateContext& context,
                                   const std::vector<std::size_t>& sizes, bool flat) {
  if (collective == Collective::alltoall) return exchange_curves(context, sizes, flat);
  return Curves(collective, context, sizes, flat).run();
}

Result<TunedRanges> tune_collective(Collective collective, const CandidateContext& context) {
  const std::vector<std::size_t> sizes = sizes_of(collective);
  const std::vector<PlanCurve> curves = plan_curves(collective, context, sizes, false);
  const std::vector<PlanCurve> flat = plan_curves(collective, context, sizes, true);
  for (std::size_t point = 0; point < sizes.size(); ++point)
    if (!has_time(curves, point) || !has_time(flat, point))
      return {Code::invalid, "no plan of " + std::string(name(collective)) + " has a finite time for " +
                                 std::to_string(sizes[point]) + " bytes on machine " + context.machine.name};
  TunedRanges tuned;
  for (const CoveredRange& range : cover_sizes(times_of(curves), range_tolerance)) {
    const PlanCurve curve = robust_plan(curves, range, collective, context, sizes);
    const std::size_t from = sizes[range.first], to = end_of(sizes, range.end);
    tuned.ranges.push_back({from, to, curve.plan, curve.seconds[range.first], curve.seconds[range.end - 1]});
    const PlanCurve& plain = best_at(flat, range.first);
    const double at_end = best_at(flat, range.end - 1).seconds[range.end - 1];
    tuned.flat.push_back({from, to, plain.plan, plain.seconds[range.first], at_end});
  }
  return tuned;
}

}  // namespace plait::plan

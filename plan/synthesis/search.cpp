#include "plan/synthesis/search.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace plait::plan {

namespace {

void add(PipelineCost& sum, const PipelineCost& cost, int levels) {
  sum.fill += cost.fill;
  for (int l = 0; l <= levels; ++l) sum.load[static_cast<std::size_t>(l)] += cost.load[static_cast<std::size_t>(l)];
}

struct Timed {
  double seconds = std::numeric_limits<double>::infinity();
  int chunks = 1;
};

Timed best_chunks(const PipelineCost& cost, int levels, const SearchOptions& options) {
  Timed best;
  for (int chunks = options.fewest_chunks; chunks <= options.most_chunks; chunks *= 2) {
    const double seconds = pipeline_seconds(cost, levels, chunks);
    if (seconds < best.seconds) best = {seconds, chunks};
  }
  return best;
}

bool at_most(const Amount& a, const Amount& b) { return a.fixed <= b.fixed && a.volume <= b.volume; }

// Whatever follows, `a` is then not slower than `b`.
bool dominates(const PipelineCost& a, const PipelineCost& b, int levels) {
  if (!at_most(a.fill, b.fill)) return false;
  for (int l = 0; l <= levels; ++l)
    if (!at_most(a.load[static_cast<std::size_t>(l)], b.load[static_cast<std::size_t>(l)])) return false;
  return true;
}

// A cost that adds up along a program, at a given number of chunks: the fill of one chunk, and one level's load for
// each of the others. It never exceeds the time of the pipeline, and equals it when that level is the slowest.
struct Measure {
  int chunks = 1;
  int level = 0;  // whose load counts; the number of levels: the processors'
  int levels = 0;
  double bytes = 0;

  double operator()(const InstructionShape& shape, const StateView& view) const {
    const double data = bytes * view.share / chunks;
    double widest = 0;
    for (int l = shape.instruction.first; l < levels; ++l) {
      const auto i = static_cast<std::size_t>(l);
      widest = std::max(widest, (shape.ports[i].volume + shape.ports[i].again) * shape.ports[i].alone * view.idle[i]);
    }
    const double fill =
        shape.wait + shape.queueing.at(view.active) +
        (shape.fill_bytes.at(view.active) + shape.port_bytes(widest, shape.stage_bytes(view.idle, levels))) * data;
    if (chunks == 1) return fill;
    const auto i = static_cast<std::size_t>(level);
    const double load = level == levels ? shape.busy.at(view.active) + shape.busy_bytes.at(view.active) * data
                                        : (shape.ports[i].messages + shape.ports[i].volume * data) * view.idle[i];
    return fill + (chunks - 1) * load;
  }
};

// What every way from a state to the goal costs at least: a potential for each level and status, such that no
// instruction costs less than the potentials that it takes away, whatever the state of the other levels. Found level by
// level: each takes what the levels before it left of the cheapest instructions that cover it.
class Potentials {
 public:
  Potentials(const SynthesisTask& task, const GroupModel& model, const InstructionTable& shapes, const Measure& measure)
      : task_(task) {
    rest_.clear();
    for (const InstructionShape& shape : shapes.all())
      rest_.push_back({&shape.instruction, least(model, shape, measure)});
    for (int level = 0; level < task.levels; ++level) settle(level);
  }

  double from(LevelState state) const {
    double sum = 0;
    for (int level = 0; level < task_.levels; ++level)
      sum += of_[static_cast<std::size_t>(level)][static_cast<std::size_t>(state.at(level))];
    return sum;
  }

 private:
  struct Rest {
    const Instruction* instruction;
    double seconds;
  };

  // With the least data that the other levels could leave, scattered, and the fewest active ranks, rooted.
  double least(const GroupModel& model, InstructionShape shape, const Measure& measure) const {
    const int first = shape.instruction.first, last = shape.instruction.last;
    const StateView fewest = view_of(model, LevelState::all(task_.levels, LevelStatus::rooted), first, last);
    StateView view = view_of(model, LevelState::all(task_.levels, LevelStatus::scattered), first, last);
    view.active = fewest.active;
    for (std::size_t l = 0; l < shape.ports.size(); ++l) shape.ports[l].messages *= fewest.idle[l];
    return measure(shape, view);
  }

  bool may_end(LevelStatus status) const { return (task_.goal >> static_cast<int>(status) & 1) != 0; }

  void settle(int level) {
    constexpr double never = std::numeric_limits<double>::infinity();
    std::array<double, all_instructs> cheapest;
    cheapest.fill(never);
    for (const Rest& rest : rest_)
      if (covers(*rest.instruction, level)) {
        double& seconds = cheapest[static_cast<std::size_t>(rest.instruction->what)];
        seconds = std::min(seconds, rest.seconds);
      }
    const auto of = [&](Instruct what) { return cheapest[static_cast<std::size_t>(what)]; };
    auto& potential = of_[static_cast<std::size_t>(level)];
    const auto at = [&](LevelStatus status) -> double& { return potential[static_cast<std::size_t>(status)]; };
    at(LevelStatus::full) = 0;
    // Gathering and scattering never both occur, so that two rounds are enough.
    at(LevelStatus::scattered) = may_end(LevelStatus::scattered) ? 0 : never;
    at(LevelStatus::rooted) = may_end(LevelStatus::rooted) ? 0 : never;
    for (int round = 0; round < 2; ++round) {
      at(LevelStatus::scattered) = std::min(
          {at(LevelStatus::scattered), of(Instruct::all_gather), of(Instruct::gather) + at(LevelStatus::rooted)});
      at(LevelStatus::rooted) = std::min(
          {at(LevelStatus::rooted), of(Instruct::broadcast), of(Instruct::scatter) + at(LevelStatus::scattered)});
    }
    at(LevelStatus::unreduced) =
        std::min({of(Instruct::all_reduce), of(Instruct::reduce_scatter) + at(LevelStatus::scattered),
                  of(Instruct::reduce) + at(LevelStatus::rooted)});
    for (double& seconds : potential)
      if (seconds == never) seconds = 0;
    for (Rest& rest : rest_)
      if (covers(*rest.instruction, level)) rest.seconds -= std::max(0.0, drop(rest.instruction->what, potential));
  }

  static bool covers(const Instruction& instruction, int level) {
    return level >= instruction.first && level <= instruction.last;
  }

  static double drop(Instruct what, const std::array<double, 4>& potential) {
    const auto at = [&](LevelStatus status) { return potential[static_cast<std::size_t>(status)]; };
    switch (what) {
      case Instruct::all_reduce:
        return at(LevelStatus::unreduced);
      case Instruct::reduce_scatter:
        return at(LevelStatus::unreduced) - at(LevelStatus::scattered);
      case Instruct::reduce:
        return at(LevelStatus::unreduced) - at(LevelStatus::rooted);
      case Instruct::all_gather:
        return at(LevelStatus::scattered);
      case Instruct::gather:
        return at(LevelStatus::scattered) - at(LevelStatus::rooted);
      case Instruct::broadcast:
        return at(LevelStatus::rooted);
      case Instruct::scatter:
        return at(LevelStatus::rooted) - at(LevelStatus::scattered);
    }
    return 0;
  }

  const SynthesisTask& task_;
  std::vector<Rest> rest_;
  std::array<std::array<double, 4>, most_levels> of_{};
};

// The results found so far, the best first, each program once.
class Results {
 public:
  explicit Results(std::size_t count) : count_(count) {}

  double worst() const {
    return found_.size() < count_ ? std::numeric_limits<double>::infinity() : found_.back().seconds;
  }
  void take(PricedProgram program) {
    if (program.seconds >= worst()) return;
    const auto same = std::find_if(found_.begin(), found_.end(),
                                   [&](const PricedProgram& other) { return other.program == program.program; });
    if (same != found_.end()) {
      if (same->seconds <= program.seconds) return;
      found_.erase(same);
    }
    const auto before = [](const PricedProgram& a, const PricedProgram& b) { return a.seconds < b.seconds; };
    found_.insert(std::upper_bound(found_.begin(), found_.end(), program, before), std::move(program));
    if (found_.size() > count_) found_.pop_back();
  }
  const PricedProgram& best() const { return found_.front(); }
  bool empty() const { return found_.empty(); }
  std::vector<PricedProgram> release() { return std::move(found_); }

 private:
  std::size_t count_;
  std::vector<PricedProgram> found_;
};

// The number of chunks fixed, and the time bounded from below by fill + (chunks - 1) x one level's load, a cost is a
// plain sum over the instructions: its shortest paths come in ascending order, and once that bound exceeds the best
// times found, nothing better is left. The bound is tight when the level is the slowest one.
class Search {
 public:
  Search(const SynthesisTask& task, const GroupModel& model, const SearchOptions& options, std::size_t count)
      : task_(task),
        model_(model),
        options_(options),
        shapes_(task, model, options.algorithms, InstructionTable::Choice::worth_trying),
        results_(count),
        count_(static_cast<std::uint32_t>(count)),
        visits_(std::size_t{1} << (2 * task.levels)) {}

  std::vector<PricedProgram> run() {
    run_with(options_.fewest_chunks, 0);
    if (results_.empty()) return {};
    // First near the number that suits the program found so far: it bounds what the other numbers must beat.
    const PipelineCost first = whole_cost(results_.best().program);
    const int likely = best_chunks(first, task_.levels, options_).chunks;
    pipelined(likely);
    for (int chunks = 2 * likely; chunks <= options_.most_chunks && pipelined(chunks); chunks *= 2) {
    }
    for (int chunks = likely / 2; chunks > options_.fewest_chunks && pipelined(chunks); chunks /= 2) {
    }
    return results_.release();
  }

 private:
  static constexpr std::uint32_t most_visits = 4;  // of a state, for each result that is asked for
  static constexpr std::uint32_t most_expansions = 4096, few_expansions = 512;

  struct Label {
    LevelState state;
    std::int32_t parent;
    std::int32_t instructions;
    const InstructionShape* shape;  // that led here
    double seconds;                 // bounded
  };
  struct Candidate {
    double at_least;
    std::int32_t label;
    std::int32_t instructions;
    // Reversed: the heap's top is the least. Of equally fast ones the shorter program is better.
    bool operator<(const Candidate& other) const {
      if (at_least != other.at_least) return at_least > other.at_least;
      return instructions != other.instructions ? instructions > other.instructions : label > other.label;
    }
  };

  int slowest_level(const PricedProgram& priced, int chunks) const {
    const PipelineCost cost = whole_cost(priced.program);
    int slowest = 0;
    for (int l = 1; l <= task_.levels; ++l)
      if (cost.load[static_cast<std::size_t>(l)].at(chunks) > cost.load[static_cast<std::size_t>(slowest)].at(chunks))
        slowest = l;
    return slowest;
  }

  // Whether going on in the same direction is worth while.
  bool pipelined(int chunks) {
    const double before = results_.best().seconds;
    if (chunks > options_.fewest_chunks) run_with(chunks, slowest_level(results_.best(), chunks));
    return options_.tolerance == 0 || results_.best().seconds < before;
  }

  PipelineCost whole_cost(const Program& program) const {
    PipelineCost sum;
    sum.fill.fixed = model_.start_seconds_per_byte * options_.bytes;
    LevelState state = task_.start;
    for (const Instruction& instruction : program.instructions) {
      add(sum, instruction_cost(model_, options_.bytes, state, instruction), task_.levels);
      state = *apply(task_, state, instruction.what, instruction.first, instruction.last);
    }
    return sum;
  }

  void run_with(int chunks, int level) {
    measure_ = {chunks, level, task_.levels, options_.bytes};
    potentials_.emplace(task_, model_, shapes_, measure_);
    most_visits_ = chunks == 1 ? count_ : options_.tolerance == 0 ? ~0u : most_visits * count_;
    labels_.clear();
    open_.clear();
    std::fill(visits_.begin(), visits_.end(), 0);
    // Many programs differ by less than the tolerance once they are pipelined: the first ones found are as good.
    const std::uint32_t budget = options_.tolerance == 0 ? ~0u : chunks == 1 ? most_expansions : few_expansions;
    std::uint32_t expansions = 0;
    consider({task_.start, -1, 0, nullptr, model_.start_seconds_per_byte * options_.bytes});
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end());
      const Candidate next = open_.back();
      open_.pop_back();
      if (next.at_least >= limit()) return;
      const Label label = labels_[static_cast<std::size_t>(next.label)];
      if (task_.is_goal(label.state)) {
        results_.take(priced(next.label));
      } else if (visits_[label.state.index()]++ < most_visits_) {
        if (expansions++ == budget) return;
        expand(next.label, label);
      }
    }
  }

  void expand(std::int32_t index, const Label& label) {
    int range = 0;
    for (int first = 0; first < task_.levels; ++first)
      for (int last = first; last < task_.levels; ++last, ++range) {
        std::optional<StateView> view;
        for (int kind = 0; kind < all_instructs; ++kind) {
          const auto what = static_cast<Instruct>(kind);
          const auto shapes = shapes_.of(range, what);
          if (shapes.empty()) continue;
          const auto next = apply(task_, label.state, what, first, last);
          if (!next) continue;
          if (!view) view = view_of(model_, label.state, first, last);
          for (const InstructionShape& shape : shapes)
            consider({*next, index, label.instructions + 1, &shape, label.seconds + measure_(shape, *view)});
        }
      }
  }

  double limit() const { return results_.worst() * (1 - options_.tolerance); }

  void consider(const Label& label) {
    const double at_least = label.seconds + potentials_->from(label.state);
    if (at_least >= limit() || visits_[label.state.index()] >= most_visits_) return;
    open_.push_back({at_least, static_cast<std::int32_t>(labels_.size()), label.instructions});
    std::push_heap(open_.begin(), open_.end());
    labels_.push_back(label);
  }

  PricedProgram priced(std::int32_t index) const {
    PricedProgram result;
    for (; labels_[static_cast<std::size_t>(index)].parent >= 0;
         index = labels_[static_cast<std::size_t>(index)].parent)
      result.program.instructions.push_back(labels_[static_cast<std::size_t>(index)].shape->instruction);
    std::reverse(result.program.instructions.begin(), result.program.instructions.end());
    const Timed timed = best_chunks(whole_cost(result.program), task_.levels, options_);
    result.chunks = timed.chunks;
    result.seconds = timed.seconds;
    return result;
  }

  const SynthesisTask& task_;
  const GroupModel& model_;
  const SearchOptions& options_;
  InstructionTable shapes_;
  Results results_;
  std::uint32_t count_, most_visits_ = 1;
  Measure measure_;
  std::optional<Potentials> potentials_;
  std::vector<std::uint32_t> visits_;  // by state
  std::vector<Label> labels_;
  std::vector<Candidate> open_;
};

}  // namespace

std::vector<PricedProgram> cheapest_programs(const SynthesisTask& task, const GroupModel& model,
                                             const SearchOptions& options, int count) {
  assert(task.levels == static_cast<int>(model.levels.size()) && count > 0);
  return Search(task, model, options, static_cast<std::size_t>(count)).run();
}

namespace {

// The cost of a program's first instructions with these algorithms.
struct Partial {
  PipelineCost cost;
  std::vector<const Algorithm*> algorithms;
};

class Pricing {
 public:
  Pricing(const SynthesisTask& task, const GroupModel& model, const SearchOptions& options, const Program& program)
      : task_(task), model_(model), options_(options), program_(program), partials_(1), state_(task.start) {
    partials_.front().cost.fill.fixed = model.start_seconds_per_byte * options.bytes;
  }

  Result<PricedProgram> run() {
    for (const Instruction& instruction : program_.instructions)
      if (Status status = extend(instruction); !status.ok()) return status;
    if (!task_.is_goal(state_))
      return Status(Code::invalid, "program " + text_without_algorithms(program_) + ": does not end with the result");
    return best();
  }

 private:
  Status refuse(const Instruction& instruction, const std::string& why) const {
    return {Code::invalid, "program " + text_without_algorithms(program_) + ": " +
                               text_without_algorithms({{instruction}}) + " " + why};
  }

  Status extend(const Instruction& instruction) {
    if (instruction.last >= task_.levels)
      return refuse(instruction,
                    "names level " + std::to_string(instruction.last + 1) + " of " + std::to_string(task_.levels));
    const auto next = apply(task_, state_, instruction.what, instruction.first, instruction.last);
    if (!next) return refuse(instruction, "does not apply to what the ranks hold at that point");
    const Extent extent = extent_of(model_, instruction.first, instruction.last);
    std::vector<Partial> longer;
    for (const Algorithm* algorithm : all_algorithms) {
      Instruction with = instruction;
      with.algorithm = algorithm;
      if (is_choice(instruction, with, extent)) append_to_all(with, longer);
    }
    if (longer.empty())
      return refuse(instruction, "has no algorithm that fits its groups of " + std::to_string(extent.members));
    partials_ = useful(std::move(longer));
    state_ = *next;
    return {};
  }

  bool is_choice(const Instruction& wanted, const Instruction& with, const Extent& extent) const {
    const Algorithm& algorithm = *with.algorithm;
    if (!possible(with.what, algorithm, extent)) return false;
    if (task_.ordered && !keeps_order(with)) return false;
    if (wanted.algorithm_given) return with.algorithm == wanted.algorithm;
    return is_among(algorithm, options_.algorithms) && algorithm.worth_trying(with.what, extent);
  }

  void append_to_all(const Instruction& with, std::vector<Partial>& longer) const {
    const PipelineCost cost = instruction_cost(model_, options_.bytes, state_, with);
    for (const Partial& before : partials_) {
      Partial& extended = longer.emplace_back(before);
      add(extended.cost, cost, task_.levels);
      extended.algorithms.push_back(with.algorithm);
    }
  }

  // Without those that are nowhere better than another one.
  std::vector<Partial> useful(std::vector<Partial> all) const {
    std::vector<Partial> kept;
    for (Partial& one : all) {
      const auto beats_it = [&](const Partial& other) { return dominates(other.cost, one.cost, task_.levels); };
      if (std::any_of(kept.begin(), kept.end(), beats_it)) continue;
      std::erase_if(kept, [&](const Partial& other) { return dominates(one.cost, other.cost, task_.levels); });
      kept.push_back(std::move(one));
    }
    return kept;
  }

  PricedProgram best() const {
    PricedProgram result{program_, 1, std::numeric_limits<double>::infinity()};
    for (const Partial& partial : partials_) {
      const Timed timed = best_chunks(partial.cost, task_.levels, options_);
      if (timed.seconds >= result.seconds) continue;
      result.seconds = timed.seconds;
      result.chunks = timed.chunks;
      for (std::size_t i = 0; i < partial.algorithms.size(); ++i) {
        result.program.instructions[i].algorithm = partial.algorithms[i];
        result.program.instructions[i].algorithm_given = true;
      }
    }
    return result;
  }

  const SynthesisTask& task_;
  const GroupModel& model_;
  const SearchOptions& options_;
  const Program& program_;
  std::vector<Partial> partials_;
  LevelState state_;
};

}  // namespace

Result<PricedProgram> price_program(const SynthesisTask& task, const GroupModel& model, const SearchOptions& options,
                                    const Program& program) {
  return Pricing(task, model, options, program).run();
}

}  // namespace plait::plan

#include "plan/choose/chunk_optimum.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "plan/lower/lowering.h"

namespace plait::plan {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// What is better by less is rounding.
constexpr double rounding = 1e-12;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// The low byte is a set of levels that are scattered at some time; the rest tells all-reduces that cut their data, with
// the state that each finds. Two programs with the same cut have the same number of segments (plan/lower/lowering.cpp).
std::uint64_t cut_of(const Instruction& instruction, int members, LevelState held) {
  if (instruction.what == Instruct::reduce_scatter || instruction.what == Instruct::scatter) {
    std::uint64_t levels = 0;
    for (int level = instruction.first; level <= instruction.last; ++level) levels |= std::uint64_t{1} << level;
    return levels;
  }
  if (instruction.what != Instruct::all_reduce || instruction.algorithm->pieces == nullptr) return 0;
  const auto range = static_cast<std::uint64_t>(instruction.first * 8 + instruction.last);
  const auto pieces = static_cast<std::uint64_t>(instruction.algorithm->pieces(members));
  return mixed(mixed(range + 1, held.index()), pieces) & ~std::uint64_t{0xff};
}

std::uint64_t with_cut(std::uint64_t before, std::uint64_t cut) {
  if (cut < 0x100) return before | cut;
  return (mixed(before & ~std::uint64_t{0xff}, cut) & ~std::uint64_t{0xff}) | (before & 0xff);
}

template <class Costs>
bool at_most(const Costs& a, const Costs& b, int count) {
  for (int i = 0; i < count; ++i)
    if (a[static_cast<std::size_t>(i)] > b[static_cast<std::size_t>(i)]) return false;
  return true;
}

}  // namespace

double seconds(const CostedProgram& program, int levels, double bytes, int chunks) {
  const double data = bytes / chunks;
  double slowest = 0;
  for (int level = 0; level <= levels; ++level) {
    const Amount& load = program.cost.load[static_cast<std::size_t>(level)];
    slowest = std::max(slowest, load.fixed + load.volume * data);
  }
  return program.start_seconds_per_byte * bytes + program.cost.fill.fixed + program.cost.fill.volume * data +
         (chunks - 1) * slowest;
}

ChunkOptimum::ChunkOptimum(const CallSynthesis& synthesis, Collective collective, const GroupModel& model, Scope scope,
                           bool limited)
    : synthesis_(synthesis),
      collective_(collective),
      model_(model),
      table_(synthesis.task, model_, {}, InstructionTable::Choice::all),
      levels_(synthesis.task.levels),
      loads_(levels_ + 1),
      limited_(limited),
      // The planner's limit, or an uneven level that can be cut too finely.
      cuts_count_(limited && !synthesis.task.owned_pieces) {
  visit(synthesis.task.start, scope);
}

// Depth first, so that a state comes after all that follow it. The start is the last.
int ChunkOptimum::visit(LevelState held, Scope scope) {
  if (const auto found = numbers_.find(held.index()); found != numbers_.end()) return found->second;
  State state{.held = held, .goal = synthesis_.task.is_goal(held), .edges = {}, .labels = {}, .to_go = {}};
  int range = 0;
  for (int first = 0; first < levels_ && !state.goal; ++first)
    for (int last = first; last < levels_; ++last, ++range)
      for (int kind = 0; kind < all_instructs; ++kind) {
        const auto what = static_cast<Instruct>(kind);
        if (scope == Scope::flat && (first > 0 || last < levels_ - 1)) continue;
        const auto next = apply(synthesis_.task, held, what, first, last);
        if (!next || table_.of(range, what).empty()) continue;
        Edge edge{.next = visit(*next, scope), .choices = {}, .useful = {}};
        for (const InstructionShape& shape : table_.of(range, what))
          if (model_.uneven == 0 || fits(shape.instruction, synthesis_.grid))
            edge.choices.push_back(choice_of(shape, held));
        state.edges.push_back(std::move(edge));
      }
  states_.push_back(std::move(state));
  return numbers_[held.index()] = static_cast<int>(states_.size()) - 1;
}

ChunkOptimum::Choice ChunkOptimum::choice_of(const InstructionShape& shape, LevelState held) const {
  const StateView view = view_of(model_, held, shape.instruction.first, shape.instruction.last);
  return {.shape = &shape,
          .cost = cost_of(shape, view, 1, levels_),
          .cut = cuts_count_ ? cut_of(shape.instruction,
                                      extent_of(model_, shape.instruction.first, shape.instruction.last).members, held)
                             : 0,
          .now = {}};
}

std::array<int, chunk_numbers> ChunkOptimum::best(double chunk_bytes, int numbers) {
  numbers_of_chunks_ = numbers;
  // With one chunk only the fill counts.
  loads_ = numbers > 1 ? levels_ + 1 : 0;
  prepare(chunk_bytes);
  start_from_known(chunk_bytes);
  labels_.clear();
  State& start = states_.back();
  labels_.push_back({.costs = {}, .cut = 0, .parent = -1, .choice = nullptr});
  start.labels.assign(1, 0);
  for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
    if (state->goal)
      take_goal(*state);
    else
      extend(*state);
  }
  return best_program_;
}

void ChunkOptimum::prepare(double chunk_bytes) {
  start_ = model_.start_seconds_per_byte * chunk_bytes;
  for (State& state : states_) {
    state.labels.clear();
    for (Edge& edge : state.edges) {
      for (Choice& choice : edge.choices) {
        choice.now[0] = choice.cost.fill.fixed + choice.cost.fill.volume * chunk_bytes;
        for (std::size_t l = 0; l < static_cast<std::size_t>(loads_); ++l)
          choice.now[l + 1] = choice.cost.load[l].fixed + choice.cost.load[l].volume * chunk_bytes;
      }
      keep_useful(edge);
    }
    settle_to_go(state);
  }
}

void ChunkOptimum::keep_useful(Edge& edge) const {
  edge.useful.clear();
  for (std::size_t i = 0; i < edge.choices.size(); ++i) {
    const Choice& one = edge.choices[i];
    const auto beats = [&](const Choice& a, const Choice& b) {
      return a.cut == b.cut && at_most(a.now, b.now, loads_ + 1);
    };
    const auto beaten = [&](int other) { return beats(edge.choices[static_cast<std::size_t>(other)], one); };
    if (std::any_of(edge.useful.begin(), edge.useful.end(), beaten)) continue;
    std::erase_if(edge.useful, [&](int other) { return beats(one, edge.choices[static_cast<std::size_t>(other)]); });
    edge.useful.push_back(static_cast<int>(i));
  }
}

void ChunkOptimum::settle_to_go(State& state) const {
  state.to_go.fill(state.goal ? 0 : never);
  for (const Edge& edge : state.edges) {
    const Costs& after = states_[static_cast<std::size_t>(edge.next)].to_go;
    for (const int useful : edge.useful) {
      const Costs& now = edge.choices[static_cast<std::size_t>(useful)].now;
      for (std::size_t i = 0; i <= static_cast<std::size_t>(loads_); ++i)
        state.to_go[i] = std::min(state.to_go[i], now[i] + after[i]);
    }
  }
}

// What was the best for other chunks bounds what must be beaten here.
void ChunkOptimum::start_from_known(double chunk_bytes) {
  best_seconds_.fill(never);
  best_program_.fill(-1);
  for (std::size_t i = 0; i < programs_.size(); ++i)
    for (int number = 0; number < numbers_of_chunks_; ++number) {
      const int chunks = 1 << number;
      if (programs_[i].most_chunks < chunks) break;
      const double time = seconds(programs_[i], levels_, chunk_bytes * chunks, chunks);
      const auto n = static_cast<std::size_t>(number);
      if (time < best_seconds_[n]) {
        best_seconds_[n] = time;
        best_program_[n] = static_cast<int>(i);
      }
    }
}

double ChunkOptimum::pipelined(const Costs& costs, int number) const {
  double slowest = 0;
  for (std::size_t l = 1; l <= static_cast<std::size_t>(loads_); ++l) slowest = std::max(slowest, costs[l]);
  return costs[0] + ((1 << number) - 1) * slowest + (1 << number) * start_;
}

bool ChunkOptimum::may_win(const Costs& costs, const State& at) const {
  Costs least;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(loads_); ++i) least[i] = costs[i] + at.to_go[i];
  for (int number = 0; number < numbers_of_chunks_; ++number)
    if (pipelined(least, number) < best_seconds_[static_cast<std::size_t>(number)] * (1 - rounding)) return true;
  return false;
}

void ChunkOptimum::extend(const State& from) {
  for (const int index : from.labels) {
    const Label label = labels_[static_cast<std::size_t>(index)];
    if (!may_win(label.costs, from)) continue;
    for (const Edge& edge : from.edges)
      for (const int useful : edge.useful) {
        const Choice& choice = edge.choices[static_cast<std::size_t>(useful)];
        Label longer{.costs = label.costs, .cut = with_cut(label.cut, choice.cut), .parent = index, .choice = &choice};
        for (std::size_t i = 0; i <= static_cast<std::size_t>(loads_); ++i) longer.costs[i] += choice.now[i];
        consider(states_[static_cast<std::size_t>(edge.next)], longer);
      }
  }
}

void ChunkOptimum::consider(State& to, const Label& label) {
  if (!may_win(label.costs, to)) return;
  const auto beats = [&](const Label& a, const Label& b) {
    return a.cut == b.cut && at_most(a.costs, b.costs, loads_ + 1);
  };
  for (const int other : to.labels)
    if (beats(labels_[static_cast<std::size_t>(other)], label)) return;
  std::erase_if(to.labels, [&](int other) { return beats(label, labels_[static_cast<std::size_t>(other)]); });
  to.labels.push_back(static_cast<int>(labels_.size()));
  labels_.push_back(label);
}

void ChunkOptimum::take_goal(const State& goal) {
  for (const int label : goal.labels) take(label);
}

void ChunkOptimum::take(int index) {
  const Costs costs = labels_[static_cast<std::size_t>(index)].costs;
  int program = -1;
  for (int number = 0; number < numbers_of_chunks_; ++number) {
    const auto n = static_cast<std::size_t>(number);
    const double time = pipelined(costs, number);
    if (time >= best_seconds_[n] * (1 - rounding)) continue;
    if (program < 0) program = program_of(index);
    if (program < 0 || programs_[static_cast<std::size_t>(program)].most_chunks < 1 << number) return;
    best_seconds_[n] = time;
    best_program_[n] = program;
  }
}

Program ChunkOptimum::path_of(int index) const {
  Program program;
  for (; labels_[static_cast<std::size_t>(index)].parent >= 0; index = labels_[static_cast<std::size_t>(index)].parent)
    program.instructions.push_back(labels_[static_cast<std::size_t>(index)].choice->shape->instruction);
  std::reverse(program.instructions.begin(), program.instructions.end());
  return program;
}

// -1 where it cannot be lowered.
int ChunkOptimum::program_of(int index) {
  Program program = path_of(index);
  const auto known = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const CostedProgram& other) { return other.program == program; });
  if (known != programs_.end()) return static_cast<int>(known - programs_.begin());
  const int limit = limit_of(program, labels_[static_cast<std::size_t>(index)].cut);
  if (limit == 0) return -1;
  CostedProgram costed{.program = std::move(program),
                       .cost = {},
                       .start_seconds_per_byte = model_.start_seconds_per_byte,
                       .most_chunks = limit};
  for (int at = index; labels_[static_cast<std::size_t>(at)].parent >= 0;
       at = labels_[static_cast<std::size_t>(at)].parent) {
    const PipelineCost& cost = labels_[static_cast<std::size_t>(at)].choice->cost;
    costed.cost.fill += cost.fill;
    for (std::size_t l = 0; l <= static_cast<std::size_t>(levels_); ++l) costed.cost.load[l] += cost.load[l];
  }
  programs_.push_back(std::move(costed));
  return static_cast<int>(programs_.size()) - 1;
}

int ChunkOptimum::limit_of(const Program& program, std::uint64_t cut) {
  constexpr int most = 1 << (chunk_numbers - 1);
  if (!limited_) return most;
  const auto [entry, fresh] = limits_.try_emplace(cut, 0);
  if (fresh) {
    const Result<int> segments = segments_needed(program, synthesis_.grid, collective_, false);
    if (segments.ok()) entry->second = std::min(most, most_chunks_for(*segments, synthesis_.grid.ranks()));
  }
  return entry->second;
}

}  // namespace plait::plan

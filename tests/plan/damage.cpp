#include "damage.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace plait::plan {

namespace {

// Steps in another order, or without some: `order` lists those that stay.
void take_steps(Schedule& schedule, const std::vector<std::uint32_t>& order) {
  std::vector<std::int64_t> place(schedule.steps.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int64_t>(i);
  Schedule changed = schedule;
  changed.steps.clear();
  changed.after.clear();
  for (const std::uint32_t number : order) {
    Step step = schedule.steps[number];
    const RunList after = step.after;
    step.after = {static_cast<std::uint32_t>(changed.after.size()), 0};
    for (std::uint32_t k = after.first; k < after.first + after.count; ++k)
      if (const std::int64_t before = place[schedule.after[k]]; before >= 0) {
        changed.after.push_back(static_cast<std::uint32_t>(before));
        ++step.after.count;
      }
    changed.steps.push_back(step);
  }
  schedule = std::move(changed);
}

std::vector<std::uint32_t> all_steps(const Schedule& schedule) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) order.push_back(i);
  return order;
}

std::string forget_order(Schedule& schedule, Step& step, unsigned draw) {
  if (step.after.count == 0) return "nothing";
  std::swap(schedule.after[step.after.first + draw % step.after.count],
            schedule.after[step.after.first + step.after.count - 1]);
  --step.after.count;
  return "a step does not wait";
}

std::string move_run(Schedule& schedule, unsigned draw) {
  if (schedule.runs.empty()) return "nothing";
  CellRun& run = schedule.runs[draw % schedule.runs.size()];
  switch (draw / 7 % 5) {
    case 0:
      ++run.first;
      return "a run lies one further";
    case 1:
      if (run.first > 0) --run.first;
      return "a run lies one earlier";
    case 2:
      ++run.count;
      return "a run is longer";
    case 3:
      run.apart = run.apart == 1 ? 2 : 1;
      return "a run is spread otherwise";
    default:
      run.space = static_cast<Space>((static_cast<unsigned>(run.space) + 1) % 3);
      return "a run is in another space";
  }
}

std::string change_message(Step& step, int ranks, bool ordered, unsigned draw) {
  if (is_local(step.kind) || step.kind == StepKind::shm_collective) return "nothing";
  switch (draw % 4) {
    case 0:
      step.peer = (step.peer + 1 + static_cast<int>(draw / 4 % 3)) % ranks;
      return "a message has another peer";
    case 1:
      step.rail = step.rail == 0 ? 1 : 0;
      return "a message has another rail";
    case 2:
      if (step.kind != StepKind::recv_reduce) return "nothing";
      step.kind = StepKind::recv;
      step.operand = {};
      return "a message overwrites";
    default:
      if (!ordered || step.kind != StepKind::recv_reduce) return "nothing";
      step.incoming_left = !step.incoming_left;
      return "operands are turned round";
  }
}

std::string change_collective(Schedule& schedule, unsigned draw) {
  if (schedule.collectives.empty()) return "nothing";
  ShmCollective& collective = schedule.collectives[draw % schedule.collectives.size()];
  if (draw / 3 % 2 == 0) {
    collective.root = (collective.root + 1) % static_cast<std::int32_t>(collective.members.count);
    return "a collective has another root";
  }
  std::swap(schedule.collective_members[collective.members.first],
            schedule.collective_members[collective.members.first + 1]);
  return "a collective has its members in another order";
}

}  // namespace

std::string damage(Schedule& schedule, int ranks, bool ordered, std::mt19937& random) {
  if (schedule.steps.empty()) return "nothing";
  const unsigned kind = random() % 7, draw = random() % 1000003;
  std::vector<std::uint32_t> order = all_steps(schedule);
  Step& step = schedule.steps[draw % schedule.steps.size()];
  switch (kind) {
    case 0:
      return forget_order(schedule, step, draw);
    case 1:
      return move_run(schedule, draw);
    case 2:
      return change_message(step, ranks, ordered, draw);
    case 3:
      return change_collective(schedule, draw);
    case 4:
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(draw % order.size()));
      take_steps(schedule, order);
      return "a step is left out";
    case 5:
      if (order.size() < 2) return "nothing";
      std::swap(order[draw % (order.size() - 1)], order[draw % (order.size() - 1) + 1]);
      take_steps(schedule, order);
      return "two steps have changed places";
    default:
      schedule.steps.push_back(step);
      return "a step comes twice";
  }
}

namespace {

enum class Wrong { drop, other_piece, backwards, other_kind, twice, count_ };

// Of which message: of those between two members one by its number, the same whoever is told.
struct AlgorithmDamage {
  const Algorithm* algorithm;
  Wrong wrong;
  unsigned from, to, number;
};
AlgorithmDamage current;

class Damaging final : public Moves {
 public:
  Damaging(Moves& told, int members, int pieces)
      : Moves(told.self()),
        told_(told),
        pieces_(pieces),
        from_(static_cast<int>(current.from % static_cast<unsigned>(members))),
        to_(static_cast<int>((current.from + 1 + current.to % static_cast<unsigned>(members - 1)) %
                             static_cast<unsigned>(members))) {}
  ~Damaging() override = default;

  void next_stage() override { told_.next_stage(); }
  void move(int from, int to, Pieces pieces) override { tell(0, from, to, pieces); }
  void combine(int from, int to, Pieces pieces) override { tell(1, from, to, pieces); }
  void exchange(int one, int other, Pieces pieces) override { tell(2, one, other, pieces); }
  void together(ShmCollectiveKind kind) override {
    if (current.wrong != Wrong::drop) told_.together(kind);
    if (current.wrong == Wrong::twice) told_.together(kind);
  }

 private:
  void pass_on(int kind, int from, int to, Pieces pieces) {
    if (kind == 0)
      told_.move(from, to, pieces);
    else if (kind == 1)
      told_.combine(from, to, pieces);
    else
      told_.exchange(from, to, pieces);
  }

  // Either direction between the two counts.
  void tell(int kind, int from, int to, Pieces pieces) {
    const bool between = (from == from_ && to == to_) || (from == to_ && to == from_);
    if (!between || number_++ != current.number) return pass_on(kind, from, to, pieces);
    std::vector<int> changed(pieces.begin(), pieces.end());
    switch (current.wrong) {
      case Wrong::drop:
        return;
      case Wrong::other_piece:
        if (!changed.empty()) changed.front() = (changed.front() + 1) % pieces_;
        if (std::ranges::count(changed, changed.empty() ? 0 : changed.front()) > 1) changed.erase(changed.begin());
        return pass_on(kind, from, to, changed);
      case Wrong::backwards:
        return pass_on(kind, to, from, pieces);
      case Wrong::other_kind:
        return pass_on((kind + 1) % 3, from, to, pieces);
      default:
        pass_on(kind, from, to, pieces);
        return pass_on(kind, from, to, pieces);
    }
  }

  Moves& told_;
  int pieces_, from_, to_;
  unsigned number_ = 0;
};

void emit_damaged(Moves& moves, const GroupWork& work) {
  Damaging damaging(moves, work.members, pieces_of(*current.algorithm, work.what, work.members));
  current.algorithm->emit(damaging, work);
}

}  // namespace

const Algorithm& damaged(const Algorithm& algorithm, std::mt19937& random) {
  static Algorithm value;
  current = {&algorithm, static_cast<Wrong>(random() % static_cast<unsigned>(Wrong::count_)),
             static_cast<unsigned>(random() % 1024), static_cast<unsigned>(random() % 1024),
             static_cast<unsigned>(random() % 3)};
  value = algorithm;
  value.emit = emit_damaged;
  return value;
}

std::string describe_damage() {
  constexpr const char* texts[] = {"left out", "of another piece", "backwards", "of another kind", "twice"};
  return "message " + std::to_string(current.number) + " between " + std::to_string(current.from) + " and " +
         std::to_string(current.to) + " " + texts[static_cast<std::size_t>(current.wrong)];
}

}  // namespace plait::plan

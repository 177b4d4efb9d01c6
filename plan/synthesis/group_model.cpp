#include "plan/synthesis/group_model.h"

#include <algorithm>

namespace plait::plan {

namespace {

// A rank that shares its core must be given it before it sees a message.
constexpr double turn_seconds = 20e-6;

double crowded_latency(const LinkLevel& link, double ranks_per_core) {
  return link.latency + (link.network ? std::max(ranks_per_core - 1, 0.0) * turn_seconds : 0);
}

GroupModel model_of(const Machine& machine) {
  GroupModel model;
  model.reduce_seconds_per_byte = machine.reduce_seconds_per_byte;
  model.start_seconds_per_byte = machine.start_seconds_per_byte;
  model.ranks_per_core = machine.ranks_per_core;
  return model;
}

void add_level(GroupModel& model, int cardinality, LinkLevel link, double behind) {
  link.latency = crowded_latency(link, model.ranks_per_core);
  model.levels.push_back({cardinality, std::move(link), behind});
  model.members *= cardinality;
}

// The machine's level of that name; else the innermost network for what lies between nodes, the innermost of all for
// what lies within one.
const LinkLevel& link_of(const Machine& machine, LevelKind kind, bool within_node) {
  const auto named = std::find_if(machine.levels.begin(), machine.levels.end(),
                                  [&](const LinkLevel& level) { return level.name == name(kind); });
  if (named != machine.levels.end()) return *named;
  if (within_node) return machine.levels.back();
  const auto network = std::find_if(machine.levels.rbegin(), machine.levels.rend(),
                                    [](const LinkLevel& level) { return level.network; });
  return network != machine.levels.rend() ? *network : machine.levels.front();
}

// The largest number of vranks in a group of the level.
int most_vranks(const Level& level, int ranks) {
  int most = 0;
  for (std::size_t group = 0; group < level.group_first.size(); ++group) {
    const int end = group + 1 < level.group_first.size() ? level.group_first[group + 1] : ranks;
    most = std::max(most, end - level.group_first[group]);
  }
  return most;
}

int most_children(const Level& level, std::span<const int> parent_first, int ranks) {
  if (level.cardinality > 0) return level.cardinality;
  int most = 0;
  auto child = level.group_first.begin();
  for (std::size_t parent = 0; parent < parent_first.size(); ++parent) {
    const int end = parent + 1 < parent_first.size() ? parent_first[parent + 1] : ranks;
    const auto next = std::lower_bound(child, level.group_first.end(), end);
    most = std::max(most, static_cast<int>(next - child));
    child = next;
  }
  return most;
}

}  // namespace

GroupModel group_model(const Machine& machine, const GridRequest& request, const ParallelismMatrix& matrix) {
  GroupModel model = model_of(machine);
  for (const GroupLevel& level : group_levels(matrix, request.reduce)) {
    const auto position = static_cast<std::size_t>(level.system_level);
    double behind = 1;
    for (std::size_t inner = position + 1; inner < request.system.size(); ++inner) behind *= request.system[inner];
    add_level(model, level.cardinality, machine.levels[std::min(position, machine.levels.size() - 1)], behind);
  }
  return model;
}

GroupModel group_model(const Machine& machine, const Hierarchy& hierarchy, double siblings) {
  GroupModel model = model_of(machine);
  static constexpr int whole = 0;
  std::span<const int> parent_first(&whole, 1);
  bool within_node = hierarchy.nodes() == 1;
  for (const Level& level : hierarchy.levels()) {
    within_node = within_node || (level.kind != LevelKind::node && model.levels.size() > 0 &&
                                  static_cast<int>(parent_first.size()) >= hierarchy.nodes());
    const bool outside = !within_node;
    const double behind = most_vranks(level, hierarchy.ranks()) * (outside ? siblings : 1);
    if (level.cardinality == 0) model.uneven |= static_cast<std::uint8_t>(1u << model.levels.size());
    add_level(model, most_children(level, parent_first, hierarchy.ranks()), link_of(machine, level.kind, within_node),
              behind);
    parent_first = level.group_first;
  }
  model.members = hierarchy.ranks();
  return model;
}

GroupModel with_chunks_on_rails(const GroupModel& model, int rails) {
  GroupModel bound = model;
  for (ModelLevel& level : bound.levels) {
    if (!level.link.network || level.link.rails < 2) continue;
    const double of_all = level.link.rails;
    level.link.overhead /= of_all;
    level.link.port_seconds_per_message /= rails;
    level.link.port_seconds_per_byte *= of_all / rails;
    level.alone = rails;
  }
  return bound;
}

double pipeline_seconds(const PipelineCost& cost, int levels, int chunks) {
  double slowest = 0;
  for (int level = 0; level <= levels; ++level)
    slowest = std::max(slowest, cost.load[static_cast<std::size_t>(level)].at(chunks));
  return cost.fill.at(chunks) + (chunks - 1) * slowest;
}

InstructionShape shape_of(const GroupModel& model, const Instruction& instruction) {
  AlgorithmCost cost(model, instruction);
  instruction.algorithm->cost(cost);
  return cost.shape();
}

StateView view_of(const GroupModel& model, LevelState before, int first, int last) {
  StateView view;
  double idle = 1;
  for (int l = static_cast<int>(model.levels.size()) - 1; l >= 0; --l) {
    view.idle[static_cast<std::size_t>(l)] = idle;
    if (l >= first && l <= last) continue;
    const double part = 1.0 / model.levels[static_cast<std::size_t>(l)].cardinality;
    if (before.at(l) == LevelStatus::rooted) idle *= part;
    if (before.at(l) == LevelStatus::scattered) view.share *= part;
  }
  view.active = idle;
  return view;
}

PipelineCost cost_of(const InstructionShape& shape, const StateView& view, double bytes, int levels) {
  const double data = bytes * view.share;
  PipelineCost cost;
  double widest = 0;
  for (int l = shape.instruction.first; l < levels; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const InstructionShape::PortUse& use = shape.ports[i];
    cost.load[i] = {use.messages * view.idle[i], use.volume * data * view.idle[i]};
    widest = std::max(widest, (use.volume + use.again) * use.alone * data * view.idle[i]);
  }
  cost.load[static_cast<std::size_t>(levels)] = {shape.busy.at(view.active), shape.busy_bytes.at(view.active) * data};
  cost.fill.fixed = shape.wait + shape.queueing.at(view.active);
  cost.fill.volume =
      shape.fill_bytes.at(view.active) * data + shape.port_bytes(widest, shape.stage_bytes(view.idle, levels) * data);
  return cost;
}

PipelineCost instruction_cost(const GroupModel& model, double bytes, LevelState before,
                              const Instruction& instruction) {
  return cost_of(shape_of(model, instruction), view_of(model, before, instruction.first, instruction.last), bytes,
                 static_cast<int>(model.levels.size()));
}

}  // namespace plait::plan

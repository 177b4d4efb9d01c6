#include "plan/synthesis/group_model.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace plait::plan {

namespace {

// A rank that shares its core must be given it before it sees a message.
constexpr double turn_seconds = 20e-6;

double crowded_latency(const LinkLevel& link, double ranks_per_core) {
  return link.latency + (link.network ? (ranks_per_core - 1) * turn_seconds : 0);
}

// Of a group step, in multiples of a message's overhead: writing one's own line, and reading another rank's.
constexpr double group_line_written = 0.3, group_line_read = 0.1;

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

// The largest number of places in a group of the level.
int most_places(const Level& level, int ranks) {
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
  std::vector<int> parent_first = {0};
  bool within_node = hierarchy.nodes() == 1;
  for (const Level& level : hierarchy.levels()) {
    within_node = within_node || (level.kind != LevelKind::node && model.levels.size() > 0 &&
                                  static_cast<int>(parent_first.size()) >= hierarchy.nodes());
    const bool outside = !within_node;
    const double behind = most_places(level, hierarchy.ranks()) * (outside ? siblings : 1);
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

namespace {

int rounds(int members, int radix) {
  int result = 0;
  for (long reach = 1; reach < members; reach *= radix) ++result;
  return result;
}

// The instruction's groups as seen from one level's port, when every rank holds something.
struct Port {
  double below = 1;   // members of one group behind it
  double groups = 1;  // groups behind it
  double seconds_per_byte = 0;
  double seconds_per_message = 0;
  double rounds = 0;  // log2 of the level's cardinality, rounded up; 0 outside the range
  double outer = 1;   // product of the range's cardinalities outside it
  double cardinality = 1;
  double latency = 0, overhead = 0, cpu = 0;
  bool half_duplex = false;
};

struct View {
  std::array<Port, most_levels> ports;
  int levels = 0, first = 0, last = 0;
  double members = 1;  // of one group
  const Port& outermost() const { return ports[static_cast<std::size_t>(first)]; }
  const Port& innermost() const { return ports[static_cast<std::size_t>(last)]; }
};

View look(const GroupModel& model, const Instruction& instruction) {
  View view;
  view.levels = static_cast<int>(model.levels.size());
  view.first = instruction.first;
  view.last = instruction.last;
  double below = 1;
  for (int l = view.levels - 1; l >= view.first; --l) {
    const ModelLevel& level = model.levels[static_cast<std::size_t>(l)];
    Port& port = view.ports[static_cast<std::size_t>(l)];
    const bool in_range = l <= view.last;
    port.below = below;
    port.groups = level.behind / below;
    port.cardinality = level.cardinality;
    port.half_duplex = level.link.half_duplex;
    if (in_range || level.link.network) {
      port.seconds_per_byte = level.link.port_seconds_per_byte;
      port.seconds_per_message = level.link.port_seconds_per_message;
    }
    port.latency = level.link.latency;
    port.overhead = level.link.overhead;
    port.cpu = level.link.cpu_seconds_per_byte;
    if (!in_range) continue;
    port.rounds = rounds(level.cardinality, 2);
    below *= level.cardinality;
  }
  view.members = below;
  double outer = 1;
  for (int l = view.first; l <= view.last; ++l) {
    view.ports[static_cast<std::size_t>(l)].outer = outer;
    outer *= view.ports[static_cast<std::size_t>(l)].cardinality;
  }
  return view;
}

// What one group sends through a port: bytes in multiples of its data, and messages.
struct Traffic {
  double volume = 0;
  double messages = 0;
  bool both_ways = true;  // as much comes in as goes out
};

class Shaping {
 public:
  Shaping(const GroupModel& model, const View& view, const Instruction& instruction)
      : model_(model), view_(view), what_(instruction.what), algorithm_(instruction.algorithm) {
    shape_.instruction = instruction;
    for (std::size_t l = 0; l < model.levels.size(); ++l) shape_.ports[l].alone = model.levels[l].alone;
  }

  InstructionShape run() {
    switch (algorithm_) {
      case Algorithm::ring:
        ring();
        break;
      case Algorithm::recursive_doubling:
        if (what_ == Instruct::all_reduce)
          exchanges();
        else
          halves();
        break;
      case Algorithm::recursive_halving:
        halves();
        break;
      case Algorithm::direct:
        if (what_ == Instruct::gather || what_ == Instruct::scatter)
          pieces_from_root(false);
        else
          direct();
        break;
      case Algorithm::dissemination:
        dissemination();
        break;
      case Algorithm::tree:
        double_tree();
        break;
      case Algorithm::binomial:
        if (what_ == Instruct::gather || what_ == Instruct::scatter)
          pieces_from_root(true);
        else
          root_tree(2);
        break;
      case Algorithm::knomial4:
        root_tree(4);
        break;
      case Algorithm::knomial8:
        root_tree(8);
        break;
      case Algorithm::chain:
        chain();
        break;
      case Algorithm::flat:
        flat();
        break;
      case Algorithm::shared:
        together();
        break;
    }
    return shape_;
  }

 private:
  double times() const { return what_ == Instruct::all_reduce ? 2 : 1; }
  bool reduces() const {
    return what_ == Instruct::all_reduce || what_ == Instruct::reduce_scatter || what_ == Instruct::reduce;
  }
  double combine_cost() const {
    if (!reduces()) return 0;
    // Half of an all-reduce's messages bring results, but all of those between partners that exchange whole vectors.
    return algorithm_ == Algorithm::recursive_doubling ? model_.reduce_seconds_per_byte
                                                       : model_.reduce_seconds_per_byte / times();
  }

  template <class TrafficOf>
  void charge(TrafficOf traffic_of) {
    for (int l = view_.first; l < view_.levels; ++l) {
      const Port& port = view_.ports[static_cast<std::size_t>(l)];
      if (port.seconds_per_byte == 0 && port.seconds_per_message == 0) continue;
      const Traffic traffic = traffic_of(port, l == view_.first);
      const double ways = port.half_duplex && traffic.both_ways ? 2 : 1;
      InstructionShape::PortUse& use = shape_.ports[static_cast<std::size_t>(l)];
      use.volume += ways * traffic.volume * port.groups * port.seconds_per_byte;
      use.messages += traffic.messages * port.groups * port.seconds_per_message;
    }
  }

  // The stages that cross just this level move so much through its ports.
  void hold_up(int level, double volume, bool both_ways) {
    const Port& port = view_.ports[static_cast<std::size_t>(level)];
    const double ways = port.half_duplex && both_ways ? 2 : 1;
    shape_.ports[static_cast<std::size_t>(level)].own += ways * volume * port.groups * port.seconds_per_byte;
  }

  // The busiest processor: messages of each side and the bytes that it sends and takes over such a link. `mean` is what
  // a member does on average, in multiples of that: where ranks share cores, all their work must be done.
  void compute(double messages, double volume, const Port& one, const Port& other, double mean = 1) {
    const double shared = model_.ranks_per_core > 1 ? model_.ranks_per_core * mean : 0;
    const double fixed = messages * (one.overhead + other.overhead);
    const double bytes = volume * (one.cpu + other.cpu + combine_cost());
    // Through shared memory the sender writes while the receiver reads.
    const bool overlap = one.seconds_per_byte == 0 && other.seconds_per_byte == 0;
    const double serial = bytes - (overlap ? volume * std::min(one.cpu, other.cpu) : 0);
    add(shape_.busy, fixed, shared);
    add(shape_.busy_bytes, bytes, shared);
    add(shape_.fill_bytes, serial, shared);
    shape_.queueing.shared += fixed * shared;  // wait() counts the rank's own messages
  }
  static void add(InstructionShape::Work& work, double seconds, double shared) {
    work.own += seconds;
    work.shared += seconds * shared;
  }

  void wait(double hops, const Port& port) { shape_.wait += hops * (port.latency + 2 * port.overhead); }

  void ring() {
    const double g = view_.members, stages = times() * (g - 1);
    shape_.widest_port = true;
    charge([&](const Port&, bool) { return Traffic{stages / g, stages}; });
    wait(stages, view_.outermost());
    compute(stages, stages / g, view_.outermost(), view_.innermost());
  }

  void direct() {
    const double g = view_.members;
    shape_.widest_port = true;
    charge([&](const Port& port, bool) {
      const double pairs = port.below * (g - port.below);
      return Traffic{times() * pairs / g, times() * pairs};
    });
    wait(times(), view_.outermost());
    const double near = view_.outermost().below - 1, far = g - view_.outermost().below;
    shape_.wait += times() * (far * view_.outermost().overhead + near * view_.innermost().overhead);
    compute(times() * far, times() * far / g, view_.outermost(), view_.outermost());
    if (near > 0) compute(times() * near, times() * near / g, view_.innermost(), view_.innermost());
  }

  void dissemination() {
    const double g = view_.members;
    shape_.widest_port = true;
    charge([&](const Port& port, bool) {
      Traffic traffic;
      for (double distance = 1; distance < g; distance *= 2) {
        const double crossing = std::min(distance, port.below);
        traffic.volume += crossing * std::min(distance, g - distance) / g;
        traffic.messages += crossing;
      }
      return traffic;
    });
    const double stages = rounds(static_cast<int>(g), 2);
    wait(stages, view_.outermost());
    compute(stages, (g - 1) / g, view_.outermost(), view_.outermost());
  }

  // Whole vectors between partners at every distance.
  void exchanges() {
    const double g = view_.members;
    const bool folds = !std::has_single_bit(static_cast<unsigned>(g));
    charge([&](const Port& port, bool) {
      const double crossing = port.below * rounds(static_cast<int>(std::ceil(g / port.below)), 2) + (folds ? 1 : 0);
      return Traffic{crossing, crossing};
    });
    for (int l = view_.first; l <= view_.last; ++l) {
      const Port& port = view_.ports[static_cast<std::size_t>(l)];
      const double stages = port.rounds + (folds && l == view_.first ? 1 : 0);
      wait(stages, port);
      hold_up(l, port.below * stages, true);
      compute_exchange(stages, stages, port);
    }
  }

  // Pieces that double or halve from stage to stage, the longest between the nearest.
  void halves() {
    const double g = view_.members;
    charge([&](const Port& port, bool) {
      return Traffic{times() * (1 - port.below / g),
                     times() * port.below * rounds(static_cast<int>(g / port.below), 2)};
    });
    for (int l = view_.first; l <= view_.last; ++l) {
      const Port& port = view_.ports[static_cast<std::size_t>(l)];
      const double share = times() * (1 - 1 / port.cardinality);
      wait(times() * port.rounds, port);
      hold_up(l, share, true);
      compute_exchange(times() * port.rounds, share / port.below, port);
    }
  }

  void compute_exchange(double messages, double volume, const Port& port) { compute(messages, volume, port, port); }

  // Two binary trees between the outermost groups, each with half of the data; chains within.
  void double_tree() {
    const Port& outermost = view_.outermost();
    charge([&](const Port& port, bool first) {
      const double volume = first && port.cardinality == 2 ? 1 : 2;
      return Traffic{volume, 2 * volume};
    });
    wait(2 * outermost.rounds, outermost);
    hold_up(view_.first, outermost.cardinality == 2 ? 1 : outermost.rounds, true);
    if (view_.last > view_.first) {
      const double hops = 2 * (outermost.below - 1);
      wait(hops, view_.innermost());
      hold_up(view_.last, 2, true);
    }
    compute(4, 2, outermost, outermost);
  }

  void root_tree(int radix) {
    const double g = view_.members, children = radix - 1;
    charge([&](const Port& port, bool) {
      const double sent = children * rounds(static_cast<int>(std::ceil(g / port.below)), radix);
      return Traffic{std::min(sent, g - port.below), sent, false};
    });
    for (int l = view_.first; l <= view_.last; ++l) {
      const Port& port = view_.ports[static_cast<std::size_t>(l)];
      const double stages = rounds(static_cast<int>(port.cardinality), radix);
      const double sent = std::min(children * stages, port.cardinality - 1);
      wait(stages, port);
      shape_.wait += (sent - stages) * port.overhead;
      hold_up(l, sent, false);
      compute_one_sided(sent, port);
    }
  }

  // The busiest processor only sends, or only takes.
  void compute_one_sided(double messages, const Port& port) {
    if (messages <= 0) return;
    Port idle;
    compute(messages, messages, port, idle, 2 * (view_.members - 1) / view_.members / messages);
  }

  void chain() {
    charge([&](const Port&, bool) { return Traffic{1, 1}; });
    for (int l = view_.first; l <= view_.last; ++l) {
      const Port& port = view_.ports[static_cast<std::size_t>(l)];
      const double hops = (port.cardinality - 1) * port.outer;
      wait(hops, port);
      hold_up(l, hops, false);
      add(shape_.fill_bytes, std::max(hops - 1, 0.0) * (port.cpu + combine_cost()), model_.ranks_per_core - 1);
    }
    compute(1, 1, view_.outermost(), view_.innermost());
  }

  void flat() {
    const double g = view_.members;
    shape_.widest_port = true;
    charge([&](const Port& port, bool) { return Traffic{g - port.below, g - port.below, false}; });
    wait(1, view_.outermost());
    const double near = view_.outermost().below - 1, far = g - view_.outermost().below;
    shape_.wait += (far - 1) * view_.outermost().overhead + near * view_.innermost().overhead;
    compute_one_sided(far, view_.outermost());
    if (near > 0) compute_one_sided(near, view_.innermost());
  }

  // Each member writes once what it gives and reads once what it gets; long vectors are reduced and copied in shares,
  // all members at the same time (tl/shm/node_group.h).
  void together() {
    const double g = view_.members, others = (g - 1) / g;
    const Port& port = view_.innermost();
    const double lines = group_line_written + (g - 1) * group_line_read;
    shape_.wait += view_.outermost().latency + lines * port.overhead;
    double volume = 0.4 * others;
    if (what_ == Instruct::all_reduce) volume = 0.8 * others;
    if (what_ == Instruct::broadcast) volume = 0.4;
    if (what_ == Instruct::gather) volume = 0.3 * others;  // only the root copies, and only it needs room for all
    compute(lines, volume, port, port);
    shape_.fill_bytes = shape_.busy_bytes;
  }

  // The root sends or takes each member's piece.
  void pieces_from_root(bool forwarded) {
    const double g = view_.members;
    shape_.widest_port = true;
    charge([&](const Port& port, bool) {
      const double far = g - port.below;
      return Traffic{far / g, forwarded ? rounds(static_cast<int>(std::ceil(g / port.below)), 2) : far, false};
    });
    double messages = 0;
    for (int l = view_.first; l <= view_.last; ++l) {
      const Port& port = view_.ports[static_cast<std::size_t>(l)];
      const double far = (port.cardinality - 1) * port.below;
      messages = forwarded ? port.rounds : far;
      if (forwarded || l == view_.first) wait(forwarded ? port.rounds : 1, port);
      if (!forwarded) shape_.wait += (far - (l == view_.first ? 1 : 0)) * port.overhead;
      Port idle;
      compute(messages, far / g, port, idle);
      if (forwarded) add(shape_.fill_bytes, far / g * port.cpu, 0);  // what inner members forward
    }
  }

  const GroupModel& model_;
  const View& view_;
  Instruct what_;
  Algorithm algorithm_;
  InstructionShape shape_;
};

}  // namespace

InstructionShape shape_of(const GroupModel& model, const Instruction& instruction) {
  return Shaping(model, look(model, instruction), instruction).run();
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
  double widest = 0, own = 0;
  for (int l = shape.instruction.first; l < levels; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const InstructionShape::PortUse& use = shape.ports[i];
    cost.load[i] = {use.messages * view.idle[i], use.volume * data * view.idle[i]};
    widest = std::max(widest, cost.load[i].volume * use.alone);
    own += use.own * use.alone * data * view.idle[i];
  }
  cost.load[static_cast<std::size_t>(levels)] = {shape.busy.at(view.active), shape.busy_bytes.at(view.active) * data};
  cost.fill.fixed = shape.wait + shape.queueing.at(view.active);
  cost.fill.volume = shape.fill_bytes.at(view.active) * data + (shape.widest_port ? widest : own);
  return cost;
}

PipelineCost instruction_cost(const GroupModel& model, double bytes, LevelState before,
                              const Instruction& instruction) {
  return cost_of(shape_of(model, instruction), view_of(model, before, instruction.first, instruction.last), bytes,
                 static_cast<int>(model.levels.size()));
}

}  // namespace plait::plan

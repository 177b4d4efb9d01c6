#include "plan/algorithm/group_cost.h"

#include <algorithm>

namespace plait::plan {

namespace {

void add(InstructionShape::Work& work, double seconds, double shared) {
  work.own += seconds;
  work.shared += seconds * shared;
}

}  // namespace

AlgorithmCost::AlgorithmCost(const GroupModel& model, const Instruction& instruction)
    : model_(model), levels_(static_cast<int>(model.levels.size())) {
  shape_.instruction = instruction;
  for (std::size_t l = 0; l < model.levels.size(); ++l) {
    shape_.ports[l].alone = model.levels[l].alone;
    shape_.least_of_ports |= model.levels[l].link.meeting != Meeting();
  }
  // Half of an all-reduce's messages bring results.
  combine_ = reduces(what()) ? model_.reduce_seconds_per_byte / passes() : 0;
  look();
}

int AlgorithmCost::rounds(double members, int radix) {
  const int whole = static_cast<int>(members);
  int result = 0;
  for (long reach = 1; reach < whole; reach *= radix) ++result;
  return result;
}

namespace {

void meet(const Meeting& meeting, int children, Port& port) {
  if (meeting == Meeting()) return;
  double halves = 0, wholes = 0, part = 1, sum = 0;
  int stages = 0;
  for (int distance = 1; distance < children; distance *= 2, ++stages) {
    const double met = meeting.at(distance, children);
    part /= 2;
    halves += met * part;
    sum += part;
    wholes += met;
  }
  if (stages == 0) return;
  port.halves_meet = halves / sum;
  port.wholes_meet = wholes / stages;
  port.neighbours_meet = meeting.at(1, children);
  port.all_meet = meeting.of_all(children);
}

}  // namespace

void AlgorithmCost::look() {
  double below = 1;
  for (int l = levels_ - 1; l >= first(); --l) {
    const ModelLevel& level = model_.levels[static_cast<std::size_t>(l)];
    Port& port = ports_[static_cast<std::size_t>(l)];
    const bool in_range = l <= last();
    port.below = below;
    port.groups = level.behind / below;
    port.cardinality = level.cardinality;
    port.half_duplex = level.link.half_duplex;
    port.shared = level.link.port_shared;
    if (in_range || level.link.network) {
      port.seconds_per_byte = level.link.port_seconds_per_byte;
      port.seconds_per_message = level.link.port_seconds_per_message;
    }
    port.latency = level.link.latency;
    port.overhead = level.link.overhead;
    port.cpu = level.link.cpu_seconds_per_byte;
    if (!in_range) continue;
    port.rounds = rounds(level.cardinality, 2);
    meet(level.link.meeting, level.cardinality, port);
    below *= level.cardinality;
  }
  members_ = below;
  double outer = 1;
  for (int l = first(); l <= last(); ++l) {
    ports_[static_cast<std::size_t>(l)].outer = outer;
    outer *= ports_[static_cast<std::size_t>(l)].cardinality;
  }
}

void AlgorithmCost::combine_all() { combine_ = reduces(what()) ? model_.reduce_seconds_per_byte : 0; }

void AlgorithmCost::hold_up(int level, double volume, bool both_ways, Movers movers, double meet) {
  shape_.ports[static_cast<std::size_t>(level)].stages += volume;
  for (int l = level; l < levels_; ++l) {
    const Port& port = this->port(l);
    const double behind = port.groups * (movers == Movers::all ? port.below : 1);
    const double one = (port.half_duplex && both_ways ? 2 : 1) * behind * port.seconds_per_byte;
    InstructionShape::PortUse& use = shape_.ports[static_cast<std::size_t>(l)];
    if (l == level)
      use.stage = meet * one;
    else if (port.shared && model_.levels[static_cast<std::size_t>(l)].link.network)
      use.passing = one;
  }
}

void AlgorithmCost::compute(double messages, double volume, const Port& one, const Port& other, double mean) {
  const double shared = model_.ranks_per_core > 1 ? model_.ranks_per_core * mean : 0;
  const double fixed = messages * (one.overhead + other.overhead);
  const double bytes = volume * (one.cpu + other.cpu + combine_);
  // Through shared memory the sender writes while the receiver reads.
  const bool overlap = one.seconds_per_byte == 0 && other.seconds_per_byte == 0;
  const double serial = bytes - (overlap ? volume * std::min(one.cpu, other.cpu) : 0);
  add(shape_.busy, fixed, shared);
  add(shape_.busy_bytes, bytes, shared);
  add(shape_.fill_bytes, serial, shared);
  shape_.queueing.shared += fixed * shared;  // wait() counts the rank's own messages
}

void AlgorithmCost::compute_one_sided(double messages, const Port& port) {
  if (messages <= 0) return;
  const Port idle;
  compute(messages, messages, port, idle, 2 * (members_ - 1) / members_ / messages);
}

void AlgorithmCost::pass_on(double seconds_per_byte, double shared) {
  add(shape_.fill_bytes, seconds_per_byte, shared);
}

}  // namespace plait::plan

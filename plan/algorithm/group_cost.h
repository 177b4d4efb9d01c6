// What an algorithm needs of the links and processors, charged by the algorithm itself.
//
// A GroupModel is a reduction group with its links; InstructionShape what comes out, before it is known in which state
// the instruction finds its data; AlgorithmCost the account in between, which an algorithm's `cost` fills.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "plan/algorithm/program.h"
#include "plan/model/machine.h"

namespace plait::plan {

// One level of the group, with the link between its children.
struct ModelLevel {
  int cardinality = 1;  // children of a group; the most where groups differ
  LinkLevel link;
  double behind = 1;  // ranks of the system behind each child's port, whatever group they belong to
  // What a chunk alone needs of the port, in multiples of the time for which it occupies it: more than 1 where chunks
  // are dealt out to several rails, and each has one.
  double alone = 1;
};

struct GroupModel {
  std::vector<ModelLevel> levels;  // outermost first
  int members = 1;                 // ranks of the group
  double reduce_seconds_per_byte = 0;
  double start_seconds_per_byte = 0;
  double ranks_per_core = 1;
  std::uint8_t uneven = 0;  // bit set of levels whose groups differ in size
  // Levels from here on split a node whose ranks have shared memory; none by default.
  int first_in_node = most_levels;
};

// What an instruction with an algorithm costs, as far as it does not depend on the state that it finds: a few products
// then give its cost for a state. Bytes are those of all pieces of one group together.
struct InstructionShape {
  struct PortUse {
    double messages = 0;  // seconds a chunk: the port's message rate
    double volume = 0;    // seconds a byte that the busiest port is occupied
    double again = 0;     // seconds a byte of what waits in the fill for what went through it before
    double stages = 0;    // bytes, in multiples of the group's, of the stages that cross just this level
    double stage = 0;     // seconds a byte that such a stage's messages occupy this level's busiest port
    double passing = 0;   // seconds a byte that those of a level outside it do
    double alone = 1;     // as ModelLevel
  };
  // A processor's time; `shared` is what all ranks' work adds where they share cores, times the share of active ranks.
  struct Work {
    double own = 0, shared = 0;
    double at(double active) const { return own + shared * active; }
  };
  Instruction instruction;
  double wait = 0;        // seconds of latency and overhead on the way of a chunk
  Work queueing;          // seconds a chunk, in the fill
  Work fill_bytes;        // seconds a byte, in the fill
  Work busy, busy_bytes;  // of the busiest processor: seconds a chunk, seconds a byte
  // The fill is the longest of the ports' times; else the sum of the levels' own ones, and where messages meet
  // somewhere no less than that.
  bool widest_port = false, least_of_ports = false;
  double port_bytes(double widest, double own) const {
    if (widest_port) return widest;
    return least_of_ports && widest > own ? widest : own;
  }
  // Seconds a byte of the stages of all levels, one after the other, where `idle` is as in StateView.
  double stage_bytes(const std::array<double, most_levels>& idle, int levels) const {
    double sum = 0, within = 0;
    for (int l = levels - 1; l >= instruction.first; --l) {
      const PortUse& use = ports[static_cast<std::size_t>(l)];
      const double here = use.alone * idle[static_cast<std::size_t>(l)];
      sum += use.stages * std::max(use.stage * here, within);
      within = std::max(within, use.passing * here);
    }
    return sum;
  }
  std::array<PortUse, most_levels> ports{};
};
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
  bool half_duplex = false, shared = false;
  // By what messages that meet make its bytes longer (Meeting): of pieces that halve while the distance doubles, of
  // whole vectors to twice the distance each time, between neighbours, and of an exchange between all.
  double halves_meet = 1, wholes_meet = 1, neighbours_meet = 1, all_meet = 1;
};

// What one group sends through a port: bytes in multiples of its data, and messages.
struct Traffic {
  double volume = 0;
  double messages = 0;
  bool both_ways = true;  // as much comes in as goes out
};

class AlgorithmCost {
 public:
  AlgorithmCost(const GroupModel& model, const Instruction& instruction);
  const InstructionShape& shape() const { return shape_; }

  // Stages until a member has reached so many, when each stage multiplies them by the radix.
  static int rounds(double members, int radix);

  Instruct what() const { return shape_.instruction.what; }
  double members() const { return members_; }  // of one group
  int first() const { return shape_.instruction.first; }
  int last() const { return shape_.instruction.last; }
  const Port& port(int level) const { return ports_[static_cast<std::size_t>(level)]; }
  const Port& outermost() const { return port(first()); }
  const Port& innermost() const { return port(last()); }
  // How often an instruction passes over its data: an all-reduce brings the results as well.
  double passes() const { return what() == Instruct::all_reduce ? 2 : 1; }

  // Every message of the reduction is combined, not only those of its first pass.
  void combine_all();
  // Stages are not confined to one level each: in the fill counts the longest of the ports' times.
  void mix_levels() { shape_.widest_port = true; }

  // What goes through each port that the instruction touches: traffic_of(port, whether it is the outermost level's).
  template <class TrafficOf>
  void charge(TrafficOf traffic_of) {
    for (int l = first(); l < levels_; ++l) {
      const Port& port = this->port(l);
      if (port.seconds_per_byte == 0 && port.seconds_per_message == 0) continue;
      const Traffic traffic = traffic_of(port, l == first());
      const double ways = port.half_duplex && traffic.both_ways ? 2 : 1;
      InstructionShape::PortUse& use = shape_.ports[static_cast<std::size_t>(l)];
      use.volume += ways * traffic.volume * port.groups * port.seconds_per_byte;
      use.messages += traffic.messages * port.groups * port.seconds_per_message;
    }
  }
  // So much more of the data, by port, goes through ports of the group that wait for those of others, where messages
  // that are posted together share a port.
  template <class VolumeOf>
  void charge_again(VolumeOf volume_of) {
    for (int l = first(); l < levels_; ++l) {
      const Port& port = this->port(l);
      if (port.shared)
        shape_.ports[static_cast<std::size_t>(l)].again += volume_of(port) * port.groups * port.seconds_per_byte;
    }
  }
  // In the stages that cross just this level one member behind each of its ports, or each member, moves so much:
  // through this level's ports and those of the networks within it whose messages share a port, whichever are the
  // slowest. `meet`: by what messages that meet make this level's longer.
  enum class Movers { one, all };
  void hold_up(int level, double volume, bool both_ways, Movers movers = Movers::one, double meet = 1);

  // Messages that wait for one another, over such a link.
  void wait(double hops, const Port& port) { shape_.wait += hops * (port.latency + 2 * port.overhead); }
  void wait_seconds(double seconds) { shape_.wait += seconds; }

  // The busiest processor: messages of each side and the bytes that it sends and takes over such a link. `mean` is what
  // a member does on average, in multiples of that: where ranks share cores, all their work must be done.
  void compute(double messages, double volume, const Port& one, const Port& other, double mean = 1);
  // The busiest processor only sends, or only takes.
  void compute_one_sided(double messages, const Port& port);
  // Seconds a byte that ranks on the way spend before the next can; `shared` as InstructionShape::Work.
  void pass_on(double seconds_per_byte, double shared);
  // Nobody waits for a whole message: the fill has what the busiest processor has.
  void fill_as_busy() { shape_.fill_bytes = shape_.busy_bytes; }

  // Of combining, as an average over the bytes that are sent.
  double combine_seconds_per_byte() const { return combine_; }
  double ranks_per_core() const { return model_.ranks_per_core; }

 private:
  void look();

  const GroupModel& model_;
  int levels_;
  double members_ = 1;
  double combine_;
  std::array<Port, most_levels> ports_{};
  InstructionShape shape_;
};

}  // namespace plait::plan

// What an algorithm is: a value that says by itself what it fits, what it costs and which messages it sends. A new one
// is a file with such a value and a line in registry.h; nothing else knows it by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/algorithm/moves.h"
#include "plan/model/instruct.h"

namespace plait::plan {

class AlgorithmCost;

// One group's part of an instruction. Pieces are numbered by the member that has or gets them (RS, AG, GA, SC), or
// those into which an all-reduce cuts the data (Algorithm::pieces), in order; a reduction and a broadcast have one.
struct GroupWork {
  Instruct what = Instruct::all_reduce;
  int members = 1;             // number 0 is the root
  std::span<const int> outer;  // of each member, in which child of the outermost level it is
};

// How an instruction's groups lie in the levels.
struct Extent {
  int members = 1;
  bool several_levels = false;
  bool whole_node = false;  // all ranks of a node, with shared memory among them
  bool aligned = true;      // all of one size, and within the outermost level of powers of two
};

struct Algorithm {
  // In programs' texts, plan files and tables: "ring". Never changed once it is out.
  std::string_view name;
  // Whether it can do this instruction in a group of so many members.
  bool (*fits)(Instruct what, int members);
  // Of algorithms that are the same in such groups one is enough; trees that cross levels without regard to them are
  // never better than one tree a level. Asked only where it fits.
  bool (*worth_trying)(Instruct what, const Extent& extent);
  // Whether its reductions combine the operands in the order of the members; false: not to be relied on.
  bool keeps_order = false;
  // Whether it works only where the group is all ranks of a node that have shared memory.
  bool needs_whole_node = false;
  // Whether it asks for GroupWork::outer.
  bool knows_outer = false;
  // Whether the planner may take it unasked; else only who names it gets it.
  bool usual = true;
  // Into how many pieces it cuts the data of an all-reduce over so many members; null: it leaves it whole.
  int (*pieces)(int members) = nullptr;
  // Charges what it needs of the links and processors (AlgorithmCost).
  void (*cost)(AlgorithmCost& cost);
  // Says its messages; with the same ones, in the same order, for each member that they are wanted of.
  void (*emit)(Moves& moves, const GroupWork& work);
};

// Whether each member has pieces of its own, before or after.
inline bool divides(Instruct what) {
  return what == Instruct::reduce_scatter || what == Instruct::all_gather || what == Instruct::gather ||
         what == Instruct::scatter;
}

// Into how many pieces the algorithm cuts a group's data.
inline int pieces_of(const Algorithm& algorithm, Instruct what, int members) {
  if (divides(what)) return members;
  return what == Instruct::all_reduce && algorithm.pieces != nullptr ? algorithm.pieces(members) : 1;
}

// Members times pieces that a group may have for its proof (plan/lower/group_proof) to take some hundredths of a second
// at most.
inline constexpr std::int64_t most_group_cells = std::int64_t{1} << 22;
inline bool small_enough_to_prove(const Algorithm& algorithm, Instruct what, int members) {
  return std::int64_t{members} * pieces_of(algorithm, what, members) <= most_group_cells;
}

// ---- For the files of the algorithms ----

inline int a_piece_each(int members) { return members; }

}  // namespace plait::plan

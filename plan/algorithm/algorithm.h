// What an algorithm is: a value that says by itself what it fits, what it costs and which messages it sends. A new one
// is a file with such a value and a line in registry.h; nothing else knows it by name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plan/model/builder.h"
#include "plan/model/instruct.h"

namespace plait::plan {

class AlgorithmCost;

using Group = std::span<const int>;        // ranks in order
using Segments = std::vector<int>;         // indices of segments (see Semantics)
using Pieces = std::span<const Segments>;  // pieces[i] are the segments that belong to group[i]

// One group's part of an instruction.
struct GroupWork {
  Instruct what = Instruct::all_reduce;
  Group members;  // the root first
  Segments segments;
  Pieces pieces;               // RS, AG, GA, SC: each member's own
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
  // Whether the planner may take it unasked; else only who names it gets it.
  bool usual = true;
  // Into how many pieces it cuts the data of an all-reduce over so many members; null: it leaves it whole.
  int (*pieces)(int members) = nullptr;
  // Charges what it needs of the links and processors (AlgorithmCost).
  void (*cost)(AlgorithmCost& cost);
  // Lists its messages, chunk by chunk: all chunks of one stage before the next stage, so that the messages of
  // different chunks overlap.
  void (*emit)(Builder& builder, const GroupWork& work);
};

// ---- For the files of the algorithms ----

// The blocks of one chunk of these segments, in the order of the segments.
std::vector<BlockId> blocks_of(const Semantics& semantics, const Segments& segments, int chunk);

// Contiguous, as even as can be.
std::vector<Segments> cut_evenly(const Segments& segments, std::size_t parts);

inline int a_piece_each(int members) { return members; }

}  // namespace plait::plan

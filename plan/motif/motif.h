// Motifs (Mahajan et al., "Better Together", NSDI '23, section 4.2): pieces of a collective that are smaller ones, cut
// along its payload or along its pattern of transfers, and what they are composed to.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"

namespace plait::plan::motif {

struct Range {
  int first = 0, count = 0;
  int end() const { return first + count; }
  bool operator==(const Range&) const = default;
};

// Where the pieces lie that a reduce-scatter, all-gather, gather, scatter or all-to-all tells apart.
enum class Pieces {
  of_vector,  // member i's is a part of one vector: it begins i strides behind the vector's part
  of_blocks,  // each rank of the collective, of an all-to-all each pair, has a block of its own
};

// One collective of some ranks on a part of the data. allreduce, reduce, bcast, allgather, reduce_scatter_block,
// gather, scatter, alltoall.
struct Motif {
  Collective what = Collective::allreduce;
  std::vector<int> group = {};  // vranks, in the order in which members are numbered
  int root = 0;                 // a member, where it is rooted
  Range payload = {};           // units: of the vector; where pieces are told apart, of each piece
  Pieces pieces = Pieces::of_vector;
  int base = 0, stride = 0;  // units: of pieces of a vector
  // Of its transfers those over these distances: from member i to member (i + d) mod the group's size; of a rooted one
  // between the root and member (root + d) mod size. An allreduce has all of them.
  Range distances = {};

  int members() const { return static_cast<int>(group.size()); }
  bool whole_pattern() const { return distances == Range{0, members()}; }
  bool operator==(const Motif&) const = default;
};

// A motif, or some that run together (∥) or one after the other (→).
struct Term {
  enum class Kind { motif, parallel, sequence };
  Kind kind = Kind::motif;
  Motif motif = {};              // of Kind::motif
  std::vector<Term> parts = {};  // of the others
};

// A collective of all ranks, written as motifs. Its payload, or each of its blocks, is `units` equal units.
struct Rewriting {
  Motif whole;
  Term term;
  int units = 1;
};

// The collective as one motif. Fails (invalid) for collectives that are none of the above, and below two ranks.
Result<Rewriting> whole_collective(Collective collective, int ranks, int root);

bool is_motif(Collective what);
bool rooted_motif(Collective what);
// Whether members' pieces are told apart.
bool has_pieces(Collective what);

// The motifs from left to right.
std::vector<const Motif*> motifs_of(const Term& term);
int depth_of(const Term& term);
// Whether it is motifs in parallel of which no rank has two: one thing to start.
bool runs_at_once(const Term& term);

// "AR(0:4, 0-7)": the collective, its units, its members ("0-7", "0,2,4,6"); "RS(0:8[0:1], 0-3)": of a vector's pieces
// the first unit each. "^3" behind it the root's vrank, and "+1:3" the distances 1 and 2 where they are not all. Motifs
// in parallel are joined by " ∥ ", those in a sequence by " → ", with parentheses where they nest.
std::string text(const Motif& motif);
std::string text(const Term& term);

}  // namespace plait::plan::motif

// The proof of an algorithm in one group, whoever its members are and whatever its pieces hold.
//
// An algorithm speaks of numbered members and pieces. Followed in the order in which it says its moves, with symbols
// for what the members contribute, it must do what its instruction promises; and of each single member it must say the
// same moves when only that member's are wanted. Both hold then for all groups of this size in all plans, which only
// put ranks and segments in the numbers' places: proven once for (algorithm, instruction, members, order), it is a
// lemma of every plan's proof (composition.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/algorithm.h"

namespace plait::plan {

struct GroupCase {
  const Algorithm* algorithm;
  Instruct what;
  int members;
  bool ordered;                     // the operator does not commute
  std::span<const int> outer = {};  // GroupWork::outer, of algorithms that ask for it
};

// Ok when after the moves
//  - AR: every member holds every piece with each member's contribution once, the same bits on all;
//  - RS, RD: so does the member that the piece belongs to, or the root;
//  - AG, BC, GA, SC: every member, or the root, holds what it must get of those that had it;
// operands were combined in the order of the members where that counts, and nobody gave what it did not have. Otherwise
// a status that names the move. Takes time and memory of members times pieces; refuses
// groups that are not small_enough_to_prove().
Status prove_group(const GroupCase& group);

// Proofs that were made before. Not thread-safe.
class GroupProofs {
 public:
  const Status& of(const GroupCase& group);

 private:
  using Key = std::tuple<const Algorithm*, Instruct, int, bool, std::vector<int>>;
  std::map<Key, Status> known_;
};

}  // namespace plait::plan

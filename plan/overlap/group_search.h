// The groups of a step's reductions and each one's share of the machine, chosen together by dynamic programming:
// LIBRA's Algorithm 1 (section IV). Pure; thread-safe.
#pragma once

#include <vector>

#include "plan/overlap/overlap_model.h"

namespace plait::plan {

struct GroupSearchOptions {
  int groups = 10;   // K: at most so many; 1 or more
  int chunks = 150;  // Z: parts of the computation at whose ends communication may begin; 1 or more
};

struct GroupChoice {
  std::vector<OverlapGroup> groups;
  double chunked_seconds = 0;  // T(K, L, Z): the backward time where communication begins at chunks' ends only
};

// The first chunk at whose end the first `computed` seconds of the pass are done: GetMinChunkID of Algorithm 1.
int first_chunk(double computed, double chunk_seconds, int chunks);

// Groups and shares together (eq. 23). Precondition: the pass has calls, and its computation is not zero.
//
// Algorithm 1 takes the least over l', z' and r for each i, l and z: K L^2 Z^2 J / 4 stages. Here
// - what counts is the excess over computation, E = T - z w, because it never grows with z: a stage that has ended may
//   go on computing alone. A stage that hides its communication adds P (1 - 1/s) to it, whatever z; it needs d chunks,
//   the fewest that take longer than P, so that E[i][l][z] = E[i-1][l'][z - d] + P (1 - 1/s). The loop over z' is gone.
// - only the last chunk, behind which communication may be left over, has a loop over z';
// - sums of bytes come from a prefix sum; the functions p and q are asked once for each l', l and r;
// - a row [i-1][l'] that is no better than [i-2][l'] is left out: one group less does as well;
// - a transition whose least value is not below any that it could replace is left out (rows never grow with z), and so
//   is one that cannot lead below a solution that is known: that of the same problem with calls merged to few. The
//   rest of the calls then count with what they need at least, whatever their groups.
GroupChoice choose_groups(const BackwardPass& pass, const OverlapModel& model, const GroupSearchOptions& options);

// Shares alone, for calls that are not fused (eq. 17).
GroupChoice choose_shares(const BackwardPass& pass, const OverlapModel& model, int chunks);

}  // namespace plait::plan

// What motifs achieve, and the proof that a rewriting achieves what the collective does. By contributions: which ranks'
// data each rank's value of each unit is made of, as plan/lower/proof does for the steps of a plan.
#pragma once

#include "core/status.h"
#include "plan/motif/motif.h"

namespace plait::plan::motif {

// Ok where, for every rank and unit:
//  - a motif finds what it moves: nobody sends a value that it has not, and nothing is combined twice;
//  - motifs in parallel touch nothing that another of them writes;
//  - at the end each result has every contribution exactly once.
// Else (invalid) the motif, the rank, the unit and what was violated. Fails (unsupported) where the ranks' units are
// too many to look at each.
Status prove(const Rewriting& rewriting);

}  // namespace plait::plan::motif

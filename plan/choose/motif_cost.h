// A call as motifs (plan/motif), and what they are predicted to take.
#pragma once

#include <span>
#include <vector>

#include "core/status.h"
#include "plan/choose/candidate_context.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"
#include "plan/model/schedule.h"
#include "plan/motif/motif.h"
#include "plan/motif/rewrite.h"

namespace plait::plan {

// The collective as the motifs that the rules make of it. Fails (invalid) where they do not fit; (unsupported) for
// operators that do not commute.
Result<motif::Rewriting> rewriting_of(std::span<const motif::Rule> rules, Collective collective, int root,
                                      bool commutative, const Hierarchy& hierarchy);

// Members of the motif's group on each node that has some: the group as a communicator of its own.
std::vector<int> on_nodes(const motif::Motif& motif, const Hierarchy& hierarchy);

// The parts of the port's rate that the rails of the machine's network have, by rail; {1} where it has one, or none.
std::vector<double> rail_shares(const Machine& machine);

// When a motif runs, predicted: seconds from the begin of the whole.
struct MotifTime {
  const motif::Motif* motif = nullptr;  // of the rewriting
  int rail = any_rail;
  double begin = 0, end = 0;
};

// Predicted: of a motif its cost in a communicator of its group; motifs on one rail one after the other, but for their
// latencies; those on different rails, or of other ranks, together. In the order of the motifs.
std::vector<MotifTime> motif_times(const motif::Rewriting& rewriting, const Call& call,
                                   std::span<const std::int8_t> rails, const CandidateContext& context);
double seconds_of(std::span<const MotifTime> times);

}  // namespace plait::plan

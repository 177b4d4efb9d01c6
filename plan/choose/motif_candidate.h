// Rewritings of a collective (plan/motif) as candidates for a call: "[segment:4,ring]", and "[segment:5] @0,0,0,0,1"
// whose motifs go over those rails in turn.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/choose/candidate.h"
#include "plan/model/layer.h"
#include "plan/motif/motif.h"

namespace plait::plan {

// The collective as the motifs that a candidate's rules make of it. Fails (invalid) where they do not fit;
// (unsupported) for operators that do not commute.
Result<motif::Rewriting> rewriting_of(const Candidate& candidate, Collective collective, int root, bool commutative,
                                      const Hierarchy& hierarchy);

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

// What is written between the brackets, for this call. Fails as rewriting_of() does.
Result<Candidate> motif_candidate(std::string_view rules, std::span<const std::int8_t> rails, const Call& call,
                                  const CandidateContext& context);

}  // namespace plait::plan

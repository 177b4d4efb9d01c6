// The ways to do a collective on a hierarchy: synthesized programs, and the exchanges that are no P² programs.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/exchange.h"
#include "plan/algorithm/program.h"
#include "plan/choose/candidate_context.h"
#include "plan/model/builder.h"
#include "plan/model/grid.h"
#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "plan/model/routes.h"
#include "plan/motif/parts.h"
#include "plan/motif/rewrite.h"
#include "topo/hierarchy.h"

namespace plait::plan {

struct Candidate {
  std::string name = {};  // "RS.2(ring) AR.1(ring) AG.2(ring) x4", "leaders", "[segment:4,ring]"
  GridKind grid = GridKind::full;
  Program program = {};  // empty: an exchange or motifs instead
  const Exchange* exchange = nullptr;
  int chunks = 1;
  double seconds = 0;                   // predicted
  std::vector<std::int8_t> rails = {};  // chunk c goes over rails[c mod size] of the network; empty: over all of them
  std::vector<motif::Rule> rules = {};  // that make motifs of it; motif m goes over rails[m mod size]
};

// The `count` that the cost model finds cheapest for the call, ascending; for alltoall all that there are. At least one
// for each collective and each hierarchy of two or more ranks.
std::vector<Candidate> candidates(const Call& call, const CandidateContext& context, int count);

// What they are ordered by: a rewriting goes behind what is as quick, but for rounding.
double order_seconds(std::string_view plan, double seconds);

// The candidate that a user named: a program, with or without algorithms, and "x8" for eight chunks behind it (else the
// model's number), and "@0,1" behind that to deal the chunks out to rails 0 and 1 in turn; the text of a plan file; an
// exchange's name; or rules that rewrite the collective as motifs ("[segment:4,ring]"; "[segment:5] @0,0,0,0,1": over
// those rails in turn). Fails with what is wrong with it for this call's collective.
Result<Candidate> named_candidate(std::string_view text, const Call& call, const CandidateContext& context);

// All ranks' schedules. `root` of a collective without one is 0. Fails where the candidate does not fit the hierarchy.
Result<LoweredPlan> lower(const Candidate& candidate, Collective collective, int root, bool commutative,
                          const Hierarchy& hierarchy, const Routes& routes);
// One rank's schedule, the same as among all of them, in time and memory of its own steps. Fails (unsupported) for what
// must be lowered for all ranks at once: motifs.
struct LoweredCall {
  Collective collective;
  int root;
  bool commutative;
  const Hierarchy& hierarchy;
};
bool lowers_alone(const Candidate& candidate);
Grid grid_of(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes);
bool in_order(const LoweredCall& wanted);  // operands must be combined in the order of the ranks
Result<OwnPlan> lower_own(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes, int rank);
// Of motifs: to be run part by part. Fails (unsupported) for what is none.
Result<motif::PartedPlan> lower_in_parts(const Candidate& candidate, const Call& call, const Hierarchy& hierarchy,
                                         const Routes& routes);
// Over the usual_routes().
Result<LoweredPlan> lower(const Candidate& candidate, Collective collective, int root, bool commutative,
                          const Hierarchy& hierarchy);

}  // namespace plait::plan

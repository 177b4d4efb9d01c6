// A call as motifs (plan/motif), and what they are predicted to take.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <tuple>
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

// So many equal parts over rails of these shares, by part: each to the rail that has the least for its share.
std::vector<int> deal(std::size_t parts, const std::vector<double>& shares);

// When a motif runs, predicted: seconds from the begin of the whole.
struct MotifTime {
  const motif::Motif* motif = nullptr;  // of the rewriting
  int rail = any_rail;
  double begin = 0, end = 0;
};

struct MotifPrice {
  double latency = 0, seconds = 0;  // of which the first is the wire's alone
};

// Prices motifs on one system, and remembers what it was asked.
class MotifPricer {
 public:
  // What `context` names must outlive this.
  explicit MotifPricer(const CandidateContext& context);

  // Predicted, in the order of the motifs: of a motif its cost in a communicator of its group, by the algorithm that it
  // goes by; motifs on one rail that share a rank one after the other, but for the latency of the wire; others
  // together.
  std::vector<MotifTime> times(const motif::Rewriting& rewriting, const Call& call, std::span<const std::int8_t> rails);

  // Of one of so many bytes, or with pieces of so many, by the algorithm that it goes by; over all rails.
  MotifPrice price(const motif::Motif& motif, double bytes);

 private:
  using Key = std::tuple<Collective, bool, std::size_t, std::vector<int>>;
  class Placing;

  double whole_pattern_seconds(const motif::Motif& motif, std::size_t bytes, const Machine& machine) const;

  CandidateContext context_;
  Machine bare_;  // the machine without what each message takes of processors and ports
  std::vector<double> shares_;
  std::map<Key, MotifPrice> known_;
};
double seconds_of(std::span<const MotifTime> times);

}  // namespace plait::plan

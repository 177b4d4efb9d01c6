// What overlap costs, as the planner sees it: functions of a share of the machine, whatever they were made from
// (formulas that were fitted, measured tables). LIBRA section III, whose equations are named here.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "plan/overlap/overlap_plan.h"

namespace plait::plan {

// All times are in seconds, of one process; shares are meant by their index in `shares`.
struct OverlapModel {
  std::vector<CommunicationShare> shares;  // R: those that may be chosen; at least one
  // By share: g(b, r) / b, what computation takes with communication beside it in multiples of what it takes alone
  // (eq. 5; the same for all computation of a model, the paper's assumption 1). Positive.
  std::vector<double> slowdown;
  // p(c, r) + a: a reduction of so many bytes with computation beside it all the time. Positive and finite.
  std::function<double(double bytes, std::size_t share)> overlapped;
  // q(c, r) + a: the same with nothing beside it.
  std::function<double(double bytes, std::size_t share)> alone;
  // Seconds before a reduction of several calls begins: the ranks agree that all have posted them. The paper has none.
  double agreement = 0;
};

// What a reduction takes, fused of `several` calls or one alone.
struct ReductionTime {
  double overlapped = 0, alone = 0;
};
ReductionTime reduction_time(const OverlapModel& model, double bytes, bool several, std::size_t share);

// The model with one share only: what is planned with it has a fixed r.
OverlapModel with_share(const OverlapModel& model, std::size_t share);

// One step's backward pass. Layers without parameters have no call: their computation counts for the next one's.
struct BackwardPass {
  std::vector<double> computation;  // by call: seconds from when the last call's gradient exists until this one's does
  std::vector<double> bytes;        // by call: of its gradient; positive
  double tail = 0;                  // seconds of computation after the last gradient
  std::vector<bool> fused = {};     // by call: it stands for several of the program's; empty: none does
  double bytes_factor = 1;          // of the gradients, over those of the network that they stand for
  double total() const;             // seconds of computation
  bool is_fused(std::size_t call) const { return !fused.empty() && fused[call]; }
};

// The groups of a plan as calls of their own.
BackwardPass fused(const BackwardPass& pass, const std::vector<OverlapGroup>& groups);

// When communication of c bytes runs beside `computation` seconds' worth of computation (eq. 8 to 11).
struct OverlapStage {
  double overlapped = 0;     // f_o: until the first of the two ends
  double computation = 0;    // f_b: what computation still needs alone after that ...
  double communication = 0;  // ... or communication
  double seconds() const { return overlapped + computation + communication; }
};
OverlapStage overlap_stage(const OverlapModel& model, double bytes, double computation, std::size_t share,
                           bool several = false);

// When the reduction of a group runs, in seconds from the start of the backward pass.
struct GroupTime {
  double begin = 0, end = 0;
};
struct BackwardTime {
  double seconds = 0;      // until computation and the last reduction have ended
  double computation = 0;  // of which the pass computes, slowed down where communication runs beside it ...
  double exposed = 0;      // ... and communication runs alone
  std::vector<GroupTime> groups;
};

// The schedule of eq. 12 to 15: a group's reduction begins when its gradients exist and the group before it is done.
// Precondition: the groups' shares are of the model.
BackwardTime backward_time(const BackwardPass& pass, const std::vector<OverlapGroup>& groups,
                           const OverlapModel& model);

// The index of a share. Precondition: it is one of them.
std::size_t share_index(const OverlapModel& model, const CommunicationShare& share);

}  // namespace plait::plan

// What communication and computation take from each other on a system, as it was measured: a file that `plait overlap
// measure` writes (docs/overlap.md), with the curves that were fitted to it. LIBRA section III-A.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/machine.h"
#include "plan/overlap/overlap_model.h"

namespace plait::plan {

// The paper's r as a number: cores on a processor, thread blocks (with a duty of 1) on a GPU.
inline double resources(const CommunicationShare& share) { return share.threads * share.duty; }

// What a reduction of `bytes` costs but for the rate (eq. 3): a + c^ / x.
struct ReductionCost {
  std::size_t bytes = 0;  // c
  double startup = 0;     // a, seconds
  double moved = 0;       // c^: bytes through the busiest port, or of the slowest rank where there is no network
  std::string plan = {};  // for which this holds
};

// Times of the slowest rank, in seconds; medians.
struct ContentionSample {
  CommunicationShare share;
  std::size_t bytes = 0;              // of the reduction
  double computation = 0;             // b: of a piece of computation with nothing beside it
  double overlapped_computation = 0;  // of the same piece with the reduction beside it all the time
  double overlapped = 0;              // of the reduction with computation beside it all the time
  double alone = 0;                   // with nothing beside it
};

// g(b, r) = b / (a1 - a2 r), eq. 5.
struct SlowdownCurve {
  double a1 = 1, a2 = 0;
  double error = 0;  // mean of the samples' relative errors
  double at(const CommunicationShare& share) const { return 1 / (a1 - a2 * resources(share)); }
};
// The rate x = g1 - g2 exp(-g3 r^g4) in bytes a second, eq. 6.
struct RateCurve {
  double g1 = 0, g2 = 0, g3 = 1, g4 = 0.6;
  double error = 0;
  double at(const CommunicationShare& share) const;
};
struct ContentionFit {
  SlowdownCurve computation;  // g
  RateCurve overlapped;       // p
  RateCurve alone;            // q
};

// The same as figures of one share, in place of the curves.
struct ContentionRow {
  CommunicationShare share;
  double slowdown = 1;         // g(b, r) / b
  double overlapped_rate = 0;  // bytes a second
  double alone_rate = 0;
};

struct Contention {
  std::string system;       // name of the machine
  Fingerprint fingerprint;  // of the machine; empty: fits all
  std::string kernel;       // what computed: "memory", "compute", "mixed"
  std::string shape;        // of the job; empty: it has no name
  int nodes = 1, ranks = 1;
  double latency = 0;    // alpha of eq. 4: seconds of one message, of the machine that the plans were weighed for
  double agreement = 0;  // seconds of a reduction of two numbers with computation beside it; 0: not measured
  std::vector<ContentionSample> samples;
  std::optional<ContentionFit> fit;
  std::vector<ContentionRow> table;       // goes before the fit where it is not empty
  std::vector<ReductionCost> reductions;  // of the plans that run, ascending in bytes
};

// a and c^ of a reduction of so many bytes.
using ReductionCosts = std::function<ReductionCost(double bytes)>;
// Those of a list that is ascending in bytes and not empty: linear in between and beyond.
ReductionCosts interpolated(std::vector<ReductionCost> reductions);
// Those of a ring of so many processes (eq. 4).
ReductionCosts ring_costs(int processes, double latency);

// The shares that the samples or the table have, ascending in resources.
std::vector<CommunicationShare> known_shares(const Contention& contention);

// What an agreement of the ranks takes before a group of several calls begins: as it was measured, for other nodes in
// proportion to the start-up of a small reduction, which it is taken for where it was not measured.
double agreement_seconds(const Contention& contention, const ReductionCosts& costs);

// The functions that plans are made with, for these shares. Fails (invalid) where a curve has no positive value for a
// share, or where the file has neither table nor fit, or the table no row of a share.
Result<OverlapModel> overlap_model(const Contention& contention, const std::vector<CommunicationShare>& shares,
                                   const ReductionCosts& costs, double agreement = 0);

// Fails (invalid) with the place and what was expected there.
Result<Contention> parse_contention(std::string_view text);
std::string contention_json(const Contention& contention);
// Reads and parses a file. Fails (invalid) with its name, the place and the reason. Blocks on the disk.
Result<Contention> read_contention(const std::string& path);

}  // namespace plait::plan

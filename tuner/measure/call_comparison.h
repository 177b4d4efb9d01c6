// Times one collective call in each of several ways, in turn in this process (docs/bench.md).
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "tuner/measure/collective_calls.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// A way to run a call: by the host or by Plait.
struct Side {
  bool accelerated = false;
  std::string plan = {};  // that Plait has to take; empty: whichever it takes anyway
};

struct CompareOptions {
  double seconds = 1;    // that the batches of all sides should take together
  double nic_bytes = 0;  // that a call moves through the busiest NIC, 0 where it does not matter
  // A side that seems this many times as slow as the best is not measured beyond that first look; 0: all are.
  double hopeless = 0;
  // Each batch counts against those of the other sides that ran next to it, so that a machine whose speed changes from
  // one second to the next does not favour any.
  bool paired = false;
};

struct SideTime {
  // A call: median over the batches of the slowest rank's time; where there are no batches, a first look. Infinite
  // where the plan cannot run this call. Equal on all ranks.
  double seconds = std::numeric_limits<double>::infinity();
  int batches = 0;
  // Calls were still tried in several ways (docs/tuning.md) in so many batches that others alone make no median.
  bool on_trial = false;
  std::string plan, channels;  // of this rank's last call; "host" where Plait handed it on
};

// By side. Collective; acceleration is off afterwards, and no plan is forced if any was. `peer_failed` when a result
// was wrong, with where and by whom; `unavailable` without memory. All ranks get the same.
Result<std::vector<SideTime>> compare(MpiSession& session, const CallSpec& spec, std::span<const Side> sides,
                                      const CompareOptions& options);

// As a plan is named where it ran: one chunk is not mentioned.
std::string name_when_run(std::string plan);

}  // namespace plait::tuner

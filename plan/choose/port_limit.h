// The least time that the ports of a network leave a call, whatever the plan and whoever runs it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "plan/choose/candidate_context.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"

namespace plait::plan {

// Bytes that the busiest port must send or receive in one direction, with `ranks_behind` each port; 0 for a barrier and
// behind one port. `bytes` is counted as in CallSpec (tuner/measure/collective_calls.h), `root_port` is that of the
// root.
double port_bytes(std::span<const int> ranks_behind, int root_port, Collective collective, std::size_t bytes);

struct PortLimit {
  double seconds = 0;  // 0: no port limits it
  double bytes = 0;    // through that port: in both directions where they share its rate, and of all siblings
  std::string level;   // the ports' level, "node"
};
// The longest over the levels whose ports a message crosses, of equal segments. All communicators that share the ports
// (CandidateContext::siblings) use them at the same time. The root of a rooted collective is rank 0, or the rank whose
// port the limit is the least with.
enum class LimitsRoot : bool { rank_0, any };
PortLimit port_limit(const Call& call, const CandidateContext& context, LimitsRoot root = LimitsRoot::rank_0);

}  // namespace plait::plan

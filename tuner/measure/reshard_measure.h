// Times a resharding on the ranks of a job.
#pragma once

#include "core/status.h"
#include "tuner/measure/reshard_call.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Seconds of one execution: the median over the repetitions of the slowest rank's time from a barrier on; as many
// repetitions as fit into `seconds`, three at least, after one that is not counted. Collective; the same on all ranks.
// `peer_failed` where a rank's result was wrong; `invalid` for arguments that cannot be used.
Result<double> measure_reshard(MpiSession& session, const ReshardSpec& spec, double seconds);

}  // namespace plait::tuner

// PLAIT_TRACE: the timeline of every accelerated call and its steps, on all ranks, in one file in Chrome's trace format
// (chrome://tracing, Perfetto). A process of the trace is a rank of MPI_COMM_WORLD, its threads are communicators: the
// first row of each shows the calls, the rows below it the steps, as many as there were at once. A plan of a fused
// operator is a thread too: its first row shows the runs, then comes a row a worker, and then the messages under way;
// these events have the category "fused". Ranks on one machine share a clock; those on others are shifted so that the
// end of a last barrier falls together.
#pragma once

#include "core/config.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {

// Collective over all ranks of the job, at its end and after the last keep_trace(): rank 0 writes the file.
void finish_trace(Oob& world, const Config& config);

}  // namespace plait::runtime

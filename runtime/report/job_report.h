// PLAIT_REPORT: what was accelerated, by which plan, and what went to the host and why.
//
// Every rank counts its own calls. At MPI_Finalize the counts of all ranks come together on rank 0 of MPI_COMM_WORLD: a
// collective over n ranks was counted n times, so that the sum over the ranks divided by n is what the program called.
//
// With PLAIT_REPORT=file.html the file is a page for people (report_content.h), with any other name it holds one
// object:
//   "version"  the version of Plait, a string
//   "mpi"      the MPI library, in one line of its own words
//   "ranks"    of MPI_COMM_WORLD
//   "placement"  what `plait advise` asks for (runtime/report/placement_facts.h)
//   "advice"   a sentence, where that is worth asking
//   "saved_seconds"  less than the host MPI would have taken, as trials or a table measured it (docs/tuning.md): in the
//              calls of a rank, mean over the ranks
//   "rails"    a list, where UCX was used, of objects with the "name" of a rail and the "bytes" of data that all ranks
//   sent
//              over rails of that name
//   "overlap"  where the job had an overlap plan (PLAIT_OVERLAP, docs/overlap-run.md): "model"; "groups", a list of
//              "threads", "duty", "duty_in_use", "runs" and "bytes", of all plans; "begun_early", groups that a rank
//              waited for before they were full; "agreements"; "alone", calls by reason; "communication_seconds",
//              "hidden_seconds", "exposed_seconds". Means over the ranks.
//              With PLAIT_OVERLAP=auto each group has the "communicator_ranks" and "step_calls" of the communicators
//              whose plan it is of (else 0 ranks: the job's plan is that of all), equal plans are counted as one, and
//              "more_groups", "runs" and "bytes", are those of plans for which the list is too long; "learned" is a
//              list, those with plans first, of objects with "communicator_ranks" and "step_calls", a kind of
//              communicators (0 calls: no steps were found; 0 ranks: kinds for which the list is too long), how many
//              "communicators" of that kind have come to a verdict, in how many of them groups were formed at the
//              end ("planned"), and the "verdict" of the last one, a sentence, of those with a plan first;
//              "auto" is the first of these sentences
//   "node"     what happened within nodes, an object with
//     "segment_bytes", "largest_segment_bytes"  most bytes of shared segments at a time on any node; of one segment
//     "shared_heap_peak_bytes"  that a rank's blocks took of its shared heap (docs/memory.md)
//     "shm_collectives"  "at_once", "directly", "by_kernel", "in_stages", "on_devices": steps by their way, over all
//                        ranks
//     "single_copy_from"  "kernel", "xpmem": bytes of a copy from which on these ways were taken; null: never
//     "large_calls"  collectives of 64 KiB and more: "shared", "private", and their bytes; private where one of the
//                    first rank's buffers is
//     "advice"    a sentence, where most of the bytes were in private buffers
//   "rows"     a list, in the order of the printed table, of objects with
//     "collective"  "allreduce", "iallreduce" for the non-blocking form, "allreduce_init" for the persistent one
//     "ranks"       of the communicator (of both groups of an inter-communicator)
//     "bytes_from", "bytes_below"  the range of the call's size; both 0: no data, or a size that was not known
//     "calls"       collective calls
//     "bytes"       sum of the calls' sizes (as `payload_bytes` in plan/model/collective.h defines the size of a call)
//     "seconds"     in the call, mean over the ranks, summed over the calls; of operations that ran here without
//                   blocking, from the call to the completion
//     "plan"        the plan's name, or "host"
//     "channels"    that carried the data on any rank, e.g. "mpi,shm"; "" for the host
//     "reason"      why the host had it; "" for a plan
#pragma once

#include "core/config.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {

// Collective over all ranks of the job, at its end: rank 0 prints or writes the table. `version` of Plait. `counts`:
// what this process has counted is told by this rank, and by no other where several ranks are threads of it.
void finish_report(Oob& world, const Config& config, const char* version, bool counts = true);

}  // namespace plait::runtime

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
//   "placement"  a sentence, where another placement of the ranks on the nodes would be faster (placement_advice.h)
//   "mapping"  a list of sentences, where ranks are not bound, or dealt out unevenly (mapping_advice.h)
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
//     "arena_peak_bytes"  that a rank's blocks took of its arena (docs/memory.md)
//     "group_steps"  "at_once", "directly", "by_kernel", "in_stages": steps by their way, over all ranks
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

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/config.h"
#include "plan/model/collective.h"
#include "plugin/layer.h"

namespace plait::plugin {

enum class Form : std::uint8_t { blocking, nonblocking, persistent };

// One line of the table. Texts are interned.
struct ReportKey {
  Collective collective = Collective::barrier;
  int ranks = 0;
  int size_class = -1;
  const char* plan = "host";
  const char* channels = "";
  const char* reason = "";
  Form form = Form::blocking;
  const char* grid = "";  // text() of the communicator's grid_axes(); of none: ""
  auto operator<=>(const ReportKey&) const = default;
};

struct ReportRow {
  std::atomic<std::uint64_t> calls{0}, bytes{0}, nanoseconds{0};

  void add(std::uint64_t call_bytes, std::uint64_t call_nanoseconds) {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(call_bytes, std::memory_order_relaxed);
    nanoseconds.fetch_add(call_nanoseconds, std::memory_order_relaxed);
  }
};

// Sizes are reported in ranges of a factor of eight; -1 is the class of no data.
int size_class(std::size_t bytes);

// The row of a key; made when it is new. Thread-safe; the row lives for ever.
ReportRow& report_row(const ReportKey& key);

// What calls of this process took less than the host's would have, as a trial or a table has measured both.
// Thread-safe.
void note_saved(std::uint64_t nanoseconds);

// What a communicator's set-up found out about the links: for the advice on placement. Thread-safe.
void note_links(double network_seconds_per_byte, double ranks_per_core);

// Collective over MPI_COMM_WORLD, before the host's MPI_Finalize: rank 0 prints or writes the table.
void finish_report(const Config& config);

}  // namespace plait::plugin

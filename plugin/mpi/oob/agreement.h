// What the ranks of MPI_COMM_WORLD agree on when MPI starts: the settings, the files that the user named, and whether
// calls are taken at all.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/layer.h"
#include "runtime/job/attendance.h"
#include "runtime/job/job.h"
#include "runtime/job/overlap_setting.h"
#include "runtime/job/tuning_table.h"
#include "topo/location.h"

namespace plait::plugin {

// What each rank of MPI_COMM_WORLD tells the others at the start.
struct Introduction {
  HostId host;
  std::uint64_t machine;
  std::uint64_t fingerprint;
  std::uint64_t table;    // OwnTable::hash
  std::uint64_t overlap;  // OwnOverlapPlan::hash
  std::uint32_t disabled, reporting, tracing, concurrent;
};

// What the files that the user named say.
struct OwnFiles {
  OwnTable table;
  OwnOverlapPlan overlap;
};

// Begin, agree, and after each of them whether all ranks are well; then the job is the caller's.
class Agreement {
 public:
  // `attendance`: nullptr: this rank starts by itself. Where some ranks are absent it speaks to none; where nothing is
  // known of them it may wait for those that are, and says so. Outlives this.
  explicit Agreement(const Attendance* attendance);

  // What this rank finds by itself. `preferred` as in lifecycle.h. Reads files. Throws where memory is short.
  void begin(const std::vector<std::string>& preferred);
  // What all are told, or why every call is the host's (Job::off_reason). Collective, unless it starts by itself.
  void agree();
  // Of all ranks that agree: one that lacks memory would leave calls to the host by itself. Collective likewise.
  bool all_well(bool mine);

  Job& job() { return *job_; }
  std::unique_ptr<Job> take() { return std::move(job_); }

 private:
  const Attendance* attendance_;
  bool with_others_, all_present_;
  int rank_ = 0, ranks_ = 1;
  std::unique_ptr<Job> job_;
  OwnFiles files_;
  std::vector<Introduction> all_;  // one for each rank, this one's in all of them
};

}  // namespace plait::plugin

// What the ranks of a job agree on when it starts: the settings, the files that the user named, and whether calls are
// taken at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/job/attendance.h"
#include "runtime/job/job.h"
#include "runtime/job/overlap_setting.h"
#include "runtime/job/schedule_setting.h"
#include "runtime/job/tuning_table.h"
#include "runtime/job/world.h"
#include "runtime/layer.h"
#include "topo/location.h"

namespace plait::runtime {

// What each rank tells the others at the start.
struct Introduction {
  HostId host;
  std::uint64_t machine;
  std::uint64_t process;  // the same for ranks that are threads of one
  std::uint64_t fingerprint;
  std::uint64_t table;     // OwnTable::hash
  std::uint64_t overlap;   // OwnOverlapPlan::hash
  std::uint64_t schedule;  // OwnSchedule::hash
  std::uint32_t disabled, reporting, tracing, concurrent;
};

// What the files that the user named say.
struct OwnFiles {
  OwnTable table;
  OwnOverlapPlan overlap;
  OwnSchedule schedule;
};

// What a process's binding knows of itself and of its host.
struct BindingFacts {
  std::string version;      // Plait's: the ranks must have the same
  std::string mpi_library;  // what the host calls itself
  plan::HostKind host = plan::HostKind::mpi;
  bool concurrent = false;        // as in Job
  bool main_thread_only = false;  // likewise
};

// Begin, agree, and after each of them whether all ranks are well; then the job is the caller's.
class Agreement {
 public:
  // `attendance`: nullptr: this rank starts by itself. Where some ranks are absent, as it is known then, it speaks to
  // none; where nothing is known of them it may wait for those that are, and says so. Both outlive this.
  Agreement(World& world, const Attendance* attendance);

  // What this rank finds by itself. `preferred`: entries "PLAIT_X=value" that stand before the environment's. Reads
  // files. Throws where memory is short.
  void begin(const BindingFacts& binding, const std::vector<std::string>& preferred);
  // What all are told, or why every call is the host's (Job::off_reason). Collective, unless it starts by itself.
  void agree();
  // Of all ranks that agree: one that lacks memory would leave calls to the host by itself. Collective likewise.
  bool all_well(bool mine);

  Job& job() { return *job_; }
  // Of this rank, after begin(): for a world whose ranks exchange it themselves.
  const Introduction& introduction() const { return all_[static_cast<std::size_t>(world_.rank())]; }
  std::unique_ptr<Job> take() { return std::move(job_); }

 private:
  bool with_others() const { return attendance_ != nullptr && !attendance_->some_absent(); }

  World& world_;
  const Attendance* attendance_;
  bool all_present_;
  std::unique_ptr<Job> job_;
  OwnFiles files_;
  std::vector<Introduction> all_;  // one for each rank, this one's in all of them
};

}  // namespace plait::runtime

#include "plugin/mpi/call/lifecycle.h"

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "core/log.h"
#include "fused/ground/fused_plan.h"
#include "plait/plait.h"
#include "plugin/mpi/call/record_call.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/communicator/communicators.h"
#include "plugin/mpi/communicator/made_communicator.h"
#include "plugin/mpi/host/progress.h"
#include "plugin/mpi/host/shared_memory.h"
#include "plugin/mpi/oob/agreement.h"
#include "plugin/mpi/oob/axes.h"
#include "plugin/mpi/oob/left_requests.h"
#include "plugin/mpi/oob/mpi_oob.h"
#include "plugin/mpi/request/nonblocking.h"
#include "plugin/mpi/request/persistent.h"
#include "plugin/mpi/request/reshard.h"
#include "plugin/mpi/types/layout.h"
#include "plugin/mpi/types/mpi_caller.h"
#include "plugin/mpi/types/types.h"
#include "runtime/enforcer/schedule_counts.h"
#include "runtime/fusion/overlap_counts.h"
#include "runtime/job/job.h"
#include "runtime/progress/progress_thread.h"
#include "runtime/report/job_report.h"
#include "runtime/report/trace_file.h"
#include "runtime/trial/learned.h"
#include "tl/device/device_memory.h"
#include "tl/shm/doorbell.h"

namespace plait::plugin {
namespace {

constinit std::vector<std::string> preferred;

// A rank may wait for a connection for 5 s before it takes up another one (tl/ucx/ucx_channel.h).
constexpr std::uint64_t longest_settling_ns = 10'000'000'000;

// What the calls stand on.
void open_layers(Job& job) {
  install_caller(mpi_caller());
  job.helped = job.config.progress == "thread" || job.watches_waits();
  runtime::detail::threaded.store(job.concurrent || job.helped, std::memory_order_relaxed);
  if (job.overlaps()) OverlapCounts::instance().start();
  if (job.makes_schedule) ScheduleCounts::instance().start("own", 0);
  if (job.schedule != nullptr) ScheduleCounts::instance().start(job.schedule->step, job.schedule->seconds);
  if (job.overlap != nullptr) OverlapCounts::instance().add(*job.overlap);
  if (*job.off_reason != '\0') return;
  start_device_memory();
  start_layout();
  start_types();
  start_communicators();
  start_shared_memory(job.config, job.ranks_on_node);
}

template <class Work>
bool works(Work&& work) {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// False where memory is short, on all ranks alike where they agree: then there may be no settings at all. `attendance`:
// nullptr without an agreement.
bool start(const Attendance* attendance) {
  Agreement agreement(attendance);
  if (!agreement.all_well(works([&] { agreement.begin(preferred); }))) return false;
  const bool opened = works([&] {
    agreement.agree();
    runtime::detail::job = &agreement.job();
    open_layers(*runtime::detail::job);
  });
  const bool well = agreement.all_well(opened);
  runtime::detail::job = nullptr;
  if (!well) return false;
  runtime::detail::job = agreement.take().release();
  const bool off = *job().off_reason != '\0';
  runtime::detail::reporting.store(job().reporting, std::memory_order_relaxed);
  runtime::detail::phase.store(off ? Phase::off : Phase::open, std::memory_order_release);
  if (!off) static_cast<void>(works(start_recorder));
  if (!off) start_progress_thread(own_progress(), job().config);
  return true;
}

}  // namespace

void prefer_settings(std::vector<std::string> entries) { preferred = std::move(entries); }

// The kernel lets a process take part in fences at once while it has one thread, and after milliseconds later on.
void begin_initialisation() {
  tl::detail::join_fences();
  start_device_memory();  // MPI loads libraries, by which it is seen where they are counted
  runtime::detail::phase.store(Phase::starting, std::memory_order_release);
}

void end_initialisation(bool initialised) {
  if (initialised)
    end_initialisation(Attendance());
  else
    runtime::detail::phase.store(Phase::before, std::memory_order_release);
}

void end_initialisation(const Attendance& attendance) {
  if (start(&attendance)) return set_up_world();
  runtime::detail::phase.store(Phase::off, std::memory_order_release);
  warn("a rank has no memory for Plait; every call goes to the host MPI");
}

void start_late() {
  static constinit std::mutex starting;
  const std::scoped_lock lock(starting);
  if (phase() != Phase::before) return;
  int initialised = 0, finalised = 0;
  PMPI_Initialized(&initialised);
  PMPI_Finalized(&finalised);
  if (initialised != 0 && finalised == 0 && !start(nullptr)) throw std::bad_alloc();
}

void finish() {
  static_cast<void>(works(free_axes_groups));
  const Phase before = runtime::detail::phase.exchange(Phase::over, std::memory_order_acq_rel);
  if ((before != Phase::open && before != Phase::off) || runtime::detail::job == nullptr) return;
  stop_progress_thread();
  static_cast<void>(works(finish_recorder));
  static_cast<void>(works(fused::finish_fused_plans));
  static_cast<void>(works(finish_reshardings));
  static_cast<void>(works(finish_persistent));
  free_all_communicators();
  free_idle_requests();
  if (job().first_rank) static_cast<void>(works(write_tuning_records));
  MpiOob world = MpiOob::of_program(MPI_COMM_WORLD);
  if (job().reporting) static_cast<void>(works([&] { finish_report(world, job().config, plait_version()); }));
  if (job().tracing) static_cast<void>(works([&] { finish_trace(world, job().config); }));
  settle_left_requests(longest_settling_ns);
  if (before == Phase::off) return;
  stop_communicators();
  stop_types();
  stop_layout();
}

}  // namespace plait::plugin

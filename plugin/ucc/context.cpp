#include "plugin/ucc/context.h"

#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "core/attempt.h"
#include "core/immortal.h"
#include "core/log.h"
#include "plugin/ucc/oob/gather_oob.h"
#include "plugin/ucc/other_door.h"
#include "plugin/ucc/ucc_all_gather.h"
#include "plugin/ucc/ucc_caller.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/decide.h"
#include "runtime/job/job.h"
#include "runtime/job/world.h"
#include "runtime/progress/progress_thread.h"
#include "runtime/record/call_trace.h"
#include "runtime/report/job_report.h"
#include "runtime/report/trace_file.h"
#include "tl/device/device_memory.h"
#include "tl/shm/doorbell.h"

namespace plait::plugin {
namespace {

// What the process's first context has brought; never destroyed, as its job is not.
struct Process {
  std::mutex guard;
  int contexts = 0;
  int untold_ranks = 0;         // of a report, or a trace, that is still to be made
  Introduction introduction{};  // the first context's; says of a job that is off that it is disabled
};
constinit Process process{};

struct Teams {
  std::mutex guard;
  std::vector<Communicator*> list;
};
Teams& teams() {
  static Immortal<Teams> all;  // the process may end with teams
  return *all;
}

// At the end of the process, of which no thread is in here any more.
void keep_traces_of_teams() noexcept {
  const std::scoped_lock lock(teams().guard);
  for (Communicator* team : teams().list)
    if (is_set_up(*team) && team->team->trace != nullptr) keep_trace(std::move(team->team->trace));
}

void turn_of_wait(Progress& progress) {
  if (progress.progress() == 0) sched_yield();
}

constexpr Progress::Surroundings surroundings = {
    .turn_from_host = [](Progress& progress) { progress.progress(); },
    .turn_of_wait = turn_of_wait,
    .waits_come_here = [] { return false; },
};

// By what all ranks of a later context see, as not all have begun with the same first one.
bool all_may_run(std::span<const Introduction* const> introductions) {
  for (const Introduction* one : introductions)
    if (one == nullptr || one->disabled != 0 || one->fingerprint != introductions.front()->fingerprint) return false;
  return true;
}

// Whether no lower rank is a thread of the same process.
bool is_first_of_process(std::span<const Introduction* const> introductions, int rank) {
  for (int lower = 0; lower < rank && !introductions.empty(); ++lower) {
    const Introduction *one = introductions[static_cast<std::size_t>(lower)],
                       *own = introductions[static_cast<std::size_t>(rank)];
    if (one != nullptr && own != nullptr && one->process == own->process) return false;
  }
  return true;
}

// Some callers of UCC (Open MPI 6) never end what they have begun: the first rank then says what it has counted, for
// all of them, and shows its own time.
void tell_late() {
  if (process.untold_ranks == 0) return;
  MirrorGathering all(std::exchange(process.untold_ranks, 0)), alone(1);
  if (job().reporting)
    static_cast<void>(attempt([&]() -> Status {
      GatherOob world(all);
      finish_report(world, job().config, PLAIT_VERSION);
      return {};
    }));
  if (job().tracing) keep_traces_of_teams();
  if (job().tracing)
    static_cast<void>(attempt([&]() -> Status {
      GatherOob world(alone);
      finish_trace(world, job().config);
      return {};
    }));
}

}  // namespace

ListedTeam::ListedTeam(Communicator& team) : team_(team) {
  const std::scoped_lock lock(teams().guard);
  teams().list.push_back(&team_);
}

ListedTeam::~ListedTeam() {
  const std::scoped_lock lock(teams().guard);
  std::erase(teams().list, &team_);
}

// The ranks of a context, who have told each other all that they want to know beforehand.
class UccContext::IntroducedWorld final : public World {
 public:
  IntroducedWorld(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  bool gather_all(const void*, std::size_t bytes, void* all) override {
    if (bytes != sizeof(Introduction) || introductions.size() != static_cast<std::size_t>(ranks_)) return false;
    auto* to = static_cast<std::byte*>(all);
    for (const Introduction* one : introductions) {
      std::memcpy(to, one, bytes);
      to += bytes;
    }
    return true;
  }
  bool all_say_yes(bool mine, const std::function<void()>&) override { return mine; }

  std::span<const Introduction* const> introductions;

 private:
  const int rank_, ranks_;
};

UccContext::UccContext(const ProcessFacts& facts, const std::vector<std::string>& preferred)
    : progress(surroundings), facts_(facts) {
  tl::start_device_memory();  // UCC has loaded its components
  const std::scoped_lock lock(process.guard);
  if (++process.contexts > 1) runtime::detail::threaded.store(true, std::memory_order_relaxed);
  if (runtime::detail::job != nullptr) return;
  tl::detail::join_fences();
  world_ = std::make_unique<IntroducedWorld>(facts_.rank, facts_.ranks);
  agreement_ = std::make_unique<Agreement>(*world_, facts_.exchanges ? &attendance_ : nullptr);
  agreement_->begin({.version = PLAIT_VERSION,
                     .mpi_library = facts_.host,
                     .host = plan::HostKind::layers,
                     .concurrent = facts_.concurrent,
                     .main_thread_only = false},  // a set-up has a thread of its own
                    preferred);
  process.introduction = agreement_->introduction();
}

UccContext::~UccContext() {
  if (helped_) stop_progress_thread();
  const std::scoped_lock lock(process.guard);
  --process.contexts;
}

const Introduction& UccContext::introduction() const {
  return agreement_ != nullptr ? agreement_->introduction() : process.introduction;
}

void UccContext::stay_off(const char* reason) {
  takes_calls_ = false;
  if (facts_.rank == 0) warn(reason);
}

// One a process: where ranks are threads of one, it is the first one's. Some callers never end their context.
void UccContext::start_helper() {
  start_progress_thread(progress, job().config);
  helped_ = true;
  static_cast<void>(std::atexit(stop_progress_thread));
}

// Once for the process: what its calls stand on.
void UccContext::start() {
  tl::start_device_memory();  // the other layers' contexts have loaded theirs
  agreement_->agree();
  std::unique_ptr<Job> made = agreement_->take();
  made->helped = made->config.progress == "thread";
  if (made->helped) runtime::detail::threaded.store(true, std::memory_order_relaxed);
  runtime::detail::job = made.release();
  install_caller(ucc_caller());
  const bool off = *job().off_reason != '\0';
  runtime::detail::reporting.store(job().reporting, std::memory_order_relaxed);
  runtime::detail::phase.store(off ? Phase::off : Phase::open, std::memory_order_release);
  takes_calls_ = !off;
  if (off) process.introduction.disabled = 1;
  const bool tells = (job().reporting || job().tracing) && job().first_rank && facts_.exchanges;
  if (tells && std::atexit(tell_late) == 0) process.untold_ranks = facts_.ranks;
  if (!off && job().helped) start_helper();  // later, so that it ends before what it does is told
  agreement_.reset();
}

void UccContext::agree(std::span<const Introduction* const> introductions) {
  const std::scoped_lock lock(process.guard);
  if (facts_.concurrent) runtime::detail::threaded.store(true, std::memory_order_relaxed);
  const auto answered = [&](int rank) { return introductions[static_cast<std::size_t>(rank)] != nullptr; };
  if (facts_.exchanges) attendance_ = call_roll(facts_.ranks, answered);
  counts_ = is_first_of_process(introductions, facts_.rank);
  if (agreement_ != nullptr && runtime::detail::job == nullptr) {
    world_->introductions = introductions;
    start();
  } else {
    takes_calls_ = introductions.empty() ? phase() == Phase::open : all_may_run(introductions);
  }
  if (const char* other = other_door(); takes_calls_ && other != nullptr)
    stay_off((std::string("the calls of MPI are taken by ") + other + "; the UCC component steps aside").c_str());
}

void UccContext::report(const ucc_oob_coll_t& oob) {
  if (runtime::detail::job == nullptr || (!job().reporting && !job().tracing)) return;
  {
    const std::scoped_lock lock(process.guard);  // ranks may be threads
    process.untold_ranks = 0;
  }
  UccAllGather carrier(oob, facts_.rank, facts_.ranks);
  OwnGathering gathering(carrier);
  static_cast<void>(attempt([&]() -> Status {
    GatherOob world(gathering);
    if (Status met = world.meet("end"); !met.ok()) return met;  // what other threads count they have counted
    if (job().reporting) finish_report(world, job().config, PLAIT_VERSION, counts_);
    if (job().tracing) finish_trace(world, job().config);
    return {};
  }));
}

}  // namespace plait::plugin

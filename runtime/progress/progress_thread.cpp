#include "runtime/progress/progress_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/work_team.h"
#include "runtime/job/job.h"
#include "runtime/progress/helper_bell.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/progress_share.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

constexpr const char* thread_name = "plait-progress";

// After so many turns that moved nothing the thread sleeps in between: the program computes on the same cores. A sleep
// is short against the time of a chunk over a network, and as long as a few glances take together.
constexpr int patience = 32;
constexpr long nap_ns = 20'000;

// Holds the calling thread to the duty at hand.
class Duty {
 public:
  void keep();
  // The thread slept.
  void forget() { metering_ = false; }

 private:
  DutyMeter meter_;
  bool metering_ = false;
};

class ProgressThread {
 public:
  ProgressThread(Progress& progress, std::vector<int> units)
      : progress_(progress), units_(std::move(units)), thread_([this] { run(); }) {}
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Workers, so that there are so many threads, this one included, as far as they have processing units. One thread
  // at a time.
  void provide(int threads);

 private:
  void run();
  void sleep_until_posted();
  void work(int place);
  void pin(int place) const;
  int most_threads() const;
  bool program_progresses() const;

  Progress& progress_;            // that it turns
  const std::vector<int> units_;  // that the program may use, ascending
  std::atomic<bool> stopping_{false};
  Duty duty_;  // of the thread alone
  WorkTeam team_;
  std::vector<std::thread> workers_;
  std::thread thread_;  // last: it uses the others
};

// Empty: not known.
std::vector<int> usable_units() {
  std::vector<int> units;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return units;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) units.push_back(cpu);
  return units;
}

// To one processing unit of those that the program may use: the helper to the last, because programs fill them from the
// first on, and its workers to those before it.
void ProgressThread::pin(int place) const {
  const auto index = static_cast<std::size_t>(place);
  if (index >= units_.size()) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  CPU_SET(units_[units_.size() - 1 - index], &chosen);
  pthread_setaffinity_np(pthread_self(), sizeof chosen, &chosen);
}

std::uint64_t processor_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

// A change of the duty is to be seen soon.
void rest(std::uint64_t nanoseconds) {
  constexpr std::uint64_t longest_ns = 5'000'000;
  const timespec time{0, static_cast<long>(std::min(nanoseconds, longest_ns))};
  nanosleep(&time, nullptr);
}

// The whole core needs no clocks.
void Duty::keep() {
  const double duty = ProgressShare::instance().duty();
  if (duty >= 1) {
    metering_ = false;
    return;
  }
  if (!metering_) meter_.restart(monotonic_ns(), processor_ns());
  metering_ = true;
  if (const std::uint64_t pause_ns = meter_.rest_ns(monotonic_ns(), processor_ns(), duty); pause_ns != 0)
    rest(pause_ns);
}

ProgressThread::~ProgressThread() {
  stopping_.store(true, std::memory_order_seq_cst);
  helper_bell().ring();
  thread_.join();
  ProgressShare::instance().dismiss_team();
  team_.stop();
  for (std::thread& worker : workers_) worker.join();
}

// A program that waits in MPI moves everything on itself, and has the core to itself for it.
constexpr std::uint64_t away_ns = 100'000;
bool ProgressThread::program_progresses() const {
  return job().watches_waits() && progress_.anything_posted() && progress_.host_turns.recent(monotonic_ns());
}

void ProgressThread::run() {
  become_helper_thread();
  pthread_setname_np(pthread_self(), thread_name);
  pin(0);
  prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds: naps are to be as short as they say
  set_own_team(&team_);
  const bool may_call_host = job().concurrent;
  int fruitless = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    duty_.keep();
    if (program_progresses()) {
      rest(away_ns);
    } else if (!progress_.anything_posted()) {
      sleep_until_posted();
      duty_.forget();
      fruitless = 0;
    } else if (progress_.progress(may_call_host) != 0) {
      fruitless = 0;
    } else if (++fruitless < patience) {
      sched_yield();
    } else {
      const timespec nap{0, nap_ns};
      nanosleep(&nap, nullptr);
    }
  }
}

void ProgressThread::sleep_until_posted() {
  helper_bell().sleep_unless(
      [this] { return progress_.anything_posted() || stopping_.load(std::memory_order_seq_cst); });
}

// ---- Workers ----

void ProgressThread::work(int place) {
  pthread_setname_np(pthread_self(), ("plait-worker" + std::to_string(place)).c_str());
  pin(place);
  prctl(PR_SET_TIMERSLACK, 1UL);
  Duty duty;
  // It may save up no more than a period's credit while it sleeps.
  while (team_.work(place - 1)) duty.keep();
}

int ProgressThread::most_threads() const {
  const std::size_t units = units_.empty() ? std::max(std::thread::hardware_concurrency(), 1u) : units_.size();
  return static_cast<int>(std::min<std::size_t>(units, 1 + WorkTeam::most_workers));
}

void ProgressThread::provide(int threads) {
  const int wanted = std::min(threads, most_threads());
  const auto started = [this] { return 1 + static_cast<int>(workers_.size()); };
  if (started() >= wanted) return;
  try {
    while (started() < wanted) workers_.emplace_back([this, place = started()] { work(place); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "only %d of %d helper threads could be started", started(), wanted);
    warn(text.data());
  }
  team_.set_workers(started() - 1);
  ProgressShare::instance().set_threads(started(), &team_);
}

// Signals are the program's: none is to be handled in a thread that it does not know.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

constinit std::atomic<ProgressThread*> helper{nullptr};
constinit std::mutex changing;  // of the helper and its workers

int most_threads_of(const OverlapPlan& plan) {
  int most = 1;
  for (const OverlapGroup& group : plan.groups) most = std::max(most, group.share.threads);
  return most;
}

}  // namespace

void start_progress_thread(Progress& progress, const Config& config) {
  ProgressShare::instance().set_default_duty(config.progress_duty);
  ProgressShare::instance().set_default_threads(config.progress_threads);
  if (!job().helped) return;
  try {
    const SignalsBlocked blocked;
    helper.store(new ProgressThread(progress, usable_units()), std::memory_order_release);
    provide_helper_threads(config.progress_threads);
    if (job().overlap != nullptr) provide_helper_threads(*job().overlap);
  } catch (const std::exception&) {
    warn(helper.load() == nullptr ? "no helper thread could be started" : "not all helper threads could be started");
  }
}

// Not held while the thread is joined: it may be about to provide workers.
void stop_progress_thread() {
  ProgressThread* thread = nullptr;
  {
    const std::scoped_lock lock(changing);
    thread = helper.exchange(nullptr, std::memory_order_acq_rel);
  }
  delete thread;
}

void provide_helper_threads(int threads) {
  if (threads == 1) return;
  const std::scoped_lock lock(changing);
  ProgressThread* thread = helper.load(std::memory_order_acquire);
  if (thread == nullptr) return;
  const SignalsBlocked blocked;
  thread->provide(threads);
}

void provide_helper_threads(const OverlapPlan& plan) { provide_helper_threads(most_threads_of(plan)); }

}  // namespace plait::runtime

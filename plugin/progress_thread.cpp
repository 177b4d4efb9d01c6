#include "plugin/progress_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <thread>

#include "core/log.h"
#include "plugin/overlap_counts.h"
#include "plugin/process.h"
#include "plugin/progress.h"
#include "plugin/progress_share.h"
#include "tl/trace.h"

namespace plait {
namespace {

thread_local constinit bool is_helper = false;

constexpr const char* thread_name = "plait-progress";

// After so many turns that moved nothing the thread sleeps in between: the program computes on the same cores. A sleep
// is short against the time of a chunk over a network, and as long as a few glances take together.
constexpr int patience = 32;
constexpr long nap_ns = 20'000;

class ProgressThread {
 public:
  ProgressThread() : thread_([this] { run(); }) {}
  ~ProgressThread() {
    stopping_.store(true, std::memory_order_release);
    wake();
    thread_.join();
  }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  void wake() {
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    asleep_.store(false, std::memory_order_seq_cst);
    asleep_.notify_one();
  }

 private:
  void run();
  void sleep_until_posted();
  void keep_to_duty();

  std::atomic<bool> stopping_{false};
  std::atomic<bool> asleep_{false};
  DutyMeter meter_;  // of the thread alone, like the next one
  bool metering_ = false;
  std::thread thread_;  // last: it uses the others
};

// To one processing unit of those that the program may use: the last, because programs fill them from the first on.
void pin() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(cpu, &chosen);
    pthread_setaffinity_np(pthread_self(), sizeof chosen, &chosen);
    return;
  }
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

// A program that waits in MPI moves everything on itself, and has the core to itself for it.
constexpr std::uint64_t away_ns = 100'000;
bool program_progresses() {
  const OverlapCounts& overlap = OverlapCounts::instance();
  return overlap.started() && anything_posted() && overlap.turns.recent(monotonic_ns());
}

// The whole core needs no clocks.
void ProgressThread::keep_to_duty() {
  const double duty = ProgressDuty::instance().duty();
  if (duty >= 1) {
    metering_ = false;
    return;
  }
  if (!metering_) meter_.restart(monotonic_ns(), processor_ns());
  metering_ = true;
  if (const std::uint64_t pause_ns = meter_.rest_ns(monotonic_ns(), processor_ns(), duty); pause_ns != 0)
    rest(pause_ns);
}

void ProgressThread::run() {
  is_helper = true;
  pthread_setname_np(pthread_self(), thread_name);
  pin();
  prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds: naps are to be as short as they say
  const bool may_call_host = process().concurrent;
  int fruitless = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    keep_to_duty();
    if (program_progresses()) {
      rest(away_ns);
    } else if (!anything_posted()) {
      sleep_until_posted();
      metering_ = false;
      fruitless = 0;
    } else if (progress(may_call_host) != 0) {
      fruitless = 0;
    } else if (++fruitless < patience) {
      sched_yield();
    } else {
      const timespec nap{0, nap_ns};
      nanosleep(&nap, nullptr);
    }
  }
}

// What is posted between the look and the sleep finds `asleep_` set, and clears it.
void ProgressThread::sleep_until_posted() {
  asleep_.store(true, std::memory_order_seq_cst);
  if (anything_posted() || stopping_.load(std::memory_order_seq_cst))
    asleep_.store(false, std::memory_order_seq_cst);
  else
    asleep_.wait(true, std::memory_order_seq_cst);
}

constinit std::atomic<ProgressThread*> helper{nullptr};

}  // namespace

bool on_helper_thread() { return is_helper; }

void start_progress_thread(const Config& config) {
  ProgressDuty::instance().set_default(config.progress_duty);
  if (!process().helped) return;
  // Signals are the program's: none is to be handled in a thread that it does not know.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    helper.store(new ProgressThread, std::memory_order_release);
  } catch (const std::system_error& error) {
    warn(std::string("no helper thread could be started: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void stop_progress_thread() { delete helper.exchange(nullptr, std::memory_order_acq_rel); }

void wake_progress_thread() {
  if (ProgressThread* thread = helper.load(std::memory_order_acquire); thread != nullptr) thread->wake();
}

}  // namespace plait

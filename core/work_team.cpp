#include "core/work_team.h"

#include <algorithm>
#include <numeric>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plait {
namespace {

constexpr std::size_t cache_line = 64;

// Looks before a thread sleeps: some 10 to 50 us, about what it takes to wake one. Between the pieces of one operation
// passes less.
constexpr int patience = 1000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A library that is loaded later must not get its threads' memory from the allocator at the first look.
thread_local constinit WorkTeam* team_of_thread __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

WorkTeam* own_team() { return team_of_thread; }
void set_own_team(WorkTeam* team) { team_of_thread = team; }

void WorkTeam::set_workers(int workers) {
  workers_.store(std::clamp(workers, 0, most_workers), std::memory_order_relaxed);
}

int WorkTeam::threads() const {
  return std::clamp(wanted_.load(std::memory_order_relaxed), 1, 1 + workers_.load(std::memory_order_relaxed));
}

void WorkTeam::stop() {
  stopping_.store(true, std::memory_order_seq_cst);
  for (Seat& seat : seats_) {
    seat.asleep.store(0, std::memory_order_seq_cst);
    seat.asleep.notify_one();
  }
}

// ---- The leader ----

// What is published between a worker's last look and its sleep finds `asleep` set, or is found by it.
void WorkTeam::publish(std::uint32_t parts, Call call, const void* task) {
  call_ = call;
  task_ = task;
  parts_ = parts;
  done_.store(0, std::memory_order_relaxed);
  const int workers = std::min(threads() - 1, static_cast<int>(std::min(parts, 256u)) - 1);
  ticket_.store(std::uint64_t{++run_} << (Ticket::part_bits + Ticket::worker_bits) |
                    std::uint64_t(workers) << Ticket::part_bits | parts,
                std::memory_order_seq_cst);
  for (int place = 0; place < workers; ++place) {
    Seat& seat = seats_[static_cast<std::size_t>(place)];
    if (seat.asleep.load(std::memory_order_seq_cst) == 0) continue;
    seat.asleep.store(0, std::memory_order_seq_cst);
    seat.asleep.notify_one();
  }
}

void WorkTeam::run(std::uint32_t parts, Call call, const void* task) {
  if (parts == 0) return;
  if (parts == 1 || parts > Ticket::most_parts || threads() == 1) {
    for (std::uint32_t part = 0; part < parts; ++part) call(task, part);
    return;
  }
  WorkTeam* const own = std::exchange(team_of_thread, nullptr);  // what a part shares out is its own thread's
  publish(parts, call, task);
  std::uint32_t part = 0, own_parts = 0;
  for (; take(-1, part); ++own_parts) call(task, part);
  wait_for(parts - own_parts);
  team_of_thread = own;
}

void WorkTeam::wait_for(std::uint32_t done) {
  for (int looks = 0; looks < patience; ++looks) {
    if (done_.load(std::memory_order_acquire) == done) return;
    pause();
  }
  // A worker was kept from its core in the middle of a part.
  awaited_.store(true, std::memory_order_seq_cst);
  for (std::uint32_t now = done_.load(std::memory_order_seq_cst); now != done;
       now = done_.load(std::memory_order_seq_cst))
    done_.wait(now, std::memory_order_seq_cst);
  awaited_.store(false, std::memory_order_relaxed);
}

// ---- Parts ----

// A part that is taken belongs to the run at hand, which cannot end before it is done.
bool WorkTeam::take(int place, std::uint32_t& part) {
  Ticket ticket{ticket_.load(std::memory_order_acquire)};
  while (ticket.left() != 0 && place < ticket.workers()) {
    if (!ticket_.compare_exchange_weak(ticket.word, ticket.word - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      continue;
    part = parts_ - ticket.left();
    return true;
  }
  return false;
}

// ---- Workers ----

bool WorkTeam::work(int place) {
  std::uint32_t part = 0;
  for (int looks = 0; looks < patience; ++looks) {
    if (take(place, part)) {
      call_(task_, part);
      by_workers_.fetch_add(1, std::memory_order_relaxed);
      done_.fetch_add(1, std::memory_order_seq_cst);
      if (awaited_.load(std::memory_order_seq_cst)) done_.notify_one();
      return true;
    }
    if (stopping_.load(std::memory_order_relaxed)) return false;
    pause();
  }
  sleep(seats_[static_cast<std::size_t>(place)], place);
  return true;
}

void WorkTeam::sleep(Seat& seat, int place) {
  seat.asleep.store(1, std::memory_order_seq_cst);
  const Ticket ticket{ticket_.load(std::memory_order_seq_cst)};
  if ((ticket.left() != 0 && place < ticket.workers()) || stopping_.load(std::memory_order_seq_cst))
    seat.asleep.store(0, std::memory_order_relaxed);
  else
    seat.asleep.wait(1, std::memory_order_seq_cst);
}

// ---- Cuts ----

std::uint32_t SharedWork::parts(int threads) const {
  if (threads <= 1) return 1;
  const std::size_t even = std::size_t{parts_a_thread} * static_cast<std::size_t>(threads);
  const std::size_t most = std::max(even, bytes() / most_part_bytes);
  return static_cast<std::uint32_t>(std::clamp(bytes() / least_part_bytes, std::size_t{1}, most));
}

// At the begin of a cache line where elements fill lines, or as many elements from one as do.
std::size_t SharedWork::begin(std::uint32_t part, std::uint32_t parts) const {
  if (part == parts) return elements;
  const std::size_t whole = cache_line / std::gcd(cache_line, element_bytes);  // elements that are lines together
  const std::size_t before_line = -reinterpret_cast<std::uintptr_t>(written) % cache_line;
  const std::size_t first = before_line % element_bytes == 0 ? std::min(before_line / element_bytes, whole) : 0;
  const std::size_t even = elements / parts * part + elements % parts * part / parts;
  return even < first ? 0 : std::min(first + (even - first) / whole * whole, elements);
}

}  // namespace plait

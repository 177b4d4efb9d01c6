// Several threads for the memory work of one: a long copy or reduction is cut into parts, of which workers take what
// they come to before the thread that leads the team does.
//
// The team makes no threads. Whoever has some lets each of them call work() in a loop, and sets the team for the
// thread that leads it; copies and reductions of that thread (share_out()) then go to all of them, in this library and
// in those above it. Nothing waits for a worker that has not begun: one that sleeps, or rests, or was kept from its
// core, only lacks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace plait {

class WorkTeam {
 public:
  static constexpr int most_workers = 63;

  WorkTeam() = default;
  WorkTeam(const WorkTeam&) = delete;
  WorkTeam& operator=(const WorkTeam&) = delete;

  // ---- For any thread ----

  // How many workers there are, from place 0 on: those that call work(), or are about to.
  void set_workers(int workers);
  // How many threads share the work from the next run on, the leader included.
  void set_threads(int threads) { wanted_.store(threads, std::memory_order_relaxed); }
  int threads() const;
  // Workers leave.
  void stop();

  // ---- For the leader: one thread at a time ----

  // task(part) once for each part of [0, parts), by any of the threads; returns when all are done. What the parts wrote
  // is the leader's then, and a later release store of it covers it, but for stores that a part has to order itself.
  // Allocates nothing; a system call for each worker that sleeps, and where a worker is late with its last part.
  template <class Task>
  void run(std::uint32_t parts, Task&& task) {
    using Bare = std::remove_reference_t<Task>;
    run(
        parts, [](const void* bare, std::uint32_t part) { (*static_cast<const Bare*>(bare))(part); }, &task);
  }

  // ---- For workers ----

  // Does one part, or looks for one in vain for a while and sleeps until there may be some; false: the team was
  // stopped. A place belongs to one thread, from 0 on; a run takes the lowest ones.
  bool work(int place);

  // Of all runs, for tests and measurements: parts that workers did.
  std::uint64_t by_workers() const { return by_workers_.load(std::memory_order_relaxed); }

 private:
  using Call = void (*)(const void* task, std::uint32_t part);
  // A run at hand, in one word: its number, how many workers may take parts, and how many parts nobody has taken.
  struct Ticket {
    static constexpr unsigned part_bits = 24, worker_bits = 8;
    static constexpr std::uint32_t most_parts = (1u << part_bits) - 1;
    std::uint64_t word;
    std::uint32_t left() const { return static_cast<std::uint32_t>(word & most_parts); }
    int workers() const { return static_cast<int>(word >> part_bits & ((1u << worker_bits) - 1)); }
  };
  struct alignas(64) Seat {
    std::atomic<std::uint32_t> asleep{0};
  };

  void run(std::uint32_t parts, Call call, const void* task);
  void publish(std::uint32_t parts, Call call, const void* task);
  bool take(int place, std::uint32_t& part);
  void wait_for(std::uint32_t done);
  void sleep(Seat& seat, int place);

  // Of the run at hand: written while no part of it can be taken.
  alignas(64) Call call_ = nullptr;
  const void* task_ = nullptr;
  std::uint32_t parts_ = 0, run_ = 0;
  std::atomic<int> wanted_{1}, workers_{0};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};  // parts that workers did, of the run at hand
  std::atomic<bool> awaited_{false};                // the leader sleeps until more are
  std::atomic<std::uint64_t> by_workers_{0};
  std::array<Seat, most_workers> seats_;
};

// The team that the calling thread leads, and uses for what it shares out; nullptr, as at first: none.
WorkTeam* own_team();
void set_own_team(WorkTeam* team);
// How many threads that makes, itself included.
inline int own_threads() {
  const WorkTeam* team = own_team();
  return team == nullptr ? 1 : team->threads();
}

// Work on an array, by elements of one size.
struct SharedWork {
  std::size_t elements;
  std::size_t element_bytes;
  const void* written;  // where its first one is written: no two parts share a cache line there

  std::size_t bytes() const { return elements * element_bytes; }
  // How many parts `threads` threads take of it.
  std::uint32_t parts(int threads) const;
  // Where a part begins; of the last one's number + 1: where it ends.
  std::size_t begin(std::uint32_t part, std::uint32_t parts) const;

  // A part of fewer bytes is not worth the way to another core's caches and back. Measured (perf/kernels,
  // docs/performance.md).
  static constexpr std::size_t least_part_bytes = 64 * 1024;
  // One of more takes longer than the periods in which threads keep to their shares of cores.
  static constexpr std::size_t most_part_bytes = 512 * 1024;
  // A worker that comes late, or leaves early, is to lack for a part of its share only.
  static constexpr std::uint32_t parts_a_thread = 4;
};

// work(begin, count): those elements, in parts by the threads of the calling thread's team, else all of them at once.
// `work` runs in several threads side by side, and throws nothing.
template <class Work>
void share_out(const SharedWork& all, Work&& work) {
  WorkTeam* team = all.bytes() >= 2 * SharedWork::least_part_bytes ? own_team() : nullptr;
  const std::uint32_t parts = team == nullptr ? 1 : all.parts(team->threads());
  if (parts == 1) return work(std::size_t{0}, all.elements);
  team->run(parts, [&](std::uint32_t part) {
    const std::size_t begin = all.begin(part, parts), end = all.begin(part + 1, parts);
    if (begin != end) work(begin, end - begin);
  });
}

// memcpy by the team.
inline void shared_copy(void* to, const void* from, std::size_t bytes) {
  share_out({.elements = bytes, .element_bytes = 1, .written = to}, [&](std::size_t begin, std::size_t count) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, count);
  });
}

}  // namespace plait

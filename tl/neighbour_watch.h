// Whether a thread shares its processor with others that no count of its job's ranks shows: another job's ranks, on
// processors that neither is bound to. A thread that spins there keeps the processor from those that its own peers, or
// the other job's, wait for.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <optional>

namespace plait::tl {

// How long the calling thread has stood in line for a processor in all; nullopt: the kernel does not count it. Some
// microseconds.
std::optional<std::uint64_t> time_in_line_ns();

// The part of its time that the thread stands in line is the same whether it spins or yields: what it is told of the
// one holds for the other. Not thread-safe; threads may take turns.
class NeighbourWatch {
 public:
  using Reader = std::optional<std::uint64_t> (*)();
  explicit NeighbourWatch(Reader reader = time_in_line_ns) : reader_(reader) {}

  // By the thread that waits, as often as it likes: reads no more than once in `period_ns`.
  void look(std::uint64_t now_ns) {
    if (now_ns - since_ns_ >= period_ns) [[unlikely]]
      read(now_ns);
  }
  bool shared() const { return shared_; }

  static constexpr std::uint64_t period_ns = 20'000'000;
  static constexpr std::uint64_t shared_from = 8;   // a part of so many: interrupts and daemons take less
  static constexpr std::uint64_t alone_below = 64;  // and a neighbour that computes or yields more

 private:
  void read(std::uint64_t now_ns);

  Reader reader_;
  std::uint64_t since_ns_ = 0, in_line_ns_ = 0;  // of the last reading
  pthread_t thread_{};                           // whose it was
  bool shared_ = false;
};

}  // namespace plait::tl

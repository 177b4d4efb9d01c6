// Which of a communicator's calls the program waits for: a wait names its request only.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "runtime/execution/grouping.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Of the calls that have a number, ascending, and have not ended. Thread-safe.
class AwaitedCalls {
 public:
  AwaitedCalls();
  ~AwaitedCalls();
  AwaitedCalls(const AwaitedCalls&) = delete;
  AwaitedCalls& operator=(const AwaitedCalls&) = delete;

  // Where memory is short it is not known here, and a wait for it will not be seen.
  void add(RequestKey request, std::uint64_t number) noexcept;
  // The program waits for it, whose request is not known here.
  void note_wait_for_call(std::uint64_t number) noexcept;
  void remove(std::uint64_t number) noexcept;
  bool awaits(std::uint64_t number) const;
  bool awaits_any() const;

  // The program waits for a request: whoever knows it does from now on. A few nanoseconds where there is nobody.
  static void note_wait_for(RequestKey request) noexcept;

 private:
  struct Call {
    RequestKey request;
    std::uint64_t number;
    bool awaited;
  };
  mutable std::mutex guard_;
  std::deque<Call> calls_;
  int awaited_ = 0;  // of them
};

}  // namespace plait::runtime

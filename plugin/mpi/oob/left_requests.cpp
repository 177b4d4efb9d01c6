#include "plugin/mpi/oob/left_requests.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "tl/trace.h"

namespace plait::plugin {
namespace {

// A connection waits while its rank does something else for seconds, and is taken up within a few turns of the host's
// progress: one turn accepts it, the next reads who it is, the third completes it.
constexpr std::uint64_t take_up_ns = 20'000'000;
constexpr int take_up_turns = 100;

class LeftRequests {
 public:
  void leave(MPI_Request request) noexcept {
    const std::scoped_lock lock(mutex_);
    failed_.store(true, std::memory_order_relaxed);
    if (request == MPI_REQUEST_NULL) return;
    if (count_ == requests_.size()) drop_ended();
    if (count_ == requests_.size())
      PMPI_Request_free(&request);
    else
      requests_[count_++] = request;
  }

  void note_failure() noexcept { failed_.store(true, std::memory_order_relaxed); }

  bool settle(std::uint64_t longest_ns) noexcept {
    const std::scoped_lock lock(mutex_);
    if (!failed_.exchange(false, std::memory_order_relaxed)) return true;
    const std::uint64_t begin = tl::monotonic_ns();
    for (int turn = 0;; ++turn) {
      drop_ended();
      const std::uint64_t taken = tl::monotonic_ns() - begin;
      const bool taken_up = turn >= take_up_turns && taken >= take_up_ns;
      if ((count_ == 0 && taken_up) || taken >= std::max(longest_ns, take_up_ns)) break;
      sched_yield();
    }
    const bool all_out = count_ == 0;
    while (count_ != 0) PMPI_Request_free(&requests_[--count_]);
    return all_out;
  }

 private:
  // Turns the host's progress as well, where there is no request left.
  void drop_ended() noexcept {
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      int ended = 0;
      if (PMPI_Test(&requests_[i], &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS) ended = 1;
      if (ended == 0) requests_[kept++] = requests_[i];
    }
    count_ = kept;
  }

  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::array<MPI_Request, 256> requests_{};  // those beyond are the host's alone
  std::size_t count_ = 0;
};

constinit LeftRequests left;

}  // namespace

void leave_request(MPI_Request request) noexcept { left.leave(request); }

void note_failure() noexcept { left.note_failure(); }

bool settle_left_requests(std::uint64_t longest_ns) noexcept { return left.settle(longest_ns); }

}  // namespace plait::plugin

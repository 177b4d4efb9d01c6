// One rank of a job in one process that posts operations, as a binding does: what it calls with, and what it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/execution/communicator.h"
#include "runtime/progress/operation.h"
#include "runtime/progress/progress.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/process.h"

namespace plait::runtime {

// Numbers one after the other; and with as much of something else behind each, which must stay.
const Layout& dense_layout();
const Layout& sparse_layout();

class PostedOperation final : public Operation {
 public:
  void tell() noexcept override {
    complete.store(true, std::memory_order_release);
    told = true;
  }
  bool told = false;
  Lists kept;
};

class RankCommunicator final : public Communicator {
 public:
  // Connects by an oob of its own, at the rank's place.
  RankCommunicator(Progress& progress, InProcessJob& job, int rank, const Shape& shape);
  Result<std::unique_ptr<Team>> connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept override;
  void decline_set_up() noexcept override;
  int raise(int code) override { return code; }

 private:
  InProcessJob& job_;
  const Shape shape_;
};

// Not thread-safe, but for other ranks beside it.
class PostingRank {
 public:
  PostingRank(InProcessJob& job, int rank, const Shape& shape, std::uint64_t seed);

  // Why it could not; nothing where it is.
  std::string connect(Communicator& communicator);
  // The sum over the ranks of vectors that `sum_is_right` knows by `salt`, in a layout.
  std::unique_ptr<PostedOperation> prepare_sum(Communicator& communicator, std::size_t count, std::uint64_t salt,
                                               const Layout& layout);
  void post(Operation& operation) { progress.hand_over(operation); }
  // Some turns, as many as it draws.
  void compute();
  // Until it is complete; its error.
  int wait_for(Operation& operation);

  Progress progress;
  RankCommunicator communicator;
  std::mt19937_64 random;

 private:
  std::vector<std::unique_ptr<std::vector<std::uint64_t>>> data_;  // of operations
};

// Why the result of prepare_sum() is wrong; nothing where it is right.
std::string wrong_sum(const PostedOperation& operation, int ranks, std::uint64_t salt);

}  // namespace plait::runtime

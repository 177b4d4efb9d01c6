// Which of a schedule's operations a call is, by what MPI guarantees to be the same on all ranks: the order of a
// communicator's collectives and their sizes. Pure state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plan/step/schedule_file.h"
#include "runtime/layer.h"

namespace plait::runtime {

struct MatchedCall {
  std::uint64_t number = 0;  // plan::step::CallPiece::call
  std::uint64_t epoch = 0;   // from 1 on: of calls that follow each other in the schedule's order without a gap
  int operation = 0;
};

class CallMatcher {
 public:
  // `iterations_of_epoch`: after so many one ends; 0: it does not.
  explicit CallMatcher(std::vector<plan::step::ScheduledOperation> operations, std::uint64_t iterations_of_epoch = 0)
      : operations_(std::move(operations)), iterations_of_epoch_(iterations_of_epoch) {}

  // The program's next call. Nothing: it is none of the schedule's, or not the one that follows; the schedule's first
  // operation is looked for from then on.
  std::optional<MatchedCall> next(Collective collective, std::size_t bytes, bool blocking);
  // The program's next call is none of the schedule's.
  void leave() {
    left_ += following_ ? 1 : 0;
    expected_ = 0;
    following_ = false;
  }
  // As at the begin: what it has seen since then need not be the same on all ranks.
  void restart() {
    epoch_ = iteration_ = 0;
    expected_ = 0;
    following_ = false;
  }
  // Whether its last call was one of the schedule's.
  bool following() const { return following_; }
  // How often a call was none of the schedule's after one that was.
  std::uint64_t left() const { return left_; }

 private:
  bool fits(std::size_t operation, Collective collective, std::size_t bytes, bool blocking) const {
    const plan::step::ScheduledOperation& one = operations_[operation];
    return one.collective == collective && one.bytes == bytes && one.blocking == blocking;
  }

  std::vector<plan::step::ScheduledOperation> operations_;
  std::uint64_t iterations_of_epoch_;
  std::uint64_t epoch_ = 0, iteration_ = 0, left_ = 0;
  std::size_t expected_ = 0;
  bool following_ = false;  // the call before was one of the schedule's
};

}  // namespace plait::runtime

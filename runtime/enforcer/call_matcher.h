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
  explicit CallMatcher(std::vector<plan::step::ScheduledOperation> operations) : operations_(std::move(operations)) {}

  // The program's next call. Nothing: it is none of the schedule's, or not the one that follows; the schedule's first
  // operation is looked for from then on.
  std::optional<MatchedCall> next(Collective collective, std::size_t bytes, bool blocking);
  // The program's next call is none of the schedule's.
  void leave() {
    expected_ = 0;
    following_ = false;
  }
  // Whether its last call was one of the schedule's.
  bool following() const { return following_; }

 private:
  bool fits(std::size_t operation, Collective collective, std::size_t bytes, bool blocking) const {
    const plan::step::ScheduledOperation& one = operations_[operation];
    return one.collective == collective && one.bytes == bytes && one.blocking == blocking;
  }

  std::vector<plan::step::ScheduledOperation> operations_;
  std::uint64_t epoch_ = 0, iteration_ = 0;
  std::size_t expected_ = 0;
  bool following_ = false;  // the call before was one of the schedule's
};

}  // namespace plait::runtime

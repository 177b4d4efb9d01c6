// A small reduction by which the ranks of a team agree on what they do next, in memory of its own.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "core/reduction.h"
#include "core/status.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/request.h"
#include "runtime/job/work_memory.h"
#include "runtime/layer.h"
#include "runtime/team/schedule_cache.h"
#include "runtime/team/team.h"

namespace plait::runtime {

class Consultation {
 public:
  // Of so many numbers of 8 bytes at most. `team` and `reducer` outlive it. Throws where memory is short.
  void prepare(Team& team, std::size_t numbers, const Reducer& reducer);
  // nullptr: not prepared.
  const PreparedCall* prepared() const { return prepared_.get(); }
  // Whether the team can run it.
  bool possible() const { return prepared_ != nullptr && prepared_->accelerated; }
  bool needs_host() const { return needs_host_; }

  // One at a time. True when the answer is there; else progress() is called until it is.
  template <class Number>
  Result<bool> start(std::span<const Number> numbers, bool may_call_host) {
    static_assert(sizeof(Number) == number_bytes);
    std::memcpy(execution_.staging.buffers.base[0], numbers.data(), numbers.size_bytes());
    return runtime::start(*team_, request_, execution_, may_call_host);
  }
  Result<bool> progress(bool may_call_host) { return runtime::progress(*team_, execution_, may_call_host); }
  bool moved() const { return team_->engine.moved(); }
  template <class Number, std::size_t count>
  void answer(std::span<Number, count> numbers) const {
    static_assert(sizeof(Number) == number_bytes);
    std::memcpy(numbers.data(), execution_.staging.buffers.base[0], numbers.size_bytes());
  }

 private:
  static constexpr std::size_t number_bytes = 8;
  Team* team_ = nullptr;
  std::shared_ptr<const PreparedCall> prepared_;
  bool needs_host_ = false;
  WorkMemory memory_;
  Request request_;
  Execution execution_;
};

}  // namespace plait::runtime

// The engine's timeline: when each step started and ended.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/model/schedule.h"
#include "tl/layer.h"

namespace plait::tl {

struct StepRecord {
  std::uint64_t begin_ns;  // CLOCK_MONOTONIC
  std::uint64_t end_ns;
  std::uint64_t bytes;
  std::uint32_t call;  // running number of the collective in its communicator
  std::uint32_t step;
  std::int32_t peer;
  StepKind kind;
  ChannelKind channel;
};

// A bounded record: when it is full, later steps are counted and dropped.
class StepTrace {
 public:
  explicit StepTrace(std::size_t capacity) { records_.reserve(capacity); }
  void begin_call() { ++call_; }
  void add(StepRecord record) {
    record.call = call_;
    if (records_.size() < records_.capacity())
      records_.push_back(record);
    else
      ++dropped_;
  }
  const std::vector<StepRecord>& records() const { return records_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  std::vector<StepRecord> records_;
  std::uint32_t call_ = 0;
  std::uint64_t dropped_ = 0;
};

std::uint64_t monotonic_ns();

}  // namespace plait::tl

// Ranks in one process that make fused plans together, and their outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "fused/layer.h"
#include "runtime/reshard/members.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {

inline constexpr float poison = -7.5e29f;

// All ranks take part: they meet again as they are.
class AllMembers final : public Members {
 public:
  AllMembers(InProcessJob& party, Progress& progress, int rank, Shape shape)
      : party_(party), progress_(progress), rank_(rank), shape_(shape) {}
  Status part(bool) override {
    own_ = party_.oob(rank_);
    return {};
  }
  Oob& oob() override { return *own_; }
  std::unique_ptr<Communicator> make_communicator() override {
    return std::make_unique<RankCommunicator>(progress_, party_, rank_, shape_);
  }

 private:
  InProcessJob& party_;
  Progress& progress_;
  const int rank_;
  const Shape shape_;
  std::unique_ptr<Oob> own_;
};

enum class Where { private_memory, shared_heap };

// A rank's output, with something behind it that must stay.
class OutputMemory {
 public:
  OutputMemory(std::size_t floats, Where where) : floats_(floats), where_(where) {
    const std::size_t bytes = (floats + 16) * sizeof(float);
    data_ = static_cast<float*>(where == Where::shared_heap ? SharedHeap::instance()->allocate(bytes)
                                                            : ::operator new(bytes));
    fill();
  }
  ~OutputMemory() {
    if (where_ == Where::shared_heap)
      SharedHeap::release(data_);
    else
      ::operator delete(data_);
  }
  OutputMemory(const OutputMemory&) = delete;
  OutputMemory& operator=(const OutputMemory&) = delete;

  float* data() const { return data_; }
  void fill() { std::fill_n(data_, floats_ + 16, poison); }
  bool is_untouched() const { return poisoned(0); }
  bool is_untouched_behind() const { return poisoned(floats_); }

 private:
  bool poisoned(std::size_t from) const {
    return std::all_of(data_ + from, data_ + floats_ + 16, [](float value) { return value == poison; });
  }
  std::size_t floats_;
  Where where_;
  float* data_;
};

}  // namespace plait::fused

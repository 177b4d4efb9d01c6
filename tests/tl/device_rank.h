// Ranks of a node that are processes, each with the tests' own driver: its device memory is one that no processor may
// touch, and is handed on from process to process.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/tl/ranks.h"
#include "tests/tl/schedule_builder.h"
#include "tl/device/device_collective.h"
#include "tl/device/device_memory.h"
#include "tl/engine.h"

namespace plait::tl {

inline constexpr std::size_t device_pair_bytes = 4096;
inline constexpr int out_of_memory = 2, illegal_address = 700, not_supported = 801;

// One rank with its driver, and a channel to the others.
class DeviceRank {
 public:
  DeviceRank(int rank, SharedSegment segment, const std::vector<ShmPeer>& peers)
      : rank_(rank), ranks_(static_cast<int>(peers.size())), library_(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL)) {
    start_device_memory();
    CUcontext context = nullptr;
    call<decltype(cuInit)>("cuInit")(0);
    call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
    call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
    look_for_device_driver();
    auto made = make_shm_channel(std::move(segment), peers, rank, {});
    if (made.ok()) channel_ = std::move(*made);
    engine_ = std::make_unique<Engine>(by_kind({channel_.get()}), WaitPolicy{.yield = true});
    BoundShmCollective step{.self = rank, .members = {}, .piece_offsets = {}};
    for (int member = 0; member < ranks_; ++member) step.members.push_back(member);
    ScheduleBuilder builder(1);
    builder.collective(step, {}, {});
    question_ = builder.build();
  }

  template <class Function>
  Function* call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  std::byte* allocate(std::size_t bytes) const {
    CUdeviceptr made = 0;
    call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&made, bytes);
    return reinterpret_cast<std::byte*>(made);
  }
  std::byte* allocate_in_pool(std::size_t bytes) const {
    CUdeviceptr made = 0;
    call<decltype(cuMemAllocAsync)>("cuMemAllocAsync")(&made, bytes, nullptr);
    return reinterpret_cast<std::byte*>(made);
  }
  void release(std::byte* address) const {
    call<decltype(cuMemFree_v2)>("cuMemFree_v2")(reinterpret_cast<CUdeviceptr>(address));
  }
  template <class T = int>
  T* data(const std::byte* address) const {
    return static_cast<T*>(call<decltype(fake_cuda_data)>("fake_cuda_data")(address));
  }
  void fail(const char* function, long calls, int result) const {
    call<decltype(fake_cuda_fail)>("fake_cuda_fail")(function, calls, result);
  }
  // What rank `of` gives at place `i`.
  static int value(int of, std::size_t i) { return of * 1000 + static_cast<int>(i); }
  std::byte* numbered(std::size_t count) const {
    std::byte* made = allocate(count * sizeof(int));
    fill(made, count);
    return made;
  }
  void fill(std::byte* place, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) data(place)[i] = value(rank_, i);
  }

  Status run(const DeviceCall& call) { return run_by(collective, call); }
  // Of one of several communicators, as it were.
  Status run_by(DeviceCollective& by, DeviceCall call) {
    call.members = static_cast<std::size_t>(ranks_);
    call.self = static_cast<std::size_t>(rank_);
    if (call.driver == nullptr && (call.input != nullptr || call.output != nullptr))
      call.driver = device_of(call.input != nullptr ? call.input : call.output);
    by.start(call);
    return talk(by);
  }
  Status talk(NodeTalk& by) {
    return engine_->run(question_, {.base = {}, .flow = nullptr, .talk = &by}, nullptr, nullptr);
  }
  DeviceCall sum(std::byte* input, std::byte* output, std::size_t count) const {
    return {.kind = ShmCollectiveKind::all_reduce,
            .bytes = count * sizeof(int),
            .op = Op::sum,
            .element = Element::i32,
            .element_bytes = sizeof(int),
            .input = input,
            .output = output};
  }
  bool is_sum(const std::byte* place, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      int expected = 0;
      for (int of = 0; of < ranks_; ++of) expected += value(of, i);
      if (data(place)[i] != expected) return false;
    }
    return true;
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  DeviceCollective collective;

 private:
  int rank_, ranks_;
  void* library_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Engine> engine_;
  BoundSchedule question_;
};

// Empty, or what was wrong.
using DeviceBody = std::function<std::string(DeviceRank& rank)>;

inline int run_ranks(int ranks, const DeviceBody& body) {
  return run_processes(ranks, segment_for(ranks, device_pair_bytes),
                       [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
                         DeviceRank one(rank, std::move(segment), peers);
                         return body(one);
                       });
}

#define PLAIT_WANT(condition) \
  if (!(condition)) return std::string("not so: " #condition ", line ") + std::to_string(__LINE__)

}  // namespace plait::tl

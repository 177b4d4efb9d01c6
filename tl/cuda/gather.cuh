// An all-gather and the product of matrices that needs it (tl/device_tiles.h, DeviceGather): some blocks store this
// rank's rows where the other ranks have room for them, the others multiply; each block takes what it multiplies once
// the rows for it have come, so that none waits with a part of the product in its hands. The flags are the processor's;
// what they say is kept in the device's memory, where all blocks look first. tl/cuda/cuda_fused.h starts it.
#pragma once

#include "fused.cuh"

namespace fused {

// ---- What leaves ----

constexpr int numbers_at_once = 4;

// By all threads of a block; as many under way at once as a thread has registers for.
template <class Number>
__device__ void store_numbers(std::byte* to, const float* from, unsigned long long count) {
  const Number* source = reinterpret_cast<const Number*>(from);
  Number* target = reinterpret_cast<Number*>(to);
  for (unsigned long long first = threadIdx.x; first < count; first += numbers_at_once * block_threads) {
    Number numbers[numbers_at_once];
#pragma unroll
    for (int i = 0; i < numbers_at_once; ++i)
      if (first + i * block_threads < count) numbers[i] = __ldg(source + first + i * block_threads);
#pragma unroll
    for (int i = 0; i < numbers_at_once; ++i)
      if (first + i * block_threads < count) target[first + i * block_threads] = numbers[i];
  }
}

__device__ inline void send_rows(const DeviceGather& call, const DeviceTile& tile) {
  const unsigned long long bytes = tile.rows * tile.pitch;
  const float* from = call.inputs + tile.row * call.depth;
  if (call.vectors != 0)
    store_numbers<uint4>(tile.target, from, bytes / sizeof(uint4));
  else
    store_numbers<float>(tile.target, from, bytes / sizeof(float));
}

// ---- What has come ----

__device__ inline unsigned read_counter(const unsigned* counter) {
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

// Who reads the new value sees what this thread has seen.
__device__ inline void raise_counter(unsigned* counter, unsigned to) {
  asm volatile("red.release.gpu.max.u32 [%0], %1;" ::"l"(counter), "r"(to) : "memory");
}

// Whether a source's rows before `end` are there. By one thread of a block.
__device__ inline bool have_come(const DeviceGather& call, const DeviceSource& source, unsigned* seen, long long end) {
  if (source.flags == nullptr) return true;
  const unsigned needed = static_cast<unsigned>((end + call.slice_rows - 1) / call.slice_rows);
  const unsigned known = read_counter(seen);
  unsigned now = known;
  while (now < needed && is_told(source.flags + now, call.tiles.run)) ++now;
  if (now > known) raise_counter(seen, now);
  return now >= needed;
}

// ---- What is multiplied ----

struct Taken {
  int source;  // in their order; -1: none
  unsigned block;
};

__device__ inline long long along(long long length) { return (length + side - 1) / side; }
__device__ inline unsigned blocks_of(const DeviceGather& call, const DeviceSource& source) {
  return static_cast<unsigned>(along(source.count) * along(call.columns));
}

// A block whose rows are there. `left`: there are some whose rows are not. By one thread.
__device__ inline Taken take_ready(const DeviceGather& call, bool& left) {
  left = false;
  for (unsigned at = 0; at < call.source_count; ++at) {
    const DeviceSource source = call.sources[at];
    DeviceProgress* progress = call.progress + at;
    const unsigned blocks = blocks_of(call, source);
    for (unsigned block = read_counter(&progress->taken); block < blocks;) {
      const long long end = (block / along(call.columns) + 1) * side;
      if (!have_come(call, source, &progress->seen, end < source.count ? end : source.count)) {
        left = true;
        break;
      }
      const unsigned before = atomicCAS(&progress->taken, block, block + 1);
      if (before == block) return {static_cast<int>(at), block};
      block = before;
    }
  }
  return {-1, 0};
}

// The same, and waits for it; `waited_ns`: what the block has waited in all.
__device__ inline Taken take_block(const DeviceGather& call, unsigned long long& waited_ns) {
  unsigned long long since_ns = 0;
  for (bool left = false;;) {
    const Taken taken = take_ready(call, left);
    const unsigned long long at_ns = now_ns();
    if (since_ns != 0) waited_ns += at_ns - since_ns;
    since_ns = at_ns;
    if (taken.source >= 0 || !left || waited_ns > call.most_wait_ns) return taken;
    __nanosleep(200);
  }
}

__device__ inline void multiply_block(const DeviceGather& call, const Taken& taken, Panels& panels) {
  const DeviceSource source = call.sources[taken.source];
  const long long row = taken.block / along(call.columns) * side, column = taken.block % along(call.columns) * side;
  const float* rows = source.rows != nullptr ? source.rows : call.inputs;
  const Patch patch{column, static_cast<int>(min(static_cast<long long>(side), source.count - row)),
                    static_cast<int>(min(static_cast<long long>(side), call.columns - column))};
  float* target = call.output + (source.first + row) * call.columns + column;
  multiply_patch<false>({rows + row * call.depth, call.weights, call.depth, call.columns}, patch,
                        reinterpret_cast<std::byte*>(target), call.columns * sizeof(float), panels);
}

__device__ inline void take_blocks(const DeviceGather& call, Panels& panels) {
  __shared__ Taken shared;
  for (unsigned long long waited_ns = 0;;) {
    if (threadIdx.x == 0) shared = take_block(call, waited_ns);
    __syncthreads();
    const Taken taken = shared;
    __syncthreads();
    if (taken.source < 0) return;
    multiply_block(call, taken, panels);
  }
}

// All blocks that were taken are computed: each by a block of threads that has left.
__device__ inline void leave_blocks(const DeviceGather& call) {
  if (!leave_tiles(call.tiles)) return;
  bool left = false;
  for (unsigned at = 0; at < call.source_count; ++at)
    left = left || call.progress[at].taken < blocks_of(call, call.sources[at]);
  for (unsigned at = 0; at < call.source_count && !left; ++at) call.progress[at] = {};
  tell(call.missed, left ? call.tiles.run : 0);
}

}  // namespace fused

extern "C" __global__ void __launch_bounds__(fused::block_threads)
    plait_gather_and_multiply(const fused::DeviceGather call) {
  __shared__ fused::Panels panels;
  if (blockIdx.x % fused::device_senders_one_in == 0)
    fused::take_tiles(call.tiles, [&](const fused::DeviceTile& tile) { fused::send_rows(call, tile); });
  fused::take_blocks(call, panels);
  fused::leave_blocks(call);
}

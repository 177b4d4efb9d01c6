// The kernels of fused operators (tl/cuda/fused.cuh, tl/cuda/gather.cuh), as functions of the host: the same logical
// workgroups, which several threads take in a drawn order, so that nothing depends on who is first but the flags.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_cuda/state.h"
#include "tl/device_tiles.h"

namespace fake {
namespace {

using namespace plait::tl;

constexpr unsigned workgroups = 3;

CUdeviceptr address_of(const void* place) { return reinterpret_cast<CUdeviceptr>(place); }

// Where the processor finds `count` of them; nullptr: the device does not reach them all, or not so.
template <class T>
T* found(T* place, std::uint64_t count, std::uint64_t unit = alignof(T)) {
  if (!is_reached(address_of(place), count * sizeof(T), unit)) return nullptr;
  return reinterpret_cast<T*>(reach(address_of(place)));
}

std::size_t bytes_of(DeviceRows type) { return type == DeviceRows::f32 ? 4 : type == DeviceRows::bf16 ? 2 : 1; }

float number(const std::byte* row, std::int64_t at, DeviceRows type) {
  if (type == DeviceRows::i8) return static_cast<float>(static_cast<std::int8_t>(row[at]));
  if (type == DeviceRows::bf16) {
    std::uint16_t half;
    std::memcpy(&half, row + at * 2, sizeof half);
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
  float whole;
  std::memcpy(&whole, row + at * 4, sizeof whole);
  return whole;
}

// All of a kernel's workgroups. `compute` returns whether the device reaches all that a tile needs.
class Workgroups {
 public:
  explicit Workgroups(const DeviceTiles& all) : all_(all) {}

  template <class Compute>
  CUresult run(Compute&& compute) {
    return run(workgroups, compute, [] {});
  }
  // `add`: a share.
  template <class Compute, class Add>
  CUresult run(Compute&& compute, Add&& add) {
    return run(workgroups, compute, [&] { add_shares(add); });
  }
  // So many workgroups take tiles; `follow` is what each does then.
  template <class Compute, class Follow>
  CUresult run(unsigned senders, Compute&& compute, Follow&& follow) {
    const CUresult result = count("execution");
    late_ = count("parts in time") != success;
    tiles_ = found(all_.tiles, all_.count);
    if ((tiles_ == nullptr && all_.count > 0) || !line_up()) return illegal_address;
    // A device that breaks down has done a part.
    if (result != success) order_.resize(order_.size() / 2);
    std::vector<std::thread> threads;
    for (unsigned group = 0; group < workgroups; ++group)
      threads.emplace_back([&, sends = group < senders] {
        if (sends) serve(compute);
        if (result == success) follow();
      });
    for (std::thread& thread : threads) thread.join();
    if (wrong_.load()) return illegal_address;
    if (result == success) std::fill_n(counters_, tile_counters, 0u);
    return result;
  }

  bool is_late() const { return late_; }
  void fail() { wrong_.store(true); }
  // Where many share the processor, ranks are late. FAKE_CUDA_PATIENCE: times that a kernel may wait.
  static std::chrono::nanoseconds patience() {
    const char* text = std::getenv("FAKE_CUDA_PATIENCE");
    return std::chrono::nanoseconds(text != nullptr ? std::atol(text) : 1);
  }

 private:
  bool line_up() {
    std::uint32_t slices = 0;
    for (std::uint32_t at = 0; at < all_.count; ++at) slices = std::max(slices, tiles_[at].slice + 1);
    slices_ = found(all_.slices, slices);
    counters_ = found(all_.counters, tile_counters + slices);
    if ((slices_ == nullptr && slices > 0) || counters_ == nullptr) return false;
    for (std::size_t at = 0; at < tile_counters + slices; ++at)
      if (counters_[at] != 0) return false;
    order_.resize(all_.count);
    std::iota(order_.begin(), order_.end(), 0u);
    std::shuffle(order_.begin(), order_.end(), std::mt19937(++driver().dice));
    return true;
  }

  template <class Compute>
  void serve(Compute&& compute) {
    for (std::uint32_t turn = 0; (turn = std::atomic_ref(counters_[0]).fetch_add(1)) < order_.size();) {
      const DeviceTile& tile = tiles_[order_[turn]];
      if (!compute(tile) || !end_tile(tile.slice)) wrong_.store(true);
      if (turn % 3 == 0) std::this_thread::yield();
    }
  }

  // Behind the tiles; no longer than it may.
  template <class Add>
  void add_shares(Add&& add) {
    const DeviceShares& shares = all_.shares;
    const auto until = std::chrono::steady_clock::now() + patience() * shares.most_wait_ns;
    std::atomic_ref next(counters_[2]);
    for (std::uint32_t at = 0; shares.count > 0 && (at = next.fetch_add(1)) < shares.count;) {
      const DeviceTile& tile = tiles_[shares.first + at];
      switch (wait_for_parts(tile.slice - shares.first_slice, until)) {
        case Parts::there:
          if (!add(tile)) wrong_.store(true);
          break;
        case Parts::missing:
          if (std::uint32_t* missed = found(shares.missed, 1); missed != nullptr)
            std::atomic_ref(*missed).store(all_.run, std::memory_order_release);
          return;
        case Parts::unreachable:
          wrong_.store(true);
          return;
      }
    }
  }

  enum class Parts { there, missing, unreachable };
  template <class Time>
  Parts wait_for_parts(std::uint32_t slice, Time until) const {
    if (late_) return Parts::missing;
    for (std::uint32_t source = 0; source < all_.shares.sources; ++source) {
      auto* const* flags = found(all_.shares.flags + source, 1);
      auto* flag = flags != nullptr ? found(const_cast<std::uint32_t*>(*flags) + slice, 1) : nullptr;
      if (flag == nullptr) return Parts::unreachable;
      while (std::atomic_ref(*flag).load(std::memory_order_acquire) != all_.run) {
        if (std::chrono::steady_clock::now() > until) return Parts::missing;
        std::this_thread::yield();
      }
    }
    return Parts::there;
  }

  bool end_tile(std::uint32_t slice) {
    const DeviceSlice& of = slices_[slice];
    std::atomic_ref<std::uint32_t> done(counters_[tile_counters + slice]);
    if (done.fetch_add(1, std::memory_order_acq_rel) + 1 != of.tiles) return true;
    done.store(0, std::memory_order_relaxed);
    if (of.flag == nullptr) return true;
    std::uint32_t* flag = found(of.flag, 1);
    // Its own, of which only the kernel hears, are the device's.
    const bool is_hosts = flag != nullptr && find(address_of(of.flag))->second.type == type_host;
    if (flag == nullptr || (!is_hosts && all_.shares.count == 0)) return false;
    std::atomic_ref(*flag).store(all_.run, std::memory_order_release);
    return true;
  }

  const DeviceTiles& all_;
  const DeviceTile* tiles_ = nullptr;
  const DeviceSlice* slices_ = nullptr;
  std::uint32_t* counters_ = nullptr;
  std::vector<std::uint32_t> order_;
  std::atomic<bool> wrong_{false};
  bool late_ = false;  // parts of sums, whatever has come
};

constexpr std::uint64_t fused_vector_bytes = 16;
std::uint64_t unit_of(std::uint32_t vectors, std::uint64_t otherwise) {
  return vectors != 0 ? fused_vector_bytes : otherwise;
}

// ---- Sums of rows ----

bool pool_bag(const DevicePooling& call, const DeviceTable& table, const std::int64_t* bounds, std::byte* cells) {
  std::vector<float> sums(static_cast<std::size_t>(call.columns));
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(call.columns) * bytes_of(call.type);
  for (std::int64_t at = bounds[0]; at < bounds[1]; ++at) {
    const std::int64_t* index = found(call.indices + at, 1);
    if (index == nullptr) return false;
    const std::byte* row = table.rows + static_cast<std::uint64_t>(*index) * row_bytes;
    const std::byte* numbers = found(row, row_bytes, unit_of(call.vectors, bytes_of(call.type)));
    const float* weight = call.weights != nullptr ? found(call.weights + at, 1) : nullptr;
    const float* scale = call.type == DeviceRows::i8 ? found(table.scales + *index, 1) : nullptr;
    if (numbers == nullptr || (call.weights != nullptr) != (weight != nullptr)) return false;
    if ((call.type == DeviceRows::i8) != (scale != nullptr)) return false;
    const float factor = (weight != nullptr ? *weight : 1) * (scale != nullptr ? *scale : 1);
    for (std::int64_t column = 0; column < call.columns; ++column)
      sums[static_cast<std::size_t>(column)] += factor * number(numbers, column, call.type);
  }
  if (call.mean != 0 && bounds[1] > bounds[0])
    for (float& sum : sums) sum *= 1.0f / static_cast<float>(bounds[1] - bounds[0]);
  std::memcpy(cells, sums.data(), sums.size() * sizeof(float));
  return true;
}

CUresult pool(const DevicePooling& call) {
  return Workgroups(call.tiles).run([&](const DeviceTile& tile) {
    const DeviceTable* table = found(call.tables + tile.column, 1);
    const std::int64_t* offsets =
        found(call.offsets + tile.column * call.batch + tile.row, static_cast<std::uint64_t>(tile.rows) + 1);
    if (table == nullptr || offsets == nullptr || tile.columns != 1) return false;
    const std::uint64_t cell_bytes = static_cast<std::uint64_t>(call.columns) * sizeof(float);
    for (std::int32_t bag = 0; bag < tile.rows; ++bag) {
      std::byte* cells = found(tile.target + static_cast<std::uint64_t>(bag) * tile.pitch, cell_bytes,
                               unit_of(call.vectors, sizeof(float)));
      if (cells == nullptr || !pool_bag(call, *table, offsets + bag, cells)) return false;
    }
    return true;
  });
}

// ---- Rows times vectors ----

// The parts of all ranks, in their order.
bool add_cell(const DeviceShares& shares, const DeviceTile& tile, std::int32_t row, std::uint32_t column) {
  const std::byte* first = tile.target - shares.self * shares.part_bytes + column * tile.pitch;
  float sum = 0;
  for (std::uint32_t source = 0; source < shares.sources; ++source) {
    const float* part = found(reinterpret_cast<const float*>(first + source * shares.part_bytes) + row, 1);
    if (part == nullptr) return false;
    sum = source == 0 ? *part : sum + *part;
  }
  for (std::uint32_t output = 0; output < shares.output_count; ++output) {
    std::byte* const* base = found(shares.outputs + output, 1);
    float* cell = base != nullptr
                      ? found(reinterpret_cast<float*>(*base + column * shares.output_pitch) + tile.row + row, 1)
                      : nullptr;
    if (cell == nullptr) return false;
    *cell = sum;
  }
  return true;
}

CUresult multiply_rows(const DeviceProducts& call) {
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(call.depth) * bytes_of(call.type);
  const auto depth = static_cast<std::uint64_t>(call.depth);
  const float* inputs = found(call.inputs, depth * call.columns, unit_of(call.vectors, sizeof(float)));
  if (inputs == nullptr && depth > 0) return illegal_address;
  const auto multiply = [&](const DeviceTile& tile) {
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      const std::byte* weights = found(call.weights + static_cast<std::uint64_t>(tile.row + row) * row_bytes, row_bytes,
                                       unit_of(call.vectors, bytes_of(call.type)));
      const float* scale = call.type == DeviceRows::i8 ? found(call.scales + tile.row + row, 1) : nullptr;
      if ((weights == nullptr && depth > 0) || (call.type == DeviceRows::i8) != (scale != nullptr)) return false;
      for (std::uint32_t column = 0; column < call.columns; ++column) {
        float sum = 0;
        for (std::uint64_t at = 0; at < depth; ++at)
          sum += number(weights, static_cast<std::int64_t>(at), call.type) * inputs[column * depth + at];
        auto* cell = found(reinterpret_cast<float*>(tile.target + column * tile.pitch) + row, 1);
        if (cell == nullptr) return false;
        *cell = scale != nullptr ? sum * *scale : sum;
      }
    }
    return true;
  };
  return Workgroups(call.tiles).run(multiply, [&](const DeviceTile& tile) {
    for (std::uint32_t column = 0; column < call.columns; ++column)
      for (std::int32_t row = 0; row < tile.rows; ++row)
        if (!add_cell(call.tiles.shares, tile, row, column)) return false;
    return true;
  });
}

// ---- Products of matrices ----

CUresult multiply_matrices(const DeviceMatrices& call) {
  return Workgroups(call.tiles).run([&](const DeviceTile& tile) {
    const auto depth = static_cast<std::uint64_t>(call.depth), columns = static_cast<std::uint64_t>(call.columns);
    const float* const* matrix = found(call.weights + tile.matrix, 1);
    if (matrix == nullptr) return false;
    const float* weights = depth > 0 ? found(*matrix, depth * columns) : nullptr;
    if (weights == nullptr && depth > 0) return false;
    for (std::int32_t row = 0; row < tile.rows; ++row) {
      const float* inputs = found(call.inputs + static_cast<std::uint64_t>(tile.row + row) * depth, depth);
      float* cells = found(reinterpret_cast<float*>(tile.target + static_cast<std::uint64_t>(row) * tile.pitch),
                           static_cast<std::uint64_t>(tile.columns));
      if (cells == nullptr || (inputs == nullptr && depth > 0)) return false;
      for (std::int32_t column = 0; column < tile.columns; ++column) {
        float sum = 0;
        for (std::uint64_t at = 0; at < depth; ++at)
          sum += inputs[at] * weights[at * columns + static_cast<std::uint64_t>(tile.column + column)];
        cells[column] = sum;
      }
    }
    return true;
  });
}

// ---- Rows that come, and their product ----

// What the workgroups of a call take besides tiles.
class Arrivals {
 public:
  explicit Arrivals(const DeviceGather& call) : call_(call) {}

  bool find_all() {
    sources_ = found(call_.sources, call_.source_count);
    progress_ = found(call_.progress, call_.source_count);
    missed_ = found(call_.missed, 1);
    return sources_ != nullptr && progress_ != nullptr && missed_ != nullptr;
  }
  void follow(Workgroups& groups) {
    const auto until = std::chrono::steady_clock::now() + Workgroups::patience() * call_.most_wait_ns;
    for (;;) {
      bool left = false;
      const auto [at, block] = take_ready(groups, left);
      if (at < call_.source_count) {
        if (!multiply(sources_[at], block)) groups.fail();
      } else if (!left || std::chrono::steady_clock::now() > until) {
        return;
      }
      std::this_thread::yield();
    }
  }
  void leave() {
    bool left = false;
    for (std::uint32_t at = 0; at < call_.source_count; ++at)
      left = left || progress_[at].taken < blocks_of(sources_[at]);
    if (!left) std::fill_n(progress_, call_.source_count, DeviceProgress{});
    std::atomic_ref(*missed_).store(left ? call_.tiles.run : 0, std::memory_order_release);
  }

 private:
  std::uint32_t blocks_of(const DeviceSource& source) const {
    return static_cast<std::uint32_t>(device_blocks_along(source.count) * device_blocks_along(call_.columns));
  }
  // A block's source and number; no source: none is ready.
  std::pair<std::uint32_t, std::uint32_t> take_ready(Workgroups& groups, bool& left) {
    for (std::uint32_t at = 0; at < call_.source_count; ++at) {
      std::atomic_ref taken(progress_[at].taken);
      for (std::uint32_t block = taken.load(); block < blocks_of(sources_[at]);) {
        const std::int64_t row = block / device_blocks_along(call_.columns) * device_block_side;
        if (!have_come(groups, at, std::min(row + device_block_side, sources_[at].count))) {
          left = true;
          break;
        }
        if (taken.compare_exchange_strong(block, block + 1)) return {at, block};
      }
    }
    return {call_.source_count, 0};
  }
  bool have_come(Workgroups& groups, std::uint32_t at, std::int64_t end) {
    const DeviceSource& source = sources_[at];
    if (source.flags == nullptr) return true;
    if (groups.is_late() && call_.tiles.count > 0) return false;  // the kernel behind comes when all is there
    for (std::int64_t slice = 0; slice * call_.slice_rows < end; ++slice) {
      auto* flag = found(const_cast<std::uint32_t*>(source.flags) + slice, 1);
      if (flag == nullptr) return groups.fail(), false;
      if (std::atomic_ref(*flag).load(std::memory_order_acquire) != call_.tiles.run) return false;
    }
    return true;
  }
  bool multiply(const DeviceSource& source, std::uint32_t block) {
    const std::int64_t across = device_blocks_along(call_.columns), depth = call_.depth;
    const std::int64_t first = block / across * device_block_side, left = block % across * device_block_side;
    const std::int64_t end = std::min<std::int64_t>(first + device_block_side, source.count);
    const std::int64_t right = std::min<std::int64_t>(left + device_block_side, call_.columns);
    const float* weights = found(call_.weights, static_cast<std::uint64_t>(depth * call_.columns));
    const float* inputs = source.rows != nullptr ? source.rows : call_.inputs;
    for (std::int64_t row = first; row < end; ++row) {
      const float* numbers = found(inputs + row * depth, static_cast<std::uint64_t>(depth));
      float* cells =
          found(call_.output + (source.first + row) * call_.columns + left, static_cast<std::uint64_t>(right - left));
      if (numbers == nullptr || weights == nullptr || cells == nullptr) return false;
      for (std::int64_t column = left; column < right; ++column) {
        float sum = 0;
        for (std::int64_t at = 0; at < depth; ++at) sum += numbers[at] * weights[at * call_.columns + column];
        cells[column - left] = sum;
      }
    }
    return true;
  }

  const DeviceGather& call_;
  const DeviceSource* sources_ = nullptr;
  DeviceProgress* progress_ = nullptr;
  std::uint32_t* missed_ = nullptr;
};

// One workgroup sends, as one does of some on a device.
CUresult gather_and_multiply(const DeviceGather& call) {
  Workgroups groups(call.tiles);
  Arrivals arrivals(call);
  if (!arrivals.find_all()) return illegal_address;
  const auto send = [&](const DeviceTile& tile) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(tile.rows) * tile.pitch,
                        unit = unit_of(call.vectors, sizeof(float));
    const std::byte* from = found(reinterpret_cast<const std::byte*>(call.inputs + tile.row * call.depth), bytes, unit);
    std::byte* to = found(tile.target, bytes, unit);
    if (from == nullptr || to == nullptr) return false;
    std::memcpy(to, from, bytes);
    return true;
  };
  const CUresult result = groups.run(1, send, [&] { arrivals.follow(groups); });
  if (result == success) arrivals.leave();
  return result;
}

// ---- Whether lookups are right ----

CUresult check_lookups(const DeviceLookups& call) {
  const std::int64_t bags = call.table_count * call.batch;
  const std::int64_t* offsets = found(call.offsets, static_cast<std::uint64_t>(bags) + 1);
  std::uint32_t* wrong = found(call.wrong, 1);
  if (offsets == nullptr || wrong == nullptr) return illegal_address;
  for (std::int64_t bag = 0; bag < bags; ++bag) {
    const std::int64_t begin = offsets[bag], end = offsets[bag + 1];
    const DeviceTable* table = found(call.tables + bag / call.batch, 1);
    if (table == nullptr) return illegal_address;
    bool right = begin >= 0 && end >= begin && end <= call.count;
    for (std::int64_t at = begin; right && at < end; ++at) {
      const std::int64_t* index = found(call.indices + at, 1);
      if (index == nullptr) return illegal_address;
      right = *index >= 0 && *index < table->count;
    }
    if (!right) *wrong = 1;
  }
  return count("execution");
}

template <class Call, CUresult (*run)(const Call&)>
CUresult start(void** parameters, CUstream stream) {
  Call call;
  std::memcpy(&call, parameters[0], sizeof call);
  give(stream, Engine::none, 0, [call] { return run(call); });
  return success;
}

struct Named {
  std::string_view name;
  CUfunc_st function;
};
std::array<Named, 9> fused_functions{{
    {"plait_pool_f32", {.kind = CUfunc_st::Kind::tiles, .start = start<DevicePooling, pool>}},
    {"plait_pool_bf16", {.kind = CUfunc_st::Kind::tiles, .start = start<DevicePooling, pool>}},
    {"plait_pool_i8", {.kind = CUfunc_st::Kind::tiles, .start = start<DevicePooling, pool>}},
    {"plait_multiply_f32", {.kind = CUfunc_st::Kind::tiles, .start = start<DeviceProducts, multiply_rows>}},
    {"plait_multiply_bf16", {.kind = CUfunc_st::Kind::tiles, .start = start<DeviceProducts, multiply_rows>}},
    {"plait_multiply_i8", {.kind = CUfunc_st::Kind::tiles, .start = start<DeviceProducts, multiply_rows>}},
    {"plait_multiply_matrices", {.kind = CUfunc_st::Kind::tiles, .start = start<DeviceMatrices, multiply_matrices>}},
    {"plait_gather_and_multiply", {.kind = CUfunc_st::Kind::tiles, .start = start<DeviceGather, gather_and_multiply>}},
    {"plait_check_lookups", {.kind = CUfunc_st::Kind::tiles, .start = start<DeviceLookups, check_lookups>}},
}};

}  // namespace

CUfunction fused_function(std::string_view name) {
  for (Named& one : fused_functions)
    if (one.name == name) return &one.function;
  return nullptr;
}

}  // namespace fake

#include "runtime/device/pinned_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

#include "core/immortal.h"
#include "core/log.h"
#include "tl/shm/shared_heap.h"

namespace plait::runtime {
namespace {

using Block = PinnedMemory::Block;

constexpr std::size_t smallest = std::size_t{64} << 10;
// Blocks of one size class differ by an eighth at most, so that little of a large one is left over.
constexpr std::size_t parts_of_a_class = 8;
constexpr std::size_t most_kept_bytes = std::size_t{1} << 30;

struct Pool {
  std::mutex guard;
  std::vector<Block> idle;
  std::size_t kept_bytes = 0;
};
Pool& pool() {
  static Immortal<Pool> made;  // blocks come back until the process ends
  return *made;
}

std::size_t class_of(std::size_t bytes) {
  const std::size_t least = std::max(bytes, smallest);
  const std::size_t part = std::max(std::bit_floor(least) / parts_of_a_class, SharedHeap::page_bytes);
  return (least + part - 1) / part * part;
}

// The pages are not there yet, or are moved. A system that refuses leaves them where they are.
void place_on(int node, std::byte* data, std::size_t bytes) {
  constexpr int preferred = 1;
  constexpr unsigned move = 2;
  constexpr int most_nodes = 64;
  if (node < 0 || node >= most_nodes) return;
  const unsigned long mask = 1ul << node;
  syscall(SYS_mbind, data, bytes, preferred, &mask, most_nodes + 1, move);
}

std::byte* map(std::size_t bytes, bool& shared) {
  if (SharedHeap* heap = SharedHeap::instance(); heap != nullptr)
    if (void* data = heap->allocate(bytes); data != nullptr) {
      shared = true;
      return static_cast<std::byte*>(data);
    }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

void unmap(const Block& block) {
  if (block.pinned) block.driver->unpin(block.data);
  if (block.shared)
    SharedHeap::release(block.data);
  else
    munmap(block.data, block.bytes);
}

void say_once(const Status& refused) {
  static constinit std::atomic<bool> said{false};
  if (!said.exchange(true)) warn("device memory: " + refused.message() + ": copies are slower");
}

Block make(std::size_t bytes, const DeviceDriver& driver, int node) {
  Block block{.bytes = bytes, .driver = &driver, .node = node};
  block.data = map(bytes, block.shared);
  if (block.data == nullptr) throw std::bad_alloc();
  place_on(node, block.data, bytes);
  const Status pinned = driver.pin(block.data, bytes);
  block.pinned = pinned.ok();
  if (!pinned.ok() && pinned.code() != Code::unsupported) say_once(pinned);
  return block;
}

// The smallest that is large enough, and not much larger.
bool take_idle(std::size_t bytes, const DeviceDriver& driver, int node, Block& block) {
  const std::scoped_lock lock(pool().guard);
  std::vector<Block>& idle = pool().idle;
  auto best = idle.end();
  for (auto one = idle.begin(); one != idle.end(); ++one)
    if (one->driver == &driver && one->node == node && one->bytes >= bytes && one->bytes / 4 <= bytes &&
        (best == idle.end() || one->bytes < best->bytes))
      best = one;
  if (best == idle.end()) return false;
  block = *best;
  pool().kept_bytes -= block.bytes;
  *best = idle.back();
  idle.pop_back();
  return true;
}

bool keep(const Block& block) {
  const std::scoped_lock lock(pool().guard);
  if (pool().kept_bytes + block.bytes > most_kept_bytes) return false;
  pool().idle.push_back(block);
  pool().kept_bytes += block.bytes;
  return true;
}

}  // namespace

std::byte* PinnedMemory::reserve(std::size_t bytes, const DeviceDriver& driver, const tl::DeviceMemory& near) {
  if (block_.bytes >= bytes && block_.driver == &driver) return block_.data;
  give_back();
  const int node = driver.near_node(near);
  const std::size_t wanted = class_of(bytes);
  if (!take_idle(wanted, driver, node, block_)) block_ = make(wanted, driver, node);
  return block_.data;
}

void PinnedMemory::give_back() noexcept {
  const Block block = std::exchange(block_, {});
  if (block.data == nullptr) return;
  try {
    if (keep(block)) return;
  } catch (const std::bad_alloc&) {
  }
  unmap(block);
}

}  // namespace plait::runtime

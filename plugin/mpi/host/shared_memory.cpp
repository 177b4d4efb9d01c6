#include "plugin/mpi/host/shared_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/log.h"
#include "core/units.h"
#include "plait/plait.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "tl/shm/shared_heap.h"

namespace plait::plugin {
namespace {

// A process maps the shared heaps of all ranks of its node: together no more than half of the 2^47 bytes that an
// address space has.
constexpr std::size_t mapped_bytes = std::size_t{1} << 46;

constinit ForkRegistration fork_registration = pthread_atfork;

// ---- The info of MPI_Alloc_mem ----

constexpr const char* alignment_key = "mpi_minimum_memory_alignment";  // MPI-4

struct Wishes {
  std::size_t alignment = SharedHeap::page_bytes;
  bool known = true;  // the info says nothing else
};

Wishes read_wishes(MPI_Info info) {
  Wishes wishes;
  int keys = 0, found = 0;
  if (info == MPI_INFO_NULL || PMPI_Info_get_nkeys(info, &keys) != MPI_SUCCESS || keys == 0) return wishes;
  std::array<char, 32> text{};
  PMPI_Info_get(info, alignment_key, static_cast<int>(text.size()) - 1, text.data(), &found);
  if (found != 0) {
    const std::size_t length = std::strlen(text.data());
    const auto [rest, error] = std::from_chars(text.data(), text.data() + length, wishes.alignment);
    wishes.known = error == std::errc() && rest == text.data() + length && std::has_single_bit(wishes.alignment);
  }
  wishes.known = wishes.known && keys == (found != 0 ? 1 : 0);
  return wishes;
}

// nullptr also where there is no memory to keep its record in.
void* block_of(SharedHeap& shared_heap, std::size_t bytes, std::size_t alignment) noexcept {
  try {
    return shared_heap.allocate(bytes, alignment);
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

void register_fork_by(ForkRegistration registration) { fork_registration = registration; }

void start_shared_memory(const Config& config, int ranks_on_node) {
  if (config.shared == "none") return;
  const std::size_t share = mapped_bytes / static_cast<std::size_t>(std::max(ranks_on_node, 1));
  const Status made =
      SharedHeap::create({.bytes = config.shared_heap_bytes, .most = share, .register_fork = fork_registration});
  if (made.ok()) return;
  const std::string text = "memory stays private: " + made.message();
  if (config.shared == "malloc")
    warn("PLAIT_SHARED=malloc: " + text);
  else
    info(text);
}

// What the host must check, or knows better, goes to it: wrong arguments, other infos, a full shared heap.
int binding::alloc_mem(MPI_Aint size, MPI_Info info, void* base) {
  SharedHeap* shared_heap = SharedHeap::instance();
  if (shared_heap == nullptr || size <= 0 || base == nullptr) return host().alloc_mem(size, info, base);
  const Wishes wishes = read_wishes(info);
  void* block = wishes.known ? block_of(*shared_heap, static_cast<std::size_t>(size), wishes.alignment) : nullptr;
  if (block == nullptr) return host().alloc_mem(size, info, base);
  std::memcpy(base, &block, sizeof block);
  return MPI_SUCCESS;
}

int binding::free_mem(void* base) {
  if (!SharedHeap::contains(base)) return host().free_mem(base);
  return SharedHeap::release(base) ? MPI_SUCCESS : raise_error(MPI_COMM_WORLD, MPI_ERR_BASE);
}

}  // namespace plait::plugin

extern "C" {

void* plait_alloc(size_t bytes) {
  plait::tl::SharedHeap* shared_heap = plait::tl::SharedHeap::instance();
  void* block = shared_heap == nullptr
                    ? nullptr
                    : plait::plugin::block_of(*shared_heap, bytes, plait::tl::SharedHeap::page_bytes);
  if (block != nullptr) return block;
  constexpr std::size_t page = plait::tl::SharedHeap::page_bytes;
  if (bytes > SIZE_MAX - page) return nullptr;
  return std::aligned_alloc(page, std::max((bytes + page - 1) / page, std::size_t{1}) * page);
}

void plait_free(void* block) {
  if (!plait::tl::SharedHeap::contains(block)) return std::free(block);
  if (!plait::tl::SharedHeap::release(block))
    plait::warn("plait_free: not the start of a block of plait_alloc; ignored");
}

}  // extern "C"

// Memory of this process that its node's other ranks can map: one unnamed file in memory (memfd), mapped once, from
// which MPI_Alloc_mem, plait_alloc and, where the user asked for it, malloc take their blocks. A peer of the same user
// that maps it too reads and writes those blocks directly (docs/memory.md).
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "core/status.h"
#include "tl/shm/page_set.h"
#include "tl/shm/shared_heap_lock.h"
#include "tl/shm/span_table.h"

namespace plait::tl {

// ---- fork(): the child gets its own copies of all blocks, as they are at the time of the fork (shared_heap_fork.cpp)
// ----

// pthread_atfork(), or a function that does as it does. Other libraries' handlers may end threads that allocate
// (OpenBLAS's do), and write to blocks: the handlers below belong next to the fork itself, so that they want to be
// registered before all others.
using ForkRegistration = int (*)(void (*prepare)(), void (*parent)(), void (*child)());

// The copy is made before the fork: no other way leaves both processes free to write at once without either waiting for
// the other. A private mapping of the file in the child would show it what the parent writes afterwards; one in the
// parent would hide from the peers what it writes. What the program has mapped over pages of the shared heap stays what
// it is.
struct SharedHeapFork {
  static void prepare();
  static void parent();
  static void child();
};

// What a process tells the ranks of its node, so that they can map its shared heap. Fixed from SharedHeap::create() on.
struct SharedHeapOffer {
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::uint64_t bytes = 0;              // 0: there is no shared heap
  std::uint64_t device = 0, inode = 0;  // what the descriptor must still be when a peer opens it
  bool operator==(const SharedHeapOffer&) const = default;
};
static_assert(std::is_trivially_copyable_v<SharedHeapOffer>);

struct SharedHeapUsage {
  std::size_t bytes_in_use = 0;  // in blocks, whole pages
  std::size_t peak_bytes = 0;    // the most that bytes_in_use ever was
  std::size_t cached_bytes = 0;  // freed, and not given back to the system yet
  std::size_t blocks = 0;
};

namespace detail {
// Both 0 as long as there is no shared heap; set once.
struct SharedHeapRange {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> overlaid{false};  // the program has put something of its own somewhere in it, once
};
extern constinit SharedHeapRange shared_heap_range __attribute__((visibility("hidden")));
}  // namespace detail

// This process's shared heap. All functions are thread-safe; none allocates from the heap. A block's pages are
// untouched (or were last touched by the block that had them before), so that the first touch places them.
//
// After fork() the child has its own copies of all blocks and can release them; it gets no new ones, and its shared
// heap is shared with nobody.
//
// A program may do with its blocks what it may do with those of the C library: map something else over pages of them
// (MAP_FIXED), or drop pages, which then read as zeros (MADV_DONTNEED). Who sees its calls tells the shared heap
// (mapped_over() and so on): such pages are no memory of the shared heap until their block is released, when it takes
// their place again. Nor is anything done to a file without a proof that it is the shared heap's: the program may have
// closed the descriptor and opened its own under the same number.
class SharedHeap {
 public:
  // Every block starts at a page, so at least at this.
  static constexpr std::size_t page_bytes = SpanTable::page_bytes;

  struct Size {
    std::size_t bytes = 0;               // of address space; 0: as much as the machine has memory
    std::size_t most = ~std::size_t{0};  // not more than this, whatever `bytes`
    ForkRegistration register_fork = pthread_atfork;
  };
  // Makes the shared heap, at most once in a process; further calls do nothing. It may become smaller than wanted where
  // the process's limits say so. Memory is used only by blocks that are written to. Makes system calls.
  static Status create(const Size& size);

  // nullptr where there is none: not created, not possible, or in a child of fork(). One load.
  static SharedHeap* instance() { return instance_.load(std::memory_order_acquire); }

  // Whether the address is in the shared heap's range, also in a child of fork(). Two loads, one compare.
  static bool contains(const void* address) {
    const std::size_t bytes = detail::shared_heap_range.bytes.load(std::memory_order_acquire);
    return reinterpret_cast<std::uintptr_t>(address) - detail::shared_heap_range.begin.load(std::memory_order_relaxed) <
           bytes;
  }

  // A block of at least `bytes`, aligned to a page and to `alignment`, a power of two; nullptr when the shared heap has
  // no room. bytes 0 gives a block, too.
  void* allocate(std::size_t bytes, std::size_t alignment = page_bytes);
  // The same, filled with zeros.
  void* allocate_zeroed(std::size_t bytes);

  // These may be called in a child of fork() as well, where instance() is nullptr. Precondition: contains(block).

  // Gives a block back. false, and nothing done: not the start of a block. Keeps errno.
  static bool release(void* block);
  // Of the block that starts there; 0: none does.
  static std::size_t usable_size(const void* block);
  // Makes a block longer or shorter where it stands. false, and nothing done: no room behind it.
  static bool resize(void* block, std::size_t bytes);

  // The program's own calls of the system. Precondition: part of the range lies in the shared heap's, also in a child
  // of fork(). false, and nothing done: the system's answer is right, as for the shared heap's own calls.

  // Something of the program's lies there now.
  static void mapped_over(void* address, std::size_t bytes);
  // Whether any page of the range is memory of the shared heap.
  static bool owns_any(const void* address, std::size_t bytes);
  // As munmap(), but the shared heap keeps its addresses, which then cannot be accessed: nothing else comes to lie
  // there.
  static bool unmap(void* address, std::size_t bytes, int& result);
  // As madvise() with an advice after which private memory reads as zeros, or may.
  static bool drop(void* address, std::size_t bytes, int advice, int& result);

  // Where the range lies in the shared heap, for PeerSharedHeap::at(); empty unless all of it does. No lock.
  static std::optional<std::uint64_t> offset_of(const void* address, std::size_t bytes) {
    if (instance() == nullptr) return std::nullopt;
    const std::uint64_t offset =
        reinterpret_cast<std::uintptr_t>(address) - detail::shared_heap_range.begin.load(std::memory_order_relaxed);
    const std::uint64_t all = detail::shared_heap_range.bytes.load(std::memory_order_relaxed);
    if (offset >= all || bytes > all - offset) return std::nullopt;
    if (detail::shared_heap_range.overlaid.load(std::memory_order_relaxed) && !is_untouched(offset, bytes)) [[unlikely]]
      return std::nullopt;
    return offset;
  }

  SharedHeapOffer offer() const { return offer_; }
  // The offer of a process without a shared heap has 0 bytes.
  static SharedHeapOffer current_offer() { return instance() == nullptr ? SharedHeapOffer{} : instance()->offer(); }

  SharedHeapUsage usage() const;

 private:
  friend struct SharedHeapFork;
  friend class PeerSharedHeap;
  struct Block {
    void* address = nullptr;
    bool zeroed = false;
  };

  SharedHeap() = default;
  Block take(std::size_t bytes, std::size_t alignment);
  Span find_span(SharedHeapLock& lock, std::uint32_t pages, std::uint32_t alignment_pages);
  bool open_up(const Span& span);
  std::uint32_t most_kept_pages() const;
  std::uint32_t allowed_dirty_pages() const;
  void trim(SharedHeapLock& lock);
  void give_back(SharedHeapLock& lock, std::uint32_t most_dirty_pages);
  bool discard(Span span) const;
  // The shared heap's file, if the descriptor still is; -1.
  int file() const;
  static bool is_untouched(std::uint64_t offset, std::size_t bytes);
  Span pages_in(const void* address, std::size_t bytes) const;
  void note_foreign(Span span);
  bool take_back(SharedHeapLock& lock, Span span);
  std::uint32_t page_of(const void* address) const;
  std::byte* address_of(std::uint32_t page) const { return base_ + std::size_t{page} * page_bytes; }

  static constinit std::atomic<SharedHeap*> instance_;
  static constinit SharedHeap* the_shared_heap_;  // never destroyed: blocks are freed until the process ends

  std::byte* base_ = nullptr;
  SharedHeapOffer offer_;
  bool private_ = false;  // in a child of fork(): anonymous memory
  mutable std::mutex guard_;
  SpanTable spans_;
  PageSet foreign_;  // pages where something of the program's lies, or nothing
  std::uint32_t peak_pages_ = 0;
  std::uint32_t slack_pages_ = 0;
  std::uint32_t open_pages_ = 0;  // from the start: may be touched. mlockall() fills memory with all that may be
  bool can_discard_ = true;
};

// Another process's shared heap, mapped here: once for all communicators, until the last PeerSharedHeap of it is gone.
// Not inherited by children of fork(). at() and ensure_mapped() are thread-safe.
class PeerSharedHeap {
 public:
  // Maps the shared heap. Makes system calls. Fails with `unavailable` where that process is gone, not of this user, of
  // another PID namespace, or has closed the descriptor.
  static Result<PeerSharedHeap> attach(const SharedHeapOffer& offer);

  // nullptr: the range is not within the shared heap.
  // One load; a system call for the first range so far into the shared heap.
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t open = open_bytes_->load(std::memory_order_relaxed);
    if (offset > open || bytes > open - offset) [[unlikely]]
      return open_up(offset, bytes);
    return base_ + offset;
  }

  // Enters the pages of a range into this process's page tables in few system calls, so that a first transfer does not
  // fault at every page. Costs a look at a few bits when that was done before. Precondition: at(offset, bytes) is not
  // nullptr.
  void ensure_mapped(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  struct Mapping;
  PeerSharedHeap() = default;
  std::byte* open_up(std::uint64_t offset, std::uint64_t bytes) const;

  std::shared_ptr<Mapping> mapping_;
  const std::atomic<std::uint64_t>* open_bytes_ = nullptr;  // in the mapping
  std::byte* base_ = nullptr;
};

}  // namespace plait::tl

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
#include "tl/shm/arena_lock.h"
#include "tl/shm/page_set.h"
#include "tl/shm/span_table.h"

namespace plait::tl {

// ---- fork(): the child gets its own copies of all blocks, as they are at the time of the fork (arena_fork.cpp) ----

// pthread_atfork(), or a function that does as it does. Other libraries' handlers may end threads that allocate
// (OpenBLAS's do), and write to blocks: the handlers below belong next to the fork itself, so that they want to be
// registered before all others.
using ForkRegistration = int (*)(void (*prepare)(), void (*parent)(), void (*child)());

// The copy is made before the fork: no other way leaves both processes free to write at once without either waiting for
// the other. A private mapping of the file in the child would show it what the parent writes afterwards; one in the
// parent would hide from the peers what it writes. What the program has mapped over pages of the arena stays what it
// is.
struct ArenaFork {
  static void prepare();
  static void parent();
  static void child();
};

// What a process tells the ranks of its node, so that they can map its arena. Fixed from Arena::create() on.
struct ArenaOffer {
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::uint64_t bytes = 0;              // 0: there is no arena
  std::uint64_t device = 0, inode = 0;  // what the descriptor must still be when a peer opens it
  bool operator==(const ArenaOffer&) const = default;
};
static_assert(std::is_trivially_copyable_v<ArenaOffer>);

struct ArenaUsage {
  std::size_t bytes_in_use = 0;  // in blocks, whole pages
  std::size_t peak_bytes = 0;    // the most that bytes_in_use ever was
  std::size_t cached_bytes = 0;  // freed, and not given back to the system yet
  std::size_t blocks = 0;
};

namespace detail {
// Both 0 as long as there is no arena; set once.
struct ArenaRange {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> overlaid{false};  // the program has put something of its own somewhere in it, once
};
extern constinit ArenaRange arena_range __attribute__((visibility("hidden")));
}  // namespace detail

// This process's arena. All functions are thread-safe; none allocates from the heap. A block's pages are untouched (or
// were last touched by the block that had them before), so that the first touch places them.
//
// After fork() the child has its own copies of all blocks and can release them; it gets no new ones, and its arena is
// shared with nobody.
//
// A program may do with its blocks what it may do with those of the C library: map something else over pages of them
// (MAP_FIXED), or drop pages, which then read as zeros (MADV_DONTNEED). Who sees its calls tells the arena
// (mapped_over() and so on): such pages are no memory of the arena until their block is released, when it takes their
// place again. Nor is anything done to a file without a proof that it is the arena's: the program may have closed the
// descriptor and opened its own under the same number.
class Arena {
 public:
  // Every block starts at a page, so at least at this.
  static constexpr std::size_t page_bytes = SpanTable::page_bytes;

  struct Size {
    std::size_t bytes = 0;               // of address space; 0: as much as the machine has memory
    std::size_t most = ~std::size_t{0};  // not more than this, whatever `bytes`
    ForkRegistration register_fork = pthread_atfork;
  };
  // Makes the arena, at most once in a process; further calls do nothing. It may become smaller than wanted where the
  // process's limits say so. Memory is used only by blocks that are written to. Makes system calls.
  static Status create(const Size& size);

  // nullptr where there is none: not created, not possible, or in a child of fork(). One load.
  static Arena* instance() { return instance_.load(std::memory_order_acquire); }

  // Whether the address is in the arena's range, also in a child of fork(). Two loads, one compare.
  static bool contains(const void* address) {
    const std::size_t bytes = detail::arena_range.bytes.load(std::memory_order_acquire);
    return reinterpret_cast<std::uintptr_t>(address) - detail::arena_range.begin.load(std::memory_order_relaxed) <
           bytes;
  }

  // A block of at least `bytes`, aligned to a page and to `alignment`, a power of two; nullptr when the arena has no
  // room. bytes 0 gives a block, too.
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

  // The program's own calls of the system. Precondition: part of the range lies in the arena's, also in a child of
  // fork(). false, and nothing done: the system's answer is right, as for the arena's own calls.

  // Something of the program's lies there now.
  static void mapped_over(void* address, std::size_t bytes);
  // Whether any page of the range is memory of the arena.
  static bool owns_any(const void* address, std::size_t bytes);
  // As munmap(), but the arena keeps its addresses, which then cannot be accessed: nothing else comes to lie there.
  static bool unmap(void* address, std::size_t bytes, int& result);
  // As madvise() with an advice after which private memory reads as zeros, or may.
  static bool drop(void* address, std::size_t bytes, int advice, int& result);

  // Where the range lies in the arena, for PeerArena::at(); empty unless all of it does. No lock.
  static std::optional<std::uint64_t> offset_of(const void* address, std::size_t bytes) {
    if (instance() == nullptr) return std::nullopt;
    const std::uint64_t offset =
        reinterpret_cast<std::uintptr_t>(address) - detail::arena_range.begin.load(std::memory_order_relaxed);
    const std::uint64_t all = detail::arena_range.bytes.load(std::memory_order_relaxed);
    if (offset >= all || bytes > all - offset) return std::nullopt;
    if (detail::arena_range.overlaid.load(std::memory_order_relaxed) && !is_untouched(offset, bytes)) [[unlikely]]
      return std::nullopt;
    return offset;
  }

  ArenaOffer offer() const { return offer_; }
  // The offer of a process without an arena has 0 bytes.
  static ArenaOffer current_offer() { return instance() == nullptr ? ArenaOffer{} : instance()->offer(); }

  ArenaUsage usage() const;

 private:
  friend struct ArenaFork;
  friend class PeerArena;
  struct Block {
    void* address = nullptr;
    bool zeroed = false;
  };

  Arena() = default;
  Block take(std::size_t bytes, std::size_t alignment);
  Span find_span(ArenaLock& lock, std::uint32_t pages, std::uint32_t alignment_pages);
  bool open_up(const Span& span);
  std::uint32_t most_kept_pages() const;
  std::uint32_t allowed_dirty_pages() const;
  void trim(ArenaLock& lock);
  void give_back(ArenaLock& lock, std::uint32_t most_dirty_pages);
  bool discard(Span span) const;
  // The arena's file, if the descriptor still is; -1.
  int file() const;
  static bool is_untouched(std::uint64_t offset, std::size_t bytes);
  Span pages_in(const void* address, std::size_t bytes) const;
  void note_foreign(Span span);
  bool take_back(ArenaLock& lock, Span span);
  std::uint32_t page_of(const void* address) const;
  std::byte* address_of(std::uint32_t page) const { return base_ + std::size_t{page} * page_bytes; }

  static constinit std::atomic<Arena*> instance_;
  static constinit Arena* the_arena_;  // never destroyed: blocks are freed until the process ends

  std::byte* base_ = nullptr;
  ArenaOffer offer_;
  bool private_ = false;  // in a child of fork(): anonymous memory
  mutable std::mutex guard_;
  SpanTable spans_;
  PageSet foreign_;  // pages where something of the program's lies, or nothing
  std::uint32_t peak_pages_ = 0;
  std::uint32_t slack_pages_ = 0;
  std::uint32_t open_pages_ = 0;  // from the start: may be touched. mlockall() fills memory with all that may be
  bool can_discard_ = true;
};

// Another process's arena, mapped here: once for all communicators, until the last PeerArena of it is gone. Not
// inherited by children of fork(). at() and ensure_mapped() are thread-safe.
class PeerArena {
 public:
  // Maps the arena. Makes system calls. Fails with `unavailable` where that process is gone, not of this user, of
  // another PID namespace, or has closed the descriptor.
  static Result<PeerArena> attach(const ArenaOffer& offer);

  // nullptr: the range is not within the arena.
  // One load; a system call for the first range so far into the arena.
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
  PeerArena() = default;
  std::byte* open_up(std::uint64_t offset, std::uint64_t bytes) const;

  std::shared_ptr<Mapping> mapping_;
  const std::atomic<std::uint64_t>* open_bytes_ = nullptr;  // in the mapping
  std::byte* base_ = nullptr;
};

}  // namespace plait::tl

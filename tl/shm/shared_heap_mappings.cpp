// What the program does to the shared heap's addresses with calls of its own, and how the shared heap has them back.
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "tl/shm/shared_heap.h"
#include "tl/shm/shared_heap_lock.h"

namespace plait::tl {

thread_local constinit bool detail::thread_in_shared_heap __attribute__((tls_model("initial-exec"))) = false;

namespace {

bool is_own_call() { return detail::thread_in_shared_heap || detail::thread_is_forking; }

// What the system would refuse is left to it.
bool is_range(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  constexpr std::size_t page = SharedHeap::page_bytes;
  return begin % page == 0 && bytes > 0 && bytes < (std::size_t{1} << 62) && begin + bytes > begin;
}

}  // namespace

// The program may have closed the descriptor, and its number may be another file by now.
int SharedHeap::file() const {
  struct stat found {};
  const bool still =
      fstat(offer_.descriptor, &found) == 0 && found.st_dev == offer_.device && found.st_ino == offer_.inode;
  return still ? offer_.descriptor : -1;
}

// Whole pages. Precondition: part of the range lies in the shared heap's.
Span SharedHeap::pages_in(const void* address, std::size_t bytes) const {
  const auto base = reinterpret_cast<std::uintptr_t>(base_), begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t from = begin < base ? 0 : (begin - base) / page_bytes;
  const std::uintptr_t behind = (begin + bytes - base + page_bytes - 1) / page_bytes;
  const std::uintptr_t to = std::min<std::uintptr_t>(behind, offer_.bytes / page_bytes);
  return {.first = static_cast<std::uint32_t>(from), .pages = static_cast<std::uint32_t>(to - from)};
}

bool SharedHeap::is_untouched(std::uint64_t offset, std::size_t bytes) {
  const SharedHeap& shared_heap = *the_shared_heap_;
  return bytes == 0 || !shared_heap.foreign_.holds_any(shared_heap.pages_in(shared_heap.base_ + offset, bytes));
}

void SharedHeap::note_foreign(Span span) {
  const SharedHeapLock lock(guard_);
  foreign_.insert(span);
  detail::shared_heap_range.overlaid.store(true, std::memory_order_release);
}

void SharedHeap::mapped_over(void* address, std::size_t bytes) {
  if (!is_own_call()) the_shared_heap_->note_foreign(the_shared_heap_->pages_in(address, bytes));
}

bool SharedHeap::owns_any(const void* address, std::size_t bytes) {
  return !the_shared_heap_->foreign_.holds_all(the_shared_heap_->pages_in(address, bytes));
}

bool SharedHeap::unmap(void* address, std::size_t bytes, int& result) {
  if (is_own_call() || !is_range(address, bytes)) return false;
  SharedHeap& shared_heap = *the_shared_heap_;
  const Span inside = shared_heap.pages_in(address, bytes);
  std::byte* const begin = static_cast<std::byte*>(address);
  std::byte* const end = begin + (bytes + page_bytes - 1) / page_bytes * page_bytes;
  std::byte* const from = shared_heap.address_of(inside.first);
  std::byte* const to = shared_heap.address_of(inside.first + inside.pages);
  const detail::OwnCalls own;
  const bool done = mmap(from, static_cast<std::size_t>(to - from), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  if (done) shared_heap.note_foreign(inside);
  const bool done_before = begin >= from || munmap(begin, static_cast<std::size_t>(from - begin)) == 0;
  const bool done_behind = end <= to || munmap(to, static_cast<std::size_t>(end - to)) == 0;
  result = done && done_before && done_behind ? 0 : -1;
  return true;
}

// Shared memory keeps its content where private memory, which the program takes it for, would lose it. Of a range that
// is only in part the shared heap's the program cannot have been the one to make all.
bool SharedHeap::drop(void* address, std::size_t bytes, int advice, int& result) {
  SharedHeap& shared_heap = *the_shared_heap_;
  if (is_own_call() || shared_heap.private_ || !is_range(address, bytes)) return false;
  const Span span = shared_heap.pages_in(address, bytes);
  if (address != shared_heap.address_of(span.first) || std::size_t{span.pages} * page_bytes < bytes) return false;
  for (Span run = shared_heap.foreign_.run_outside(span, span.first); run.pages > 0;
       run = shared_heap.foreign_.run_outside(span, run.first + run.pages))
    if (!shared_heap.discard(run))
      std::memset(shared_heap.address_of(run.first), 0, std::size_t{run.pages} * page_bytes);
  const detail::OwnCalls own;
  result = 0;
  for (Span run = shared_heap.foreign_.run_inside(span, span.first); run.pages > 0;
       run = shared_heap.foreign_.run_inside(span, run.first + run.pages))
    if (madvise(shared_heap.address_of(run.first), std::size_t{run.pages} * page_bytes, advice) != 0) result = -1;
  return true;
}

// The shared heap's file in the place of what the program has left in a block that it gives back, as the C library
// unmaps such a block with all that lies there. The lock is not held during the system calls. false: the file is out of
// reach.
bool SharedHeap::take_back(SharedHeapLock& lock, Span span) {
  lock.unlock();
  const int descriptor = private_ ? -1 : file();
  const int kind = private_ ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  bool restored = private_ || descriptor >= 0;
  {
    const detail::OwnCalls own;
    for (Span run = foreign_.run_inside(span, span.first); run.pages > 0 && restored;
         run = foreign_.run_inside(span, run.first + run.pages)) {
      const std::size_t bytes = std::size_t{run.pages} * page_bytes;
      const std::size_t offset = private_ ? 0 : std::size_t{run.first} * page_bytes;
      void* mapped = mmap(address_of(run.first), bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE | MAP_FIXED,
                          descriptor, static_cast<off_t>(offset));
      restored = mapped != MAP_FAILED;
      if (restored) madvise(mapped, bytes, MADV_HUGEPAGE);
    }
  }
  lock.lock();
  if (restored) foreign_.erase(span);
  return restored;
}

}  // namespace plait::tl

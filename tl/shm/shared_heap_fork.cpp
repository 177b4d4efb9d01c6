#include "tl/shm/shared_heap.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace plait::tl {

thread_local constinit bool detail::thread_is_forking __attribute__((tls_model("initial-exec"))) = false;

namespace {

constexpr std::size_t page = SharedHeap::page_bytes;

// What the next fork's child will have in the shared heap's place; only between the handlers.
constinit std::byte* copy = nullptr;

// Other threads may be writing to their blocks meanwhile, as when the kernel copies the rest of the process. So the
// kernel copies here as well, out of the shared heap's file, where there is one.
void copy_bytes(int descriptor, const std::byte* base, std::size_t from, std::size_t to) {
  while (descriptor >= 0 && from < to) {
    const ssize_t done = pread(descriptor, copy + from, to - from, static_cast<off_t>(from));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;
    from += static_cast<std::size_t>(done);
  }
  if (from < to) std::memcpy(copy + from, base + from, to - from);
}

// Copies what was ever written to; the rest of the copy reads as zeros, too. Pages in swap count as written.
void copy_span(int descriptor, const std::byte* base, std::size_t begin, std::size_t end) {
  while (begin < end) {
    off_t data = static_cast<off_t>(begin), hole = static_cast<off_t>(end);
    if (descriptor >= 0) {
      data = lseek(descriptor, data, SEEK_DATA);
      if (data < 0 && errno == ENXIO) return;  // nothing up to the end of the file
      if (data >= 0) hole = lseek(descriptor, data, SEEK_HOLE);
      if (data < 0 || hole < 0) {  // no such question to this file: all of it
        data = static_cast<off_t>(begin);
        hole = static_cast<off_t>(end);
      }
    }
    const std::size_t from = static_cast<std::size_t>(data);
    const std::size_t to = std::min(static_cast<std::size_t>(hole), end);
    if (from >= to) return;
    copy_bytes(descriptor, base, from, to);
    begin = to;
  }
}

// The kernel is called by its number: UCX puts functions of its own in the place of the C library's, and its mremap()
// (1.13) forgets where to.
bool move_memory(void* from, void* to, std::size_t bytes) {
  return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
}

// Without a copy the child sees what the parent writes until its own first write to the page: enough for the children
// that only start another program, and a limit on address space that leaves no room is rare. Where there are no blocks,
// nothing is there to be seen. `descriptor` -1: the file is out of reach.
bool map_instead(std::byte* at, std::size_t offset, std::size_t bytes, int descriptor, bool has_blocks) {
  if (has_blocks && descriptor < 0) return false;
  const int kind = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | (has_blocks ? 0 : MAP_ANONYMOUS);
  return mmap(at, bytes, PROT_READ | PROT_WRITE, kind, has_blocks ? descriptor : -1,
              has_blocks ? static_cast<off_t>(offset) : 0) != MAP_FAILED;
}

// The child cannot go on with memory that it shares with its parent.
[[noreturn]] void give_up_child() {
  constexpr char message[] = "plait: error: fork: no room for the child's copy of the shared heap\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
  _exit(127);
}

// Visits the runs of a span's pages that are the shared heap's own: from and to which byte.
template <class Visit>
void for_own_runs(const PageSet& foreign, Span span, Visit&& visit) {
  for (Span run = foreign.run_outside(span, span.first); run.pages > 0;
       run = foreign.run_outside(span, run.first + run.pages))
    visit(std::size_t{run.first} * page, (std::size_t{run.first} + run.pages) * page);
}

}  // namespace

void SharedHeapFork::prepare() {
  SharedHeap& shared_heap = *SharedHeap::the_shared_heap_;
  shared_heap.guard_.lock();
  detail::thread_is_forking = true;
  if (shared_heap.private_ || shared_heap.spans_.used_pages() == 0) return;
  const int error = errno;
  const std::size_t bytes = shared_heap.offer_.bytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) {
    copy = static_cast<std::byte*>(memory);
    const int descriptor = shared_heap.file();
    for (Span span = shared_heap.spans_.next_used(0); span.pages > 0;
         span = shared_heap.spans_.next_used(span.first + span.pages))
      for_own_runs(shared_heap.foreign_, span,
                   [&](std::size_t from, std::size_t to) { copy_span(descriptor, shared_heap.base_, from, to); });
  }
  errno = error;
}

void SharedHeapFork::parent() {
  SharedHeap& shared_heap = *SharedHeap::the_shared_heap_;
  const int error = errno;
  if (copy != nullptr) munmap(copy, shared_heap.offer_.bytes);
  copy = nullptr;
  errno = error;
  detail::thread_is_forking = false;
  shared_heap.guard_.unlock();
}

void SharedHeapFork::child() {
  SharedHeap& shared_heap = *SharedHeap::the_shared_heap_;
  const int error = errno;
  if (!shared_heap.private_) {
    const int descriptor = shared_heap.file();
    const bool has_blocks = shared_heap.spans_.used_pages() > 0;
    const Span all{.first = 0, .pages = shared_heap.spans_.pages()};
    for_own_runs(shared_heap.foreign_, all, [&](std::size_t from, std::size_t to) {
      const bool moved = copy != nullptr && move_memory(copy + from, shared_heap.base_ + from, to - from);
      if (!moved && !map_instead(shared_heap.base_ + from, from, to - from, descriptor, has_blocks)) give_up_child();
    });
    for (Span left = shared_heap.foreign_.run_inside(all, 0); copy != nullptr && left.pages > 0;
         left = shared_heap.foreign_.run_inside(all, left.first + left.pages))
      munmap(copy + std::size_t{left.first} * page, std::size_t{left.pages} * page);
    if (descriptor >= 0) close(descriptor);
    shared_heap.private_ = true;
    shared_heap.open_pages_ = shared_heap.spans_.pages();
    SharedHeap::instance_.store(nullptr, std::memory_order_release);
    copy = nullptr;
  }
  errno = error;
  detail::thread_is_forking = false;
  shared_heap.guard_.unlock();
}

}  // namespace plait::tl

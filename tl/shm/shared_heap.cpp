// The process's shared heap: its file in memory, and what of freed memory is kept for the next block.
//
// Freed pages stay with the process while they are likely to be used again, so that a loop that allocates and frees
// makes no system calls and no page faults. Two bounds hold for them:
//   - blocks and kept pages together never exceed what the blocks alone once were (and a little), so that the memory's
//     high-water is that of the program: before it would rise on account of kept pages, they go back;
//   - they are at most a quarter of that peak, so that a program that has become small gives its memory back.
#include "tl/shm/shared_heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "tl/shm/shared_heap_lock.h"

namespace plait::tl {

constinit detail::SharedHeapRange detail::shared_heap_range;
constinit std::atomic<SharedHeap*> SharedHeap::instance_{nullptr};
constinit SharedHeap* SharedHeap::the_shared_heap_ = nullptr;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
// The file's and the mapping's huge pages are then the same ones.
constexpr std::size_t base_alignment = 2 * mebibyte;
constexpr std::uint32_t pages_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + SharedHeap::page_bytes - 1) / SharedHeap::page_bytes);
}

// Kept pages: at least this may be kept whatever the peak, ...
constexpr std::uint32_t least_kept_pages = pages_of(32 * mebibyte);
// ... and by this the kept pages may raise the high-water: a 64th of the peak and at first this much more. Each time
// that was not enough it grows by a step, so that a program that allocates and frees all the time finds its measure,
// ...
constexpr std::uint32_t first_slack_pages = pages_of(mebibyte / 4);
constexpr std::uint32_t slack_step_pages = pages_of(mebibyte / 8);
// ... up to this and an eighth of the peak.
constexpr std::uint32_t most_slack_pages = pages_of(4 * mebibyte);

// The shared heap is opened for use in steps of at least this.
constexpr std::uint32_t least_opened_pages = pages_of(64 * mebibyte);

constexpr std::uint32_t no_page = ~std::uint32_t{0};

alignas(SharedHeap) std::byte storage[sizeof(SharedHeap)];

Status unavailable(const std::string& what, int error) {
  return {Code::unavailable, "shared heap: " + what + ": " + std::strerror(error)};
}

std::size_t memory_bytes() {
  struct sysinfo machine {};
  return sysinfo(&machine) == 0 ? std::size_t{machine.totalram} * machine.mem_unit : std::size_t{1} << 30;
}

std::size_t limit(int resource) {
  rlimit found{};
  if (getrlimit(resource, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return ~std::size_t{0};
  return found.rlim_cur;
}

// Where address space is rationed most of it stays the program's; a file beyond the limit would raise SIGXFSZ.
std::size_t fitting_bytes(const SharedHeap::Size& wanted) {
  constexpr std::size_t most = std::size_t{1} << 43;  // page numbers have 32 bits
  std::size_t bytes =
      std::min({wanted.bytes == 0 ? memory_bytes() : wanted.bytes, wanted.most, limit(RLIMIT_FSIZE), most});
  if (const std::size_t space = limit(RLIMIT_AS); space != ~std::size_t{0}) bytes = std::min(bytes, space / 8);
  return bytes / SharedHeap::page_bytes * SharedHeap::page_bytes;
}

// Under strict accounting malloc fails where an untouched page of a file would end the job by SIGBUS.
bool strict_accounting() {
  const int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char mode = '0';
  const bool known = read(file, &mode, 1) == 1;
  close(file);
  return known && mode == '2';
}

// Only this user's processes may open it, through /proc, and nobody may cut it shorter below somebody's feet.
int open_file(std::size_t bytes) {
  constexpr unsigned not_executable = 8;  // MFD_NOEXEC_SEAL, since Linux 6.3
  int file = memfd_create("plait", MFD_CLOEXEC | MFD_ALLOW_SEALING | not_executable);
  if (file < 0 && errno == EINVAL) file = memfd_create("plait", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  const bool made = fchmod(file, 0600) == 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
                    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (made) return file;
  const int error = errno;
  close(file);
  errno = error;
  return -1;
}

// At a multiple of base_alignment, and not accessible yet.
std::byte* map_file(int file, std::size_t bytes) {
  void* reserved = mmap(nullptr, bytes + base_alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(reserved);
  const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(begin) % base_alignment;
  void* mapped = mmap(begin + skipped, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
  if (mapped == MAP_FAILED) {
    munmap(reserved, bytes + base_alignment);
    return nullptr;
  }
  if (skipped > 0) munmap(begin, skipped);
  munmap(begin + skipped + bytes, base_alignment - skipped);
  madvise(mapped, bytes, MADV_HUGEPAGE);  // no harm where huge pages are not allowed in files
  return static_cast<std::byte*>(mapped);
}

}  // namespace

// ---- Its making ----

Status SharedHeap::create(const Size& wanted) {
  static constinit std::mutex creating;
  const std::scoped_lock lock(creating);
  if (the_shared_heap_ != nullptr) return {};
  if (strict_accounting())
    return {Code::unavailable, "shared heap: not under strict accounting of memory (vm.overcommit_memory 2)"};
  const std::size_t bytes = fitting_bytes(wanted);
  if (bytes == 0) return {Code::unavailable, "shared heap: the limits leave no room for it"};
  const int file = open_file(bytes);
  if (file < 0) return unavailable("making a file in memory of " + std::to_string(bytes) + " bytes", errno);
  std::byte* base = map_file(file, bytes);
  struct stat found {};
  auto* shared_heap = new (storage) SharedHeap;
  shared_heap->slack_pages_ = first_slack_pages;
  if (base == nullptr || fstat(file, &found) != 0 || !shared_heap->spans_.create(pages_of(bytes)) ||
      !shared_heap->foreign_.create(pages_of(bytes))) {
    const int error = errno;
    if (base != nullptr) munmap(base, bytes);
    close(file);
    shared_heap->~SharedHeap();
    return unavailable("mapping " + std::to_string(bytes) + " bytes", error);
  }
  shared_heap->base_ = base;
  shared_heap->offer_ = {
      .process = getpid(), .descriptor = file, .bytes = bytes, .device = found.st_dev, .inode = found.st_ino};
  the_shared_heap_ = shared_heap;
  detail::shared_heap_range.begin.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_relaxed);
  detail::shared_heap_range.bytes.store(bytes, std::memory_order_release);
  wanted.register_fork(SharedHeapFork::prepare, SharedHeapFork::parent, SharedHeapFork::child);
  instance_.store(shared_heap, std::memory_order_release);
  return {};
}

// ---- Blocks ----

void* SharedHeap::allocate(std::size_t bytes, std::size_t alignment) { return take(bytes, alignment).address; }

void* SharedHeap::allocate_zeroed(std::size_t bytes) {
  const Block block = take(bytes, page_bytes);
  if (block.address != nullptr && !block.zeroed) std::memset(block.address, 0, bytes);
  return block.address;
}

SharedHeap::Block SharedHeap::take(std::size_t bytes, std::size_t alignment) {
  if (bytes > offer_.bytes || alignment > base_alignment) return {};
  const std::uint32_t pages = pages_of(bytes);
  const std::uint32_t alignment_pages = std::max(pages_of(alignment), 1u);
  SharedHeapLock lock(guard_);
  Span span = find_span(lock, pages, alignment_pages);
  // What the program has taken among free pages is never handed out: the span stays used.
  while (span.pages > 0 && foreign_.holds_any(span)) span = find_span(lock, pages, alignment_pages);
  if (span.pages == 0) return {};
  if (!open_up(span)) {
    spans_.release(span.first);
    return {};
  }
  peak_pages_ = std::max(peak_pages_, spans_.used_pages());
  if (span.clean && spans_.dirty_pages() > allowed_dirty_pages()) {
    give_back(lock, allowed_dirty_pages());
    slack_pages_ = std::min(slack_pages_ + slack_step_pages, most_slack_pages + peak_pages_ / 8);
  }
  return {.address = address_of(span.first), .zeroed = span.clean};
}

Span SharedHeap::find_span(SharedHeapLock& lock, std::uint32_t pages, std::uint32_t alignment_pages) {
  const Span span = spans_.allocate(pages, alignment_pages);
  if (span.pages > 0 || spans_.dirty_pages() == 0) return span;
  // Dirty and clean neighbours are not one span: there may be room once all are clean.
  give_back(lock, 0);
  return spans_.allocate(pages, alignment_pages);
}

// Whether the span may be touched now.
bool SharedHeap::open_up(const Span& span) {
  const std::uint32_t end = span.first + span.pages;
  if (end <= open_pages_) return true;
  const std::uint64_t generous = std::uint64_t{open_pages_} + std::max(least_opened_pages, open_pages_ / 4);
  const auto wanted = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(generous, end, spans_.pages()));
  const std::size_t bytes = std::size_t{wanted - open_pages_} * page_bytes;
  if (mprotect(address_of(open_pages_), bytes, PROT_READ | PROT_WRITE) != 0) return false;
  open_pages_ = wanted;
  return true;
}

bool SharedHeap::release(void* block) {
  SharedHeap& shared_heap = *the_shared_heap_;
  const int error = errno;
  SharedHeapLock lock(shared_heap.guard_);
  const std::uint32_t first = shared_heap.page_of(block);
  const std::uint32_t pages = first == no_page ? 0 : shared_heap.spans_.used_at(first);
  if (pages == 0) return false;
  const Span span{.first = first, .pages = pages};
  // A block that cannot be had back stays used for ever.
  if (!shared_heap.foreign_.holds_any(span) || shared_heap.take_back(lock, span)) {
    shared_heap.spans_.release(first);
    shared_heap.trim(lock);
  }
  errno = error;
  return true;
}

std::size_t SharedHeap::usable_size(const void* block) {
  const SharedHeap& shared_heap = *the_shared_heap_;
  const SharedHeapLock lock(shared_heap.guard_);
  const std::uint32_t first = shared_heap.page_of(block);
  return first == no_page ? 0 : std::size_t{shared_heap.spans_.used_at(first)} * page_bytes;
}

bool SharedHeap::resize(void* block, std::size_t bytes) {
  SharedHeap& shared_heap = *the_shared_heap_;
  if (bytes > shared_heap.offer_.bytes) return false;
  SharedHeapLock lock(shared_heap.guard_);
  const std::uint32_t first = shared_heap.page_of(block);
  if (first == no_page || shared_heap.spans_.used_at(first) == 0) return false;
  const std::uint32_t had = shared_heap.spans_.used_at(first);
  if (shared_heap.foreign_.holds_any({.first = first, .pages = had})) return false;
  if (!shared_heap.spans_.resize(first, pages_of(bytes))) return false;
  const Span span{.first = first, .pages = shared_heap.spans_.used_at(first)};
  if (shared_heap.foreign_.holds_any(span) || !shared_heap.open_up(span)) {
    shared_heap.spans_.resize(first, had);
    return false;
  }
  shared_heap.peak_pages_ = std::max(shared_heap.peak_pages_, shared_heap.spans_.used_pages());
  shared_heap.trim(lock);
  return true;
}

SharedHeapUsage SharedHeap::usage() const {
  const SharedHeapLock lock(guard_);
  return {.bytes_in_use = std::size_t{spans_.used_pages()} * page_bytes,
          .peak_bytes = std::size_t{peak_pages_} * page_bytes,
          .cached_bytes = std::size_t{spans_.dirty_pages()} * page_bytes,
          .blocks = spans_.used_spans()};
}

std::uint32_t SharedHeap::page_of(const void* address) const {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
  return offset < offer_.bytes && offset % page_bytes == 0 ? static_cast<std::uint32_t>(offset / page_bytes) : no_page;
}

// ---- Memory back to the system ----

std::uint32_t SharedHeap::most_kept_pages() const { return std::max(least_kept_pages, peak_pages_ / 4); }

// What may be kept now that blocks took new memory.
std::uint32_t SharedHeap::allowed_dirty_pages() const {
  const std::uint32_t below_peak = peak_pages_ - spans_.used_pages();
  return std::min(most_kept_pages(), below_peak + slack_pages_ + peak_pages_ / 64);
}

// Rarely, and then some more than needed: a program that frees much in small pieces would else come here with each.
void SharedHeap::trim(SharedHeapLock& lock) {
  const std::uint32_t most = most_kept_pages();
  if (spans_.dirty_pages() > most) give_back(lock, most - most / 4);
}

// The lock is not held during the system calls.
void SharedHeap::give_back(SharedHeapLock& lock, std::uint32_t most_dirty_pages) {
  while (can_discard_ && spans_.dirty_pages() > most_dirty_pages) {
    const Span span = spans_.take_dirty(spans_.dirty_pages() - most_dirty_pages);
    lock.unlock();
    const bool discarded = discard(span);
    lock.lock();
    if (discarded) {
      spans_.give_clean(span);
    } else {
      spans_.give_dirty(span);
      can_discard_ = false;
    }
  }
}

// madvise() before the hole is made: libraries that register memory with a network card watch for it. It refuses memory
// that the program has locked.
bool SharedHeap::discard(Span span) const {
  const detail::OwnCalls own;
  for (Span run = foreign_.run_outside(span, span.first); run.pages > 0;
       run = foreign_.run_outside(span, run.first + run.pages)) {
    const bool dropped = madvise(address_of(run.first), std::size_t{run.pages} * page_bytes, MADV_DONTNEED) == 0;
    if (private_ && !dropped) return false;
  }
  if (private_) return true;
  const int descriptor = file();
  return descriptor >= 0 && fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      static_cast<off_t>(std::size_t{span.first} * page_bytes),
                                      static_cast<off_t>(std::size_t{span.pages} * page_bytes)) == 0;
}

}  // namespace plait::tl

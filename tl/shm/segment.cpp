// The node's shared segment. It never has a name that outlives a system call, so a killed rank leaves nothing behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "core/log.h"
#include "tl/shm/segment_shape.h"
#include "tl/shm/shm_channel.h"

namespace plait::tl {
namespace {

constexpr const char* directory = "/dev/shm";

Status unavailable(const std::string& what, int error) {
  return {Code::unavailable, "shm: " + what + ": " + std::strerror(error)};
}

// For kernels and file systems without O_TMPFILE: a name nobody can guess in advance or open, gone at once.
int open_and_unlink() {
  char name[] = "/dev/shm/plait-XXXXXX";
  const int descriptor = mkostemp(name, O_CLOEXEC);  // exclusive, 0600
  if (descriptor >= 0) unlink(name);
  return descriptor;
}

int open_unnamed() {
  const int descriptor = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return descriptor;
  return open_and_unlink();
}

// Beyond the limit on file sizes the kernel also sends SIGXFSZ, which would end the job: it is held back and discarded.
// Returns errno, as `grow` does.
template <class Grow>
int without_signal(Grow&& grow) {
  sigset_t file_size, previous, pending;
  sigemptyset(&file_size);
  sigaddset(&file_size, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &file_size, &previous);
  int error = EINTR;
  while (error == EINTR) error = grow();
  if (error == EFBIG && sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1) {
    const timespec at_once{0, 0};
    sigtimedwait(&file_size, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return error;
}

// Reserves the pages now, so that a full /dev/shm is an error here and not a SIGBUS at some later store.
int reserve_pages(int descriptor, std::size_t bytes) {
  return without_signal([&] { return posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)); });
}

// Of so many bytes, in pages that are made when they are written.
int stretch(int descriptor, std::size_t bytes) {
  return without_signal([&] { return ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno; });
}

std::byte* map(int descriptor, std::size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

// Before the pages are reserved, which is when they are allocated: all of them near this process otherwise.
void place(std::byte* data, std::size_t bytes, std::span<const int> numa_of_rank) {
  if (std::ranges::adjacent_find(numa_of_rank, std::not_equal_to<>()) == numa_of_rank.end()) return;
  const Status placed = place_memory(detail::placed_ranges(data, bytes, numa_of_rank));
  if (!placed.ok()) debug("shm: " + placed.message());
}

}  // namespace

std::vector<PlacedRange> detail::placed_ranges(std::byte* segment, std::size_t bytes,
                                               std::span<const int> numa_of_rank) {
  const std::size_t ranks = numa_of_rank.size();
  const SegmentShape shape = segment_shape(bytes, static_cast<int>(ranks));
  if (shape.ring.slots == 0 || ranks < 2) return {};
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto pages = [&](std::size_t begin, std::size_t end, int numa) {
    const std::size_t first = (begin + page - 1) / page * page, last = (end + page - 1) / page * page;
    return PlacedRange{segment + first, last - first, numa};
  };
  std::vector<PlacedRange> ranges;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    ranges.push_back(
        pages(rank * shape.control_block.bytes(), (rank + 1) * shape.control_block.bytes(), numa_of_rank[rank]));
    const std::size_t rings = ring_offset(shape, ranks, rank, rank == 0 ? 1 : 0);
    ranges.push_back(pages(rings, rings + (ranks - 1) * shape.ring.bytes(), numa_of_rank[rank]));
  }
  return ranges;
}

std::size_t SharedSegment::default_bytes(int ranks) {
  const std::size_t generous = detail::pair_count(ranks) * detail::generous_pair_bytes +
                               static_cast<std::size_t>(ranks) * detail::generous_control_bytes;
  const std::size_t bound = (std::size_t{4} << 20) + static_cast<std::size_t>(ranks) * (std::size_t{64} << 10);
  const std::size_t least = detail::least_segment_bytes(ranks);
  const std::size_t bytes = std::max(std::min(generous, bound), least);
  return (bytes + 4095) / 4096 * 4096;
}

std::size_t SharedSegment::roomy_bytes(int ranks) {
  constexpr std::size_t most = std::size_t{64} << 20;
  // Control blocks have half of a segment at most.
  const std::size_t wanted = 2 * static_cast<std::size_t>(ranks) * detail::generous_control_bytes;
  return std::max(default_bytes(ranks), std::min((wanted + 4095) / 4096 * 4096, most));
}

std::size_t SharedSegment::least_bytes(int ranks, std::size_t payload) {
  constexpr std::size_t ring_slots = 4, ring_area = 1024;
  const std::size_t control_block = detail::least_control_bytes + 2 * std::size_t{detail::control_areas} * payload;
  const std::size_t pair = sizeof(detail::RingControl) + ring_slots * (sizeof(detail::Slot) + ring_area);
  const std::size_t bytes = 2 * static_cast<std::size_t>(ranks) * control_block + detail::pair_count(ranks) * pair;
  return std::min((bytes + 4095) / 4096 * 4096, default_bytes(ranks));
}

Result<SharedSegment> SharedSegment::create_empty(std::size_t bytes) {
  SharedSegment segment;
  segment.descriptor_ = open_unnamed();
  if (segment.descriptor_ < 0) return unavailable("creating a segment in /dev/shm", errno);
  segment.data_ = map(segment.descriptor_, bytes);
  if (segment.data_ == nullptr) return unavailable("mapping " + std::to_string(bytes) + " bytes", errno);
  segment.bytes_ = bytes;
  segment.owned_ = true;
  return segment;
}

Result<SharedSegment> SharedSegment::create_unreserved(std::size_t bytes) {
  Result<SharedSegment> segment = create_empty(bytes);
  if (!segment.ok()) return segment;
  if (const int error = stretch(segment->descriptor_, bytes); error != 0)
    return unavailable("making a segment of " + std::to_string(bytes) + " bytes", error);
  return segment;
}

Status SharedSegment::reserve() {
  const int error = reserve_pages(descriptor_, bytes_);
  return error == 0 ? Status() : unavailable("reserving " + std::to_string(bytes_) + " bytes in /dev/shm", error);
}

Result<SharedSegment> SharedSegment::create(std::size_t bytes, std::span<const int> numa_of_rank) {
  Result<SharedSegment> segment = create_empty(bytes);
  if (!segment.ok()) return segment;
  place(segment->data_, bytes, numa_of_rank);
  if (Status reserved = segment->reserve(); !reserved.ok()) return reserved;
  return segment;
}

// An offer of 0 bytes where the system does not say what the descriptor is.
SegmentOffer SharedSegment::offer() const {
  struct stat found {};
  if (fstat(descriptor_, &found) != 0) return {};
  return {
      .process = getpid(), .descriptor = descriptor_, .bytes = bytes_, .device = found.st_dev, .inode = found.st_ino};
}

Result<SharedSegment> SharedSegment::attach(const SegmentOffer& offer) {
  const std::string path = "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.descriptor);
  const auto bytes = static_cast<std::size_t>(offer.bytes);
  SharedSegment segment;
  segment.descriptor_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (segment.descriptor_ < 0) return unavailable("opening " + path, errno);
  struct stat found;
  if (fstat(segment.descriptor_, &found) != 0) return unavailable("looking at " + path, errno);
  if (!S_ISREG(found.st_mode) || static_cast<std::size_t>(found.st_size) != bytes)
    return {Code::unavailable, "shm: " + path + " is not a segment of " + std::to_string(bytes) + " bytes"};
  if (found.st_dev != offer.device || found.st_ino != offer.inode)
    return {Code::unavailable, "shm: " + path + " is not the segment that was offered"};
  segment.data_ = map(segment.descriptor_, bytes);
  if (segment.data_ == nullptr) return unavailable("mapping " + path, errno);
  segment.bytes_ = bytes;
  segment.owned_ = true;
  return segment;
}

SharedSegment SharedSegment::view(std::byte* data, std::size_t bytes) {
  SharedSegment segment;
  segment.data_ = data;
  segment.bytes_ = bytes;
  return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(owned_, other.owned_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (owned_) munmap(data_, bytes_);
  close_descriptor();
}

void SharedSegment::close_descriptor() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

bool can_read_process(int process, const void* address, std::uint64_t expected) {
  std::uint64_t found = 0;
  const iovec here{&found, sizeof found};
  const iovec there{const_cast<void*>(address), sizeof found};
  return process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof found) && found == expected;
}

}  // namespace plait::tl

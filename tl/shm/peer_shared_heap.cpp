// Other processes' shared heaps in this one, each mapped once.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/immortal.h"
#include "tl/shm/shared_heap.h"

namespace plait::tl {
namespace {

Status unavailable(const std::string& what, int error) {
  return {Code::unavailable, "shared heap: " + what + ": " + std::strerror(error)};
}

// Precondition: offer.bytes > 0. The peer may be gone and its process id another's, or its descriptor closed.
Result<int> open_peer(const SharedHeapOffer& offer) {
  const std::string path = "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.descriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return unavailable("opening " + path, errno);
  struct stat found {};
  const bool right = fstat(file, &found) == 0 && found.st_dev == offer.device && found.st_ino == offer.inode &&
                     static_cast<std::uint64_t>(found.st_size) == offer.bytes;
  if (right) return file;
  close(file);
  return {Code::unavailable, "shared heap: " + path + " is not the shared heap that was offered"};
}

}  // namespace

// Pages are entered in pieces of this many bytes, and remembered with a bit for each.
struct PeerSharedHeap::Mapping {
  static constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 16;

  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  std::mutex opening;
  std::atomic<std::uint64_t> open_bytes{0};  // from the start: may be touched
  bool own = false;                          // this process's shared heap, mapped already
  std::unique_ptr<std::atomic<std::uint64_t>[]> entered;

  // true the first time for each piece.
  bool enter(std::uint64_t piece) {
    std::atomic<std::uint64_t>& word = entered[piece / 64];
    const std::uint64_t bit = std::uint64_t{1} << (piece % 64);
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return false;
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

  ~Mapping() {
    if (base != nullptr && !own) munmap(base, bytes);
  }
};

namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
struct Registry {
  std::mutex guard;
  std::map<Key, std::weak_ptr<void>> mappings;
};
Registry& registry() {
  static Immortal<Registry> all;  // never destroyed: mappings go with their last user
  return *all;
}

// Children of fork() do not want it, and core files need it only once, from its owner.
Result<std::byte*> map_peer(const SharedHeapOffer& offer) {
  const Result<int> file = open_peer(offer);
  if (!file.ok()) return file.status();
  void* mapped = mmap(nullptr, offer.bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, *file, 0);
  const int error = errno;
  close(*file);
  if (mapped == MAP_FAILED)
    return unavailable("mapping " + std::to_string(offer.bytes) + " bytes of process " + std::to_string(offer.process),
                       error);
  madvise(mapped, offer.bytes, MADV_DONTFORK);
  madvise(mapped, offer.bytes, MADV_DONTDUMP);
  madvise(mapped, offer.bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(mapped);
}

}  // namespace

Result<PeerSharedHeap> PeerSharedHeap::attach(const SharedHeapOffer& offer) {
  if (offer.bytes == 0) return {Code::unavailable, "shared heap: the process has none"};
  Registry& known = registry();
  const std::scoped_lock lock(known.guard);
  std::weak_ptr<void>& entry = known.mappings[{offer.device, offer.inode}];
  PeerSharedHeap peer;
  peer.mapping_ = std::static_pointer_cast<Mapping>(entry.lock());
  if (peer.mapping_ == nullptr) {
    auto made = std::make_shared<Mapping>();
    made->bytes = offer.bytes;
    made->own = SharedHeap::current_offer() == offer;
    if (made->own) {
      made->base = SharedHeap::instance()->base_;
      made->open_bytes = offer.bytes;
    } else {
      const Result<std::byte*> mapped = map_peer(offer);
      if (!mapped.ok()) return mapped.status();
      made->base = *mapped;
      const std::uint64_t pieces = (offer.bytes + Mapping::piece_bytes - 1) / Mapping::piece_bytes;
      made->entered = std::make_unique<std::atomic<std::uint64_t>[]>((pieces + 63) / 64);
    }
    peer.mapping_ = made;
    entry = made;
  }
  peer.base_ = peer.mapping_->base;
  peer.open_bytes_ = &peer.mapping_->open_bytes;
  return peer;
}

// Opened in steps of at least 64 MiB. Not all at once: mlockall() would fill the node's memory with the shared heap's
// pages.
std::byte* PeerSharedHeap::open_up(std::uint64_t offset, std::uint64_t bytes) const {
  Mapping& mapping = *mapping_;
  if (offset > mapping.bytes || bytes > mapping.bytes - offset) return nullptr;
  const std::scoped_lock lock(mapping.opening);
  const std::uint64_t open = mapping.open_bytes;
  if (offset + bytes > open) {
    constexpr std::uint64_t step = std::uint64_t{64} << 20;
    const std::uint64_t wanted = std::min((offset + bytes + step - 1) / step * step, mapping.bytes);
    if (mprotect(base_ + open, wanted - open, PROT_READ | PROT_WRITE) != 0) return nullptr;
    mapping.open_bytes = wanted;
  }
  return base_ + offset;
}

// Only pages of the range are entered: entering one that its owner has not touched makes it. What else a piece has is
// entered by the processor's faults. So it is where the kernel cannot do it (before Linux 5.14).
void PeerSharedHeap::ensure_mapped(std::uint64_t offset, std::uint64_t bytes) const {
  Mapping& mapping = *mapping_;
  if (mapping.own || bytes == 0) return;
  constexpr std::uint64_t piece = Mapping::piece_bytes;
  const std::uint64_t end = (offset + bytes - 1) / piece + 1;
  std::uint64_t i = offset / piece;
  while (i < end) {
    const std::uint64_t first = i;
    while (i < end && mapping.enter(i)) ++i;
    if (i == first) {
      ++i;
      continue;
    }
    const std::uint64_t begin = std::max(first * piece, offset / SharedHeap::page_bytes * SharedHeap::page_bytes);
    const std::uint64_t stop = std::min(i * piece, offset + bytes);
    madvise(base_ + begin, stop - begin, MADV_POPULATE_WRITE);
  }
}

}  // namespace plait::tl

#include "tl/shm/shared_heap_buffers.h"

#include <string>
#include <utility>
#include <vector>

namespace plait::tl {
namespace {

class SharedHeapBuffers final : public PeerBuffers {
 public:
  explicit SharedHeapBuffers(std::vector<std::optional<PeerSharedHeap>> shared_heaps)
      : shared_heaps_(std::move(shared_heaps)) {}

  std::optional<std::uint64_t> name(const std::byte* address, std::size_t bytes) const override {
    return SharedHeap::offset_of(address, bytes);
  }

  std::byte* find(std::size_t peer, std::uint64_t name, std::size_t bytes) const override {
    const PeerSharedHeap& shared_heap = *shared_heaps_[peer];
    std::byte* address = shared_heap.at(name, bytes);
    if (address != nullptr) shared_heap.ensure_mapped(name, bytes);
    return address;
  }

 private:
  std::vector<std::optional<PeerSharedHeap>> shared_heaps_;  // nothing: this process's own
};

}  // namespace

Result<std::unique_ptr<PeerBuffers>> make_shared_heap_buffers(std::span<const SharedHeapOffer> offers,
                                                              std::size_t self) {
  std::vector<std::optional<PeerSharedHeap>> shared_heaps(offers.size());
  for (std::size_t local = 0; local < offers.size(); ++local) {
    if (offers[local].bytes == 0) return Status(Code::unavailable, "shared heap: a rank of this node has none");
    if (local == self) continue;
    Result<PeerSharedHeap> attached = PeerSharedHeap::attach(offers[local]);
    if (!attached.ok()) return attached.status();
    shared_heaps[local] = std::move(*attached);
  }
  return std::unique_ptr<PeerBuffers>(std::make_unique<SharedHeapBuffers>(std::move(shared_heaps)));
}

}  // namespace plait::tl

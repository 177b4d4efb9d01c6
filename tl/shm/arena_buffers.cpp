#include "tl/shm/arena_buffers.h"

#include <string>
#include <utility>
#include <vector>

namespace plait::tl {
namespace {

class ArenaBuffers final : public PeerBuffers {
 public:
  explicit ArenaBuffers(std::vector<std::optional<PeerArena>> arenas) : arenas_(std::move(arenas)) {}

  std::optional<std::uint64_t> name(const std::byte* address, std::size_t bytes) const override {
    return Arena::offset_of(address, bytes);
  }

  std::byte* find(std::size_t peer, std::uint64_t name, std::size_t bytes) const override {
    const PeerArena& arena = *arenas_[peer];
    std::byte* address = arena.at(name, bytes);
    if (address != nullptr) arena.ensure_mapped(name, bytes);
    return address;
  }

 private:
  std::vector<std::optional<PeerArena>> arenas_;  // nothing: this process's own
};

}  // namespace

Result<std::unique_ptr<PeerBuffers>> make_arena_buffers(std::span<const ArenaOffer> offers, std::size_t self) {
  std::vector<std::optional<PeerArena>> arenas(offers.size());
  for (std::size_t local = 0; local < offers.size(); ++local) {
    if (offers[local].bytes == 0) return Status(Code::unavailable, "arena: a rank of this node has none");
    if (local == self) continue;
    Result<PeerArena> attached = PeerArena::attach(offers[local]);
    if (!attached.ok()) return attached.status();
    arenas[local] = std::move(*attached);
  }
  return std::unique_ptr<PeerBuffers>(std::make_unique<ArenaBuffers>(std::move(arenas)));
}

}  // namespace plait::tl

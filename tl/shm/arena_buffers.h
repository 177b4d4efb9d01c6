// Buffers in the arenas of a node's ranks (tl/shm/arena.h).
#pragma once

#include <memory>
#include <span>

#include "core/status.h"
#include "tl/shm/arena.h"
#include "tl/shm/peer_buffers.h"

namespace plait::tl {

// `offers` by local index; `self` is this process's. Maps all the others' arenas: address space only, until buffers are
// used. Fails where one of them has none.
Result<std::unique_ptr<PeerBuffers>> make_arena_buffers(std::span<const ArenaOffer> offers, std::size_t self);

}  // namespace plait::tl

// Buffers in the shared heaps of a node's ranks (tl/shm/shared_heap.h).
#pragma once

#include <memory>
#include <span>

#include "core/status.h"
#include "tl/shm/peer_buffers.h"
#include "tl/shm/shared_heap.h"

namespace plait::tl {

// `offers` by local index; `self` is this process's. Maps all the others' shared heaps: address space only, until
// buffers are used. Fails where one of them has none.
Result<std::unique_ptr<PeerBuffers>> make_shared_heap_buffers(std::span<const SharedHeapOffer> offers,
                                                              std::size_t self);

}  // namespace plait::tl

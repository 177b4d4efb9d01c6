#include "tl/shm/xpmem_buffers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace plait::tl {
namespace {

constexpr int read_and_write = 2;  // XPMEM_RDWR
constexpr int permit_by_mode = 1;  // XPMEM_PERMIT_MODE

// Addresses of a process end here: a window must not go beyond.
constexpr std::uint64_t end_of_addresses = (std::uint64_t{1} << 47) - 4096;

class JoinedBuffers final : public PeerBuffers {
 public:
  JoinedBuffers(std::unique_ptr<PeerBuffers> shared_heaps, std::unique_ptr<XpmemBuffers> others)
      : shared_heaps_(std::move(shared_heaps)), others_(std::move(others)) {}

  std::optional<std::uint64_t> name(const std::byte* address, std::size_t bytes) const override {
    if (shared_heaps_ != nullptr)
      if (const auto found = shared_heaps_->name(address, bytes)) return found;
    const auto found = others_->name(address, bytes);
    return found ? std::optional(*found | other) : std::nullopt;
  }

  std::byte* find(std::size_t peer, std::uint64_t name, std::size_t bytes) const override {
    if ((name & other) != 0) return others_->find(peer, name & ~other, bytes);
    return shared_heaps_ != nullptr ? shared_heaps_->find(peer, name, bytes) : nullptr;
  }

 private:
  static constexpr std::uint64_t other = std::uint64_t{1} << 63;  // beyond all offsets and addresses

  std::unique_ptr<PeerBuffers> shared_heaps_;
  std::unique_ptr<XpmemBuffers> others_;
};

}  // namespace

Result<std::unique_ptr<XpmemBuffers>> XpmemBuffers::connect(const XpmemLibrary& library,
                                                            std::span<const std::int64_t> segments, std::size_t self) {
  std::unique_ptr<XpmemBuffers> buffers(new XpmemBuffers(library));
  buffers->peers_.resize(segments.size());
  for (std::size_t peer = 0; peer < segments.size(); ++peer) {
    if (peer == self) continue;
    const std::int64_t access = library.get(segments[peer], read_and_write, permit_by_mode, nullptr);
    if (access == -1)
      return Status(Code::unavailable,
                    "xpmem: access to local rank " + std::to_string(peer) + ": " + std::strerror(errno));
    buffers->peers_[peer].access = access;
  }
  return buffers;
}

XpmemBuffers::~XpmemBuffers() {
  for (Peer& peer : peers_) {
    for (const Window& window : peer.windows)
      if (window.end != 0) library_.detach(window.here);
    if (peer.access != -1) library_.release(peer.access);
  }
}

std::optional<std::uint64_t> XpmemBuffers::name(const std::byte* address, std::size_t bytes) const {
  const auto begin = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  if (bytes < least_bytes_ || begin >= end_of_addresses || bytes > end_of_addresses - begin) return std::nullopt;
  return begin;
}

std::byte* XpmemBuffers::find(std::size_t peer, std::uint64_t name, std::size_t bytes) const {
  if (peer >= peers_.size() || peers_[peer].access == -1) return nullptr;
  if (name >= end_of_addresses || bytes > end_of_addresses - name) return nullptr;
  auto& known = peers_[peer].windows;
  auto window = std::find_if(known.begin(), known.end(), [&](const Window& candidate) {
    return candidate.begin <= name && name + bytes <= candidate.end;
  });
  Window* found = window != known.end() ? &*window : attach(peers_[peer], name, name + bytes);
  if (found == nullptr) return nullptr;
  found->used = ++clock_;
  return found->here + (name - found->begin);
}

// In place of the window that was not used for longest.
XpmemBuffers::Window* XpmemBuffers::attach(Peer& peer, std::uint64_t begin, std::uint64_t end) const {
  Window& window = *std::min_element(peer.windows.begin(), peer.windows.end(),
                                     [](const Window& a, const Window& b) { return a.used < b.used; });
  if (window.end != 0) library_.detach(window.here);
  window = {};
  const std::uint64_t first = begin / window_bytes * window_bytes;
  const std::uint64_t last = std::min((end + window_bytes - 1) / window_bytes * window_bytes, end_of_addresses);
  void* here = library_.attach({peer.access, static_cast<off_t>(first)}, last - first, nullptr);
  if (here == reinterpret_cast<void*>(-1) || here == nullptr) return nullptr;
  window = {first, last, static_cast<std::byte*>(here), 0};
  return &window;
}

std::unique_ptr<PeerBuffers> join_buffers(std::unique_ptr<PeerBuffers> shared_heaps,
                                          std::unique_ptr<XpmemBuffers> others) {
  return std::make_unique<JoinedBuffers>(std::move(shared_heaps), std::move(others));
}

}  // namespace plait::tl

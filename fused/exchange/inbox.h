// A rank's inbox: memory that the ranks of its node share with it. In it the rank announces its runs; each source sets
// a flag a slice to the number of the run in which the slice has come; and where the sources cannot reach the rank's
// output, or are to leave it alone, they leave the slices here.
//
// Run numbers only grow, so that nothing is ever cleared. Two announcements by turns are enough: a rank announces the
// run after next once all others have announced the next one, and so have read this one's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "fused/exchange/announcement.h"
#include "fused/exchange/block.h"
#include "tl/shm/shm_channel.h"

namespace plait::fused {

// Where a source finds its part of an inbox.
struct InboxPart {
  std::uint64_t notes_at = 0;  // two by turns, as the announcements
  std::uint64_t flags_at = 0;
  std::uint64_t slices_at = 0;  // 0: they do not come here
};

struct InboxShape {
  std::vector<InboxPart> parts;  // by source
  std::uint64_t bytes = 0;
};

// For sources that share memory with the rank (by rank: not 0), whose slices are `incoming`, and whose notes so long.
InboxShape inbox_shape(std::span<const Blocks> incoming, std::span<const std::uint64_t> note_bytes,
                       std::span<const std::uint8_t> near, bool staged);

// Where a run's note lies in the two of a source.
constexpr std::uint64_t note_offset(std::uint32_t run, std::uint64_t bytes) { return run % 2 * aligned(bytes); }

class Inbox {
 public:
  Inbox() = default;
  explicit Inbox(SharedSegment memory) : memory_(std::move(memory)) {}

  PostedAnnouncement& announcement(std::uint32_t run) const { return at<PostedAnnouncement>(0)[run % 2]; }
  std::atomic<std::uint32_t>* flags(const InboxPart& part) const {
    return at<std::atomic<std::uint32_t>>(part.flags_at);
  }
  std::byte* notes(const InboxPart& part) const { return memory_.data() + part.notes_at; }
  std::byte* slices(const InboxPart& part) const { return memory_.data() + part.slices_at; }

  std::span<std::byte> memory() const { return {memory_.data(), memory_.bytes()}; }
  std::uint64_t bytes() const { return memory_.bytes(); }
  bool exists() const { return memory_.data() != nullptr; }
  SegmentOffer offer() const { return memory_.offer(); }
  void all_attached() { memory_.close_descriptor(); }

 private:
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(memory_.data() + offset);
  }
  SharedSegment memory_;  // of zeros at first, which are these types' first values
};

}  // namespace plait::fused

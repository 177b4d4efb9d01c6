// Shared-memory collectives of the ranks of one node, over their control blocks (tl/shm/control_block.h).
//
// A step takes one of four ways, the same on all ranks:
//  - at once: what each member gives fits into its slot. It is written there, and read by those who need it. One write
//    and one read a peer.
//  - directly: the members' buffers lie in memory that they share. Each says where, then does its share of the work
//    straight from all sources into all destinations, and waits until all have done theirs. One read of every source
//    byte, one write of every result byte.
//  - by the kernel: the members' buffers are private, but the kernel copies between processes, and faster than through
//    the stages from some size of a copy on. The same shares of the work, from the other processes' memory.
//  - in stages: everything else. Rounds of three parts, of which different rounds overlap: each member copies what
//    others need into its stage, reduces its share, and copies out what it needs.
// A member whose own buffers rule out all but the stages begins with them at once; the others learn it from the slots.
//
// A step whose buffers have a NodeTalk (tl/node_talk.h) is none of these: the slots carry its words, a round each
// operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/aligned_bytes.h"
#include "core/status.h"
#include "tl/channel.h"
#include "tl/node_talk.h"
#include "tl/rank_index.h"
#include "tl/shm/control_block.h"
#include "tl/shm/failure_marks.h"
#include "tl/shm/kernel_copy.h"
#include "tl/shm/peer_buffers.h"

namespace plait::tl::detail {

// Steps by the way that they took.
struct ShmCollectives {
  std::uint64_t at_once = 0, directly = 0, by_kernel = 0, in_stages = 0, on_devices = 0;
};

// Of the vector, or of the piece that is most.
std::uint64_t longest_piece(const BoundShmCollective& collective);
// By the kernel: whether each member first gets its share of what all want, and the others' from them.
bool goes_by_shares(const BoundShmCollective& collective);
// What the choice between the kernel's copies and the stages depends on besides the collective.
struct CopyingRanks {
  bool crowded = false;  // they share cores
  bool roomy = false;    // their stages are as long as they can be
};
// What is compared with the size of one copy from which on the kernel's is faster than the stages.
std::uint64_t copied_together(const BoundShmCollective& collective, const CopyingRanks& ranks);

// What connects the members; the same on all of them. Lists are by local index.
struct NodeCollectivesOptions {
  std::vector<ControlBlock> control_blocks;
  ControlShape shape;
  std::size_t self = 0;
  const RankIndex* index_of_rank = nullptr;  // not owned
  const PeerBuffers* buffers = nullptr;      // nullptr: no direct way. Not owned
  std::vector<RemoteProcess> processes;
  std::uint64_t kernel_from = ~std::uint64_t{0};  // bytes of one copy from a member from which on the kernel does it
  std::uint64_t pair_from = ~std::uint64_t{0};    // likewise, of what two members only move
  bool crowded = false;                           // the members share cores
  FailureMarks* failures = nullptr;               // of the control blocks. Not owned
  const Doorbells* bells = nullptr;               // not owned
};

class NodeCollectives {
 public:
  NodeCollectives() = default;
  // Counts on from where its own control block stands, which is 0 on a fresh one.
  explicit NodeCollectives(NodeCollectivesOptions options);

  // True when the step is complete. Does not block. After a failure every call fails.
  Result<bool> start(Transfer& transfer);
  // One glance, or one piece of work. Completed transfers are appended.
  Status progress(std::vector<Transfer*>& completed, bool& moved);
  bool idle() const { return current_ == nullptr; }
  // After a failure that this rank has marked. Others may be at work on its memory: waits until they are not any more,
  // or are gone.
  void forget();
  const ShmCollectives& steps() const { return steps_; }

 private:
  enum class Way : std::uint8_t { at_once, announced, collecting, leaving, in_stages, talking, working };

  // What a member says of its buffers: their names where the others can reach them, and their addresses.
  struct Announcement {
    std::uint64_t source = 0, destination = 0;
    std::uint64_t source_address = 0, destination_address = 0;  // 0: not in one piece
    std::uint8_t has_source = 0, has_destination = 0;           // whether it has a name
    std::uint8_t has_own = 0;                                   // BoundShmCollective::takes_own
  };
  static_assert(sizeof(Announcement) <= inline_bytes);

  // A part of one member's stage in one round, and the bytes of the piece or of the vector that it holds.
  struct Part {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    std::size_t at = 0;  // in the stage
  };

  bool begin(Transfer& transfer);
  bool advance(bool& moved);
  void finish();
  // Says that one of this member's counters has come so far.
  template <class Number>
  void tell(std::atomic<Number>& counter, Number value) {
    counter.store(value, std::memory_order_release);
    bells_->ring_all();
  }

  std::size_t members() const { return locals_.size(); }
  std::size_t me() const { return static_cast<std::size_t>(collective_->self); }
  std::size_t root() const { return static_cast<std::size_t>(collective_->root); }
  bool is_root() const { return collective_->root == collective_->self; }
  const ControlBlock& control_block(std::size_t member) const { return control_blocks_[locals_[member]]; }
  ControlCounters& own_control() const { return control_blocks_[self_].control(); }
  std::uint64_t piece_offset(std::size_t member) const { return collective_->piece_offsets[member]; }
  std::uint64_t piece_bytes(std::size_t member) const { return piece_offset(member + 1) - piece_offset(member); }
  // All members but this one, beginning with the next: no member's memory is the first that all read.
  template <class Visit>
  void for_others(Visit&& visit) const {
    for (std::size_t distance = 1; distance < members(); ++distance) visit((me() + distance) % members());
  }
  bool gives() const;
  bool takes_from(std::size_t member) const;
  std::uint64_t given_bytes(std::size_t member) const;
  bool is_measured() const;
  std::uint64_t landing_offset(std::size_t member) const;
  std::uint64_t share_offset(std::uint64_t bytes, std::size_t share) const;
  void copy_own_piece();
  void reduce_into(const Memory& to, std::uint64_t offset, std::uint64_t bytes);
  void reduce_sources(std::size_t results, std::size_t bytes, bool streaming);
  void put(const Memory& to, std::uint64_t offset, const std::byte* from, std::uint64_t bytes);

  // At once, and what the announcements have in common with it.
  bool fits_slot() const;
  bool run_at_once(bool& moved);
  bool slot_is_free(std::uint32_t available);
  Pace pace() const;
  bool is_read_at_once() const;
  bool own_fits_slot() const;
  std::uint64_t own_bytes_at_once() const;
  void give_at_once();
  void publish();
  template <class Wanted>
  bool all_arrived(Wanted&& wanted) {
    for (; arrived_ < members(); ++arrived_) {
      if (arrived_ == me() || !wanted(arrived_)) continue;
      if (control_block(arrived_).slot(operation_).sequence.load(std::memory_order_acquire) != operation_ + 1)
        return false;
      finished_[locals_[arrived_]] = operation_;  // who has begun this operation has finished those before
    }
    return true;
  }
  void take_at_once();
  void take_measured();

  // Directly, and by the kernel. Both work on memory of others in pieces, and stop where one of them has failed.
  bool run_announced(bool& moved);
  bool run_collecting(bool& moved);
  bool run_leaving(bool& moved);
  Announcement own_announcement() const;
  bool allows_direct(std::size_t member, const Announcement& buffers) const;
  bool kernel_pays() const;
  bool allows_kernel(std::size_t member, const Announcement& buffers) const;
  template <class Allows>
  bool all_allow(Allows&& allows) const;
  void announce();
  void leave();
  std::uint64_t offset_at_root() const;
  std::byte* find(std::size_t member, std::uint64_t name, std::uint64_t bytes);
  const std::byte* source_of(std::size_t member, std::uint64_t offset, std::uint64_t bytes);
  std::byte* destination_of(std::size_t member, std::uint64_t offset, std::uint64_t bytes);
  void work_directly();
  void reduce_directly();
  void broadcast_directly();
  void move_directly();
  void gather_directly();
  void take_straight(std::uint64_t offset, const std::byte* from, std::uint64_t bytes);
  void copy_straight(std::byte* to, const std::byte* from, std::uint64_t bytes);

  void note(Status status);
  bool begin_work();
  void end_work();
  // work(at, bytes) for the pieces of [begin, end), as long as nothing fails. A piece takes a millisecond at most where
  // nothing delays it.
  template <class Work>
  void by_pieces(std::uint64_t begin, std::uint64_t end, Work&& work) {
    const std::uint64_t piece = bytes_between_looks();
    for (std::uint64_t at = begin; at < end; at += piece) {
      if (at != begin) note(failures_->look());
      if (!failure_.ok()) return;
      work(at, std::min(piece, end - at));
    }
  }
  std::uint64_t bytes_between_looks() const;
  bool at_work(std::size_t local) const;
  void fetch(std::size_t member, std::uint64_t offset, std::byte* to, std::uint64_t bytes);
  void deliver(std::size_t member, std::uint64_t offset, const std::byte* from, std::uint64_t bytes);
  bool run_by_kernel(bool& moved);
  std::uint64_t root_share(std::uint64_t piece) const;
  void reduce_by_kernel();
  void collect_shares();
  void move_by_kernel();

  // By words.
  bool run_talk(bool& moved);
  bool run_round(bool& moved);
  bool run_work(bool& moved);
  void abandon_talk();

  // In stages.
  bool has_reduction() const;
  bool copies_in() const;
  bool copies_out() const;
  bool shows_result() const;
  bool cut_by_taker() const;
  void begin_stages();
  void tell_rounds();
  bool run_stages(bool& moved);
  bool run_one_part();
  bool can_copy_out() const;
  bool all_reached(std::atomic<std::uint32_t> ControlCounters::*counter, std::uint32_t wanted, bool only_givers) const;
  Part part(std::uint32_t round, std::size_t owner) const;
  std::uint64_t given_offset(std::size_t taker) const;
  void copy_in_round(std::uint32_t round);
  void reduce_round(std::uint32_t round);
  void copy_out_round(std::uint32_t round);

  std::vector<ControlBlock> control_blocks_;
  ControlShape shape_;
  std::size_t self_ = 0;
  const RankIndex* index_of_rank_ = nullptr;
  const PeerBuffers* buffers_ = nullptr;
  std::vector<RemoteProcess> processes_;
  std::uint64_t kernel_from_ = ~std::uint64_t{0}, pair_from_ = ~std::uint64_t{0};
  bool crowded_ = false;
  FailureMarks* failures_ = nullptr;
  const Doorbells* bells_ = nullptr;

  std::uint64_t operation_ = 0;          // number of the current or next one
  std::vector<std::uint64_t> finished_;  // by local index: operations known to be finished
  Transfer* current_ = nullptr;
  TransferQueue waiting_;
  const BoundShmCollective* collective_ = nullptr;  // of the current one
  std::vector<std::uint32_t> locals_;               // by member: local index
  Way way_ = Way::at_once;
  bool published_ = false;
  bool measured_ = false;     // each giver says how much it gives
  std::size_t arrived_ = 0;   // members that need not be looked at again
  NodeTalk* talk_ = nullptr;  // of the current one
  unsigned talk_round_ = 0;
  std::vector<const std::byte*> words_;
  std::vector<Announcement> announcements_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> results_;
  AlignedBytes fetched_;  // pieces of the others' memory
  Status failure_;        // of a copy by the kernel, or of finding a member's buffer
  ShmCollectives steps_;

  std::uint32_t first_round_ = 0, end_round_ = 0;               // of the current or next operation in stages
  std::uint32_t copied_in_ = 0, reduced_ = 0, copied_out_ = 0;  // own rounds
  std::size_t slice_ = 0;           // bytes that a round has of the vector, or of each piece
  std::size_t takers_a_round_ = 1;  // whose pieces a stage has room for
};

}  // namespace plait::tl::detail

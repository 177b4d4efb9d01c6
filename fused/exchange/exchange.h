// How the slices of a fused operator reach their owners, run after run, over the same places.
//
//   self      the worker writes into this rank's output
//   direct    into the owner's output: it lies in the owner's shared heap, which is mapped here
//   staged    into the owner's inbox, from where the owner copies it
//   messages  into memory of this rank's, from where it is sent: to ranks that share no memory with this one
//
// Slices may be kept: these lie in the plan's own memory, in the owner's inbox or in what messages come to, until the
// owner has read them, and may be written as soon as the owner has announced the run. A rank may keep some of its own.
//
// Steps and bytes: each slice is written once and, but for `self` and `direct`, copied or sent once. Nobody meets
// between slices. A run begins with an announcement of each rank to each other; outputs are written once all ranks have
// made theirs and none complains, so that a complaint of one leaves all outputs as they were. Slices for inboxes and
// messages are computed meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/aligned_bytes.h"
#include "core/status.h"
#include "fused/exchange/announcement.h"
#include "fused/exchange/block.h"
#include "fused/exchange/inbox.h"
#include "fused/exchange/messages.h"
#include "fused/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/record/worker_trace.h"
#include "runtime/team/team.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {

enum class Reach : std::uint8_t { self, direct, staged, messages };

// Who wants to know as soon as a rank has announced a run.
class Listener {
 public:
  virtual ~Listener() = default;
  // It has, and so far nobody complains. By one thread at a time; before anything may be left with the rank.
  virtual void heard(int rank) noexcept = 0;
};

// What the ranks exchange. Each rank's `outgoing` to another is the other's `incoming` from it; of what it has for
// itself only what it keeps is `incoming` as well.
struct ExchangeRequest {
  Output output;
  std::vector<Blocks> outgoing, incoming;  // by rank
  // By rank: bytes of the notes that go with announcements, which are each other's in the same way; none: no notes.
  std::vector<std::uint64_t> notes_to = {}, notes_from = {};
  Listener* listener = nullptr;  // which sets the rows of all slices, run after run
};

class Exchange {
 public:
  // Collective over the team; blocks. Alone (no team) there is only `self`. All ranks succeed or all fail.
  static Result<std::unique_ptr<Exchange>> make(Team* team, ExchangeRequest request) noexcept;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Reach reach(int owner) const { return owners_[index(owner)].reach; }
  // Whether slices for an owner on the node stay where they are written, all of them: in its output, or kept.
  bool is_uncopied(int owner) const;
  // In the run at hand.
  std::uint64_t bytes_of(int owner, std::uint32_t slice) const {
    return bytes_in_run(request_.outgoing[index(owner)][slice], owners_[index(owner)].rows, slice);
  }
  // The memory that this rank has reserved for slices.
  std::uint64_t reserved_bytes() const;
  // For PLAIT_TRACE: messages of slices that are sent. Before the first run.
  void record(WorkerLane* lane) {
    if (messages_ != nullptr) messages_->record(lane);
  }

  // ---- A run, by the rank's thread: begin(), and at its end conclude(), when no worker is in it any more ----

  // What goes to a rank, or to this one itself, with the announcement of the next run: to be written before begin().
  std::byte* note_to(int rank);
  // Precondition: the last run is concluded, and has not failed.
  void begin(const Complaint* complaint);
  // Waits for nothing. Not ok where the run failed.
  Status conclude();
  // The lowest rank that has complained, and what; none: all were well.
  struct Refusal {
    int rank;
    Complaint complaint;
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }
  // Looks whether other ranks have failed, which may take the host's progress some time: for long waits.
  void look_for_failures();

  // ---- In a run, by any worker ----

  // What came with a rank's announcement. Once the listener has heard of it.
  const std::byte* note_from(int rank) const;
  // By the listener, of the rank that it hears of: what rows each slice has in this run, to it and from it; there until
  // the run ends.
  void set_rows(int rank, const SliceRows* outgoing, const SliceRows* incoming);
  // Whether slices for the owner may be written yet; never in a run of which this rank complains.
  bool may_write(int owner) const { return owners_[index(owner)].open.load(std::memory_order_acquire); }
  // The same of slices that are kept; of this rank itself: what it keeps of its own.
  bool may_leave(int owner) const { return owners_[index(owner)].takes_kept.load(std::memory_order_acquire); }
  // Whether all ranks have announced the run, and none complains, so that any output may be written.
  bool is_good() const { return state_.load(std::memory_order_acquire) == State::good; }
  Target target(int owner, std::uint32_t slice) const;
  // All of the slice is written, and the caller has seen that.
  void finished(int owner, std::uint32_t slice);
  // For devices that set flags themselves: those of a rank of the node, by slice, and the memory that they lie in,
  // whole pages (none: ranks that share no memory); and what they are set to in the run at hand.
  std::atomic<std::uint32_t>* flags(int owner) const { return owners_[index(owner)].flags; }
  std::span<std::byte> inbox(int owner) const { return owners_[index(owner)].inbox.memory(); }
  std::uint32_t run() const { return run_; }
  // Likewise for devices that wait for flags: a source's, by slice (nullptr: it sends messages), and where they lie.
  const std::atomic<std::uint32_t>* flags_from(int source) const { return sources_[index(source)].flags; }
  std::span<std::byte> own_inbox() const { return inbox_.memory(); }
  // Whether another rank's slice for this one has come; where it is, if it is kept.
  bool has_come(int source, std::uint32_t slice) const;
  const std::byte* kept(int source, std::uint32_t slice) const;
  // Moves on what can be moved without waiting; whether anything was. Only the rank's thread drives channels: they
  // share the host and a rail's worker with those of other plans and calls, which it may be in while workers compute.
  bool turn(bool is_ranks_thread);
  bool has_failed() const { return state_.load(std::memory_order_acquire) == State::failed; }
  // The run is refused or has failed: nothing more is to be computed.
  bool is_over() const { return state_.load(std::memory_order_acquire) > State::good; }

  // ---- At the end of a run, by the rank's thread ----

  // Whether all that is this rank's is there and all that it had to tell is told; or the run is over and nothing is
  // under way any more.
  bool is_settled();

 private:
  enum class State : std::uint8_t { open, good, refused, failed };

  struct Owner {
    Reach reach = Reach::self;
    std::byte* base = nullptr;                    // direct: its output
    std::byte* inbox_slices = nullptr;            // this rank's part of its inbox: staged, and what is kept
    std::vector<std::uint64_t> places;            // in that
    const SliceRows* rows = nullptr;              // by slice; nullptr: they do not vary
    std::atomic<std::uint32_t>* flags = nullptr;  // in its inbox
    std::byte* notes = nullptr;                   // likewise
    std::size_t lane = 0;                         // messages
    std::optional<PeerSharedHeap> heap;
    Inbox inbox;  // attached
    alignas(64) std::atomic<bool> open{false};
    std::atomic<bool> takes_kept{false};
  };
  struct Source {
    bool near = false, staged = false;
    const std::atomic<std::uint32_t>* flags = nullptr;  // nullptr: it sends messages
    const std::byte *notes = nullptr, *slices = nullptr;
    std::vector<std::uint64_t> places;
    const SliceRows* rows = nullptr;
    std::size_t seen = 0;                             // slices known to have come in this run
    alignas(64) std::atomic<std::uint32_t> taken{0};  // staged: slices that somebody has copied, or is about to
  };

  Exchange(Team* team, ExchangeRequest request);
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  Status connect();
  std::vector<std::uint8_t> ranks_that_share_memory() const;
  Status find_outputs(const std::vector<std::uint8_t>& near, std::vector<std::uint8_t>& direct);
  Result<bool> share_inboxes(const std::vector<std::uint8_t>& near, const std::vector<std::uint8_t>& direct);
  void keep_own();
  Status attach_inboxes(const std::vector<std::uint8_t>& near, const std::vector<std::uint8_t>& direct,
                        std::span<const SegmentOffer> offers, std::span<const InboxPart> parts);
  void forget_inboxes(const std::vector<std::uint8_t>& near);
  void take_messages(const std::vector<std::uint8_t>& near);

  void hear();
  void note(int rank, const Announcement& said);
  void decide();
  bool moderate(bool is_ranks_thread);
  bool copy_one();
  bool copy_from(Source& source, const Blocks& blocks);
  void fail(const Status& cause);

  Team* team_;
  int rank_ = 0, ranks_ = 1;
  ExchangeRequest request_;
  std::vector<Owner> owners_;    // by rank
  std::vector<Source> sources_;  // by rank
  std::vector<int> staged_sources_;
  std::uint64_t staged_slices_ = 0;
  Inbox inbox_;
  AlignedBytes own_kept_, own_notes_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> own_flags_;
  std::unique_ptr<Messages> messages_;

  // Of the run at hand.
  std::uint32_t run_ = 0;
  std::atomic<State> state_{State::open};
  std::atomic<std::uint64_t> copied_{0};
  // Under `moderating_`.
  alignas(64) std::atomic_flag moderating_;
  std::vector<std::uint8_t> heard_;  // by rank
  int heard_ranks_ = 0;
  std::optional<Refusal> refusal_;
  Status failure_;
};

}  // namespace plait::fused

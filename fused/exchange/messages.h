// The part of an exchange that goes by messages: to and from ranks that share no memory with this one. Workers say
// which slices are finished, without a lock; whoever drives the channels sends those that are, in their order, as a
// channel pairs messages by their order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/aligned_bytes.h"
#include "core/status.h"
#include "fused/exchange/announcement.h"
#include "fused/exchange/block.h"
#include "runtime/record/worker_trace.h"
#include "runtime/team/team.h"
#include "tl/channel.h"

namespace plait::fused {

class Messages {
 public:
  struct Partner {
    int rank;
    Channel* channel;
    const Blocks* outgoing;
    const Blocks* incoming;
    std::uint64_t note_to = 0, note_from = 0;  // bytes behind the announcements
    bool varies = false;                       // runs differ in their slices' rows
  };
  // Throws where memory is short. The blocks outlive it.
  Messages(const std::vector<Partner>& partners, const Output& output);

  // The memory of the slices.
  std::uint64_t reserved_bytes() const;
  // Messages of slices that are sent, from now on. Throws where memory is short.
  void record(WorkerLane* lane);

  // ---- For any thread, in a run ----

  Target target(std::size_t lane, std::uint32_t slice) const;
  void finished(std::size_t lane, std::uint32_t slice);
  // Whether the partner's slice has come in this run; where it is, if it is kept.
  bool has_come(std::size_t lane, std::uint32_t slice) const {
    return lanes_[lane]->come[slice].load(std::memory_order_acquire) == run_;
  }
  const std::byte* kept(std::size_t lane, std::uint32_t slice) const {
    return lanes_[lane]->memory.data() + lanes_[lane]->place_in(slice);
  }

  // ---- For one thread at a time ----

  // What goes with the next announcement: to be written before begin().
  std::byte* note_to(std::size_t lane) const { return lanes_[lane]->said + sizeof(Announcement); }
  // What came with the last one. Precondition: heard().
  const std::byte* note_from(std::size_t lane) const { return lanes_[lane]->heard + sizeof(Announcement); }
  // What rows each slice has in this run, each way, where that varies: by slice; there until the run ends. Before they
  // go or come.
  void set_rows(std::size_t lane, const SliceRows* outgoing, const SliceRows* incoming);
  // The run's announcement goes to all partners with the first turn. Precondition: the last run is over: is_idle().
  void begin(const Announcement& mine);
  // A glance; true when anything moved. `go`: all ranks are well, so that slices may go, and come.
  Result<bool> move_on(bool go);
  // What the partner has said in this run; nullptr: nothing yet.
  const Announcement* heard(std::size_t lane) const;
  // All that has begun in this run has ended. By any thread.
  bool is_idle() const { return under_way_.load(std::memory_order_acquire) == 0; }
  // All of the run has ended: both announcements and all slices. By any thread.
  bool is_complete() const { return complete_.load(std::memory_order_acquire); }

 private:
  struct Lane {
    Partner partner;
    AlignedBytes memory;                                     // of the slices that go; behind them those that are kept
    std::vector<std::uint64_t> places;                       // theirs in it
    std::unique_ptr<std::atomic<std::uint32_t>[]> finished;  // by slice: the last run in which it was
    std::vector<std::uint64_t> kept_places;                  // by slice that comes, in `memory`
    std::unique_ptr<std::atomic<std::uint32_t>[]> come;      // by slice that comes: the last run in which it has
    AlignedBytes announcements;                              // what is said, and what is heard; each with its note
    std::byte *said = nullptr, *heard = nullptr;
    Buffers buffers;             // input: `memory`; output: the rank's; scratch: the announcements
    std::vector<RunGrid> grids;  // of the slices that come
    std::vector<BoundSpan> send_spans, receive_spans;
    std::vector<std::uint64_t> began_ns;    // by send; only with a trace
    std::vector<Transfer> sends, receives;  // an announcement, then the slices; their step is the lane's number
    std::size_t sent = 0, received = 0;     // that have begun in this run
    const SliceRows *rows_out = nullptr, *rows_in = nullptr;  // by slice; nullptr: they do not vary
    std::size_t last_out = 0;                                 // of the slices that go in this run
    bool has_heard = false;

    // Where a slice that goes, or one that is kept, is in `memory` in this run.
    std::uint64_t place_out(std::size_t slice) const {
      return places[slice] + offset_in_run((*partner.outgoing)[slice], rows_out, slice);
    }
    std::uint64_t place_in(std::size_t slice) const {
      return kept_places[slice] + offset_in_run((*partner.incoming)[slice], rows_in, slice);
    }
    void take_note(const Transfer& transfer, std::uint32_t run);
  };

  static void lay_out(Lane& lane, std::uint32_t number, const Output& output);
  Result<bool> start_all(Lane& lane, bool go);
  Result<bool> start(Lane& lane, Transfer& transfer);
  Result<bool> start_slice(Lane& lane, std::size_t slice, StepKind kind);
  void end(const Transfer& transfer);
  void note(const Lane& lane, const Transfer& transfer);
  void count_end();

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Channel*> channels_;  // each once
  std::vector<Transfer*> completed_;
  WorkerLane* trace_ = nullptr;
  std::uint32_t run_ = 0;
  std::size_t ended_ = 0, all_ = 0;
  std::atomic<std::size_t> under_way_{0};
  std::atomic<bool> complete_{true};
};

}  // namespace plait::fused

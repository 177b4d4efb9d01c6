// Data of a call on their way between memory of a device and the processor's, while the call's schedule runs.
//
// What comes is copied in the order in which the schedule's steps first read it; a step waits until what it reads, and
// what it writes over, is there. What a step has written leaves once no further step writes it. Both go in pieces of
// some size, a few of which are under way at once in each direction; nothing waits for the device. This is a rank's own
// affair: the schedule is as it is, and the other ranks may have their data elsewhere (design rule 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "plan/lower/bound_schedule.h"
#include "runtime/device/device_streams.h"
#include "runtime/device/device_view.h"
#include "runtime/layer.h"
#include "tl/channel.h"
#include "tl/data_flow.h"

namespace plait::runtime {

// One call at a time. Keeps its memory from call to call.
class DeviceFlow final : public tl::DataFlow {
 public:
  DeviceFlow() = default;
  ~DeviceFlow() override { abandon(); }
  DeviceFlow(const DeviceFlow&) = delete;
  DeviceFlow& operator=(const DeviceFlow&) = delete;

  // In the thread that calls, once for each call, before all else: copies come after what the program has given its
  // default streams so far. What fails is told by start(). May throw std::bad_alloc.
  void follow_program(const DeviceDriver& driver, const tl::DeviceMemory& memory);
  bool follows_program() const { return follows_program_; }
  // What has become of that, and after what the copies come.
  const Status& followed() const { return failure_; }
  tl::DeviceEvent* program() const { return program_.get(); }
  // The same as of another call, which is not over before this one.
  void follow(const DeviceFlow& other) { others_.push_back(&other); }

  // ---- A run of a schedule ----

  // Forgets what the last run moved. Precondition: follows_program().
  Status start();
  // A view to be filled of what lies packed at that place during the run: to be brought before, or taken away after.
  // Of one direction they do not overlap; a place may be of both. `ready`: what is to be taken away is there already,
  // and no step writes it.
  DeviceView& bring(std::byte* packed);
  DeviceView& take(std::byte* packed, bool ready = false);
  bool moves_anything() const { return in_.used + out_.used > 0; }
  // The views are filled. `hold_results`: nothing is taken away before all is there, as both lie in the same memory in
  // another order.
  void begin(const BoundSchedule& schedule, const Buffers& buffers, bool hold_results);

  bool awaits(std::uint32_t step) const override { return needs_[step] != 0; }
  void note_complete(std::uint32_t step) override;
  Result<bool> progress(std::vector<std::uint32_t>& released) override;
  bool active() const override { return !complete(); }
  bool complete() const override { return in_.done == in_.copies.size() && out_.done == out_.copies.size(); }

  // After the last run of a call.
  void end();
  // After a failure: waits until nothing is under way.
  void abandon() noexcept;

 private:
  // What lies packed somewhere, in pieces.
  struct Block {
    DeviceView view;
    std::byte* packed = nullptr;
    bool ready = false;
    std::uint64_t piece_bytes = 1;
    std::uint32_t first_piece = 0;  // into the pieces of its direction
    std::uint64_t end() const { return reinterpret_cast<std::uintptr_t>(packed) + view.bytes(); }
  };
  struct Copy {
    std::uint32_t block;
    std::uint64_t begin, end;  // packed bytes
  };
  struct Direction {
    std::deque<Block> blocks;  // by address once a run has begun; those from `used` on are kept for later runs
    std::size_t used = 0;
    std::vector<std::uint32_t> order;   // of the blocks, by address
    std::vector<std::uint32_t> pieces;  // in: 1 + the copy that brings it, 0: none does; out: writes that are to come
    std::vector<Copy> copies;
    std::size_t issued = 0, done = 0;  // copies
    bool idled = false;                // nothing was under way for a while, though copies were left
  };
  // How far the engine that brings data was when it was seen at work first and last.
  struct Pace {
    std::uint64_t started_ns = 0;                   // the run, whatever the copies come after
    std::uint64_t first_ns = 0, last_ns = 0;        // 0: never
    std::uint64_t done_bytes = 0, first_bytes = 0;  // at the last look, and at the first
    std::size_t counted = 0;                        // copies, of those bytes
  };
  struct Release {
    std::uint32_t need, step;
  };

  void cut(Direction& direction) const;
  std::uint64_t piece_bytes(std::uint64_t bytes) const;
  struct Place {
    std::uintptr_t begin, end;
  };
  Status follow(tl::DeviceStream& stream) const;
  Place place_of(const BoundSpan& span) const;
  template <class Visit>
  void for_each_piece(Direction& direction, const Place& place, Visit&& visit);
  template <class Visit>
  void for_each_piece(Direction& direction, SpanList list, Visit&& visit);
  bool is_there(const Block& block, const Copy& copy);
  std::uint32_t need_of(SpanList list, bool reads);
  void add_copy(Direction& direction, std::uint32_t block, std::uint64_t piece);
  void add_the_rest();
  template <class Issue>
  Result<bool> move(Direction& direction, DeviceStreams::Direction& streams, Issue&& issue);
  Result<bool> move_both(std::vector<std::uint32_t>& released);
  void note_pace();
  void learn_rate();

  const DeviceDriver* driver_ = nullptr;
  tl::DeviceMemory memory_;
  std::unique_ptr<tl::DeviceEvent> program_;  // where the program's streams were
  Status failure_;                            // of that
  bool follows_program_ = false;
  std::vector<const DeviceFlow*> others_;
  std::unique_ptr<DeviceStreams> streams_;  // while a call runs
  Direction in_, out_;
  const BoundSchedule* schedule_ = nullptr;
  Buffers buffers_;
  bool hold_results_ = false;
  bool failed_ = false;
  std::vector<std::uint32_t> needs_;  // by step: copies that must be done before it starts
  std::vector<Release> waiting_;      // by need
  std::size_t released_ = 0;          // of these
  Pace pace_;
};

}  // namespace plait::runtime

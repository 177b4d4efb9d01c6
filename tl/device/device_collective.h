// A collective of a node's ranks all of whose data lie on devices: kernels read and write the buffers of all ranks
// where they are. What carries the words is the channel between the ranks (tl/node_talk.h); nothing here knows whose
// driver it is.
//
// Each says, once what its program has asked the device for is done, where its data lie (a round); each maps what it
// needs, and all say whether that was possible (another round). Where it was not, or some data lie elsewhere, nothing
// was touched, and all ranks know. Then each does its share, from all sources into all destinations, and waits until
// its device has done it; the call is over when all have. The processor carries all flags: no kernel waits for another
// one, so that several ranks can share a device, and the end of a rank leaves none of them waiting.
//
//   all_reduce, reduce   each its share of the elements of all vectors, into all results: a reduce-scatter and an
//                        all-gather by stores, in one kernel. In place as well, as nobody else reads a share.
//   reduce_scatter       each its own piece of all vectors
//   all_gather, gather,  each from its own data into the others'
//   all_to_all
//   broadcast, scatter   each from the root's data
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/element.h"
#include "core/status.h"
#include "plan/model/schedule.h"
#include "tl/device/peer_maps.h"
#include "tl/device_driver.h"
#include "tl/layer.h"
#include "tl/node_talk.h"

namespace plait::tl {

// One rank's view of a call.
struct DeviceCall {
  ShmCollectiveKind kind = ShmCollectiveKind::all_reduce;
  std::size_t members = 0, self = 0, root = 0;
  std::uint64_t bytes = 0;  // of the vector; of one piece, where the collective's data are pieces
  Op op = Op::count_;       // of a reduction
  Element element = Element::count_;
  std::size_t element_bytes = 1;
  std::uint64_t shared_from = 0;  // bytes of all of a rank's data from which on ranks that share a device do it so
  // Where some of this rank's data are no device's, or not in one piece: no driver.
  const DeviceDriver* driver = nullptr;
  std::byte* input = nullptr;      // nullptr: it gives nothing
  std::byte* output = nullptr;     // nullptr: it gets nothing
  DeviceEvent* program = nullptr;  // after which the others may touch its data; nullptr: there are none
};

// A stream and an event for the end of what it was given last.
struct DeviceWorker {
  const DeviceDriver* driver = nullptr;
  void* context = nullptr;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<DeviceEvent> end;
};

// One call at a time.
class DeviceCollective final : public NodeTalk {
 public:
  enum class Outcome : std::uint8_t {
    under_way,
    done,
    elsewhere,  // some data are not where all devices can reach them
    refused,    // a driver does not let them: it will not do so later either
  };

  DeviceCollective() = default;
  ~DeviceCollective() override;
  DeviceCollective(const DeviceCollective&) = delete;
  DeviceCollective& operator=(const DeviceCollective&) = delete;

  void start(const DeviceCall& call);
  Outcome outcome() const { return outcome_; }

  Result<bool> speak(unsigned round, Word word) override;
  Result<Then> hear(unsigned round, Words words) override;
  Status begin_work() override;
  Result<bool> work() override;
  void abandon() noexcept override;

 private:
  enum class State : std::uint8_t { elsewhere, on_device };
  // What a rank says first.
  struct Announcement {
    State state = State::elsewhere;
    std::uint64_t process = 0, device = 0;
    SharedPlace input{}, output{};
    FreedAllocations freed{};
  };
  static_assert(sizeof(Announcement) <= word_bytes);

  Announcement own_announcement();
  bool announce_sides(Announcement& mine);
  std::uint64_t input_bytes() const;
  std::uint64_t output_bytes() const;
  bool all_on_devices() const;
  bool share_a_device() const;
  bool are_aligned() const;
  Status map_peers();
  Status map_side(std::size_t member, SharedPlace Announcement::*side, std::byte* own, std::vector<std::byte*>& found);
  bool needs_inputs(std::size_t member) const;
  bool needs_outputs(std::size_t member) const;
  Status find_worker();
  Status launch();
  Status reduce();
  void add_moves();
  std::size_t members() const { return announced_.size(); }
  std::uint64_t whole_bytes() const;
  template <class Visit>
  void for_all(Visit&& visit) const;

  DeviceCall call_;
  Outcome outcome_ = Outcome::under_way;
  DeviceMemory memory_;  // of its own data
  std::vector<Announcement> announced_;
  std::vector<std::byte*> inputs_, outputs_;  // by member, as this process reaches them
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> results_;
  std::vector<DeviceMove> moves_;
  Status unmapped_;  // why something could not be mapped
  DeviceExports exports_;
  PeerMaps maps_;
  std::unique_ptr<DeviceWorker> worker_;
  bool working_ = false;  // something is given to the device that the worker's end has not passed behind
  int numbered_device_ = -1;
  std::uint64_t device_number_ = 0;  // of that one
};

}  // namespace plait::tl

// The runs of an operator on the devices of a node's ranks: each rank's device computes the rank's tiles in one kernel
// and stores them straight into the memory of the ranks that own them, which is mapped (tl/device/peer_maps.h); who
// ends the last tile of a slice sets the slice's flag in the owner's inbox, memory of the processor's that is pinned.
// The processors carry all else: the announcements by which a run begins, and what ends it (fused/exchange). No kernel
// waits for long, so that several ranks can share a device, and the end of a rank leaves none of them waiting.
//
//   1. A rank announces the run when its program's own work on the device is done, and what it was given is looked at.
//   2. When all have, and none complains, it starts the kernel.
//   3. Where tiles are parts of what is made behind them, they are stored into memory that the owner's device has for
//      them. A sum over ranks: when the flags of all are there they are added in the order of the ranks, and the sums
//      are stored into the outputs: each sum is made once, all ranks have the same bits. An all-gather: what has come
//      is multiplied. Where the operator can, the same kernel does it, piece by piece as parts come; it waits for a
//      time alone, for as short a one as ranks share its device. Else, and where that has passed, a second kernel does
//      it, or what is left of it, when all have come.
//   4. The run is over for a rank when its device is through and the flags of all that is to come to it are there.
//
// The scheme: Punniyamurthy et al., SC '24 (tl/device_tiles.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/exchange/exchange.h"
#include "fused/layer.h"
#include "fused/tiles/tiles.h"
#include "fused/workers/crew.h"
#include "runtime/oob/oob.h"
#include "runtime/team/team.h"
#include "tl/device/peer_maps.h"
#include "tl/device_driver.h"

namespace plait::fused {

// What kernels take at once, where all addresses are multiples of it.
inline constexpr std::uintptr_t vector_bytes = 16;
inline bool begins_a_vector(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % vector_bytes == 0;
}

// The parts of what is this rank's own, and the outputs that take what is made of them; both by rank, as this rank's
// device reaches them.
struct DeviceParts {
  std::vector<const std::byte*> parts;
  std::vector<std::byte*> outputs;
};

// What a kernel needs that follows parts as they come.
struct DeviceArrivals {
  const std::vector<const std::byte*>& parts;      // by rank; nullptr: of this rank there is none
  const std::vector<const std::uint32_t*>& flags;  // by rank, by slice; pinned
  std::uint32_t* missed = nullptr;                 // pinned: set to the run where something is missing at its end
  std::uint64_t most_wait_ns = 0;                  // of a workgroup, in all
};

// How an operator adds a sum's parts, so many f32 at a time.
class RankPlaces {
 public:
  // Whether devices add the parts of so many ranks.
  static Status can_add(const DeviceGround& ground, int ranks);
  // Throws where memory is short.
  explicit RankPlaces(int ranks) : parts_(static_cast<std::size_t>(ranks)) {
    outputs_.reserve(static_cast<std::size_t>(ranks));
  }
  // From so many bytes into each part, to so many bytes into each output that there is. In place until the next call.
  struct Numbers {
    std::uint64_t in_part = 0, in_output = 0, count = 0;
  };
  DeviceReduction sum_of(const DeviceParts& sum, const Numbers& numbers);

 private:
  std::vector<const std::byte*> parts_;
  std::vector<std::byte*> outputs_;
};

// The owners in the order in which they are served, and by rank where this rank's part goes.
struct DeviceOwners {
  const std::vector<int>& order;
  const std::vector<std::byte*>& bases;
};

// An operator on a device.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  // What its kernels need beside the tiles. Once, before any run.
  virtual Status prepare(const DeviceGround& ground) = 0;
  // Where the tile's cells are, and where they go: `base` is the owner's output or the place of this rank's part. Of
  // tiles that are the same in every run.
  virtual DeviceTile place(int owner, const Slice& slice, const Tile& tile, std::byte* base) const;

  // ---- A run ----

  // Has the device look at what was given.
  virtual Status look(DeviceStream& /*stream*/) { return {}; }
  // Whether that is wrong; once the device has looked.
  virtual Result<bool> complains(Complaint& complaint) = 0;
  // `aligned`: all cells that are written begin at multiples of vector_bytes.
  virtual Status compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) = 0;
  // Tiles that vary, once all ranks have announced the run: at most as many as the plan has room for. The owner that is
  // `at` in the order has slice `at`.
  virtual void cut(const DeviceOwners& /*owners*/, std::vector<DeviceTile>& /*tiles*/) const {}

  // ---- What follows the parts ----

  // Whether the kernel of the tiles does that as well: it adds them in shares that the run lays out, or goes by what
  // expect() has told it.
  enum class Follows : std::uint8_t { behind, in_shares, as_expected };
  virtual Follows follows() const { return Follows::behind; }
  // in_shares: how far apart rows of cells are in an output.
  virtual std::uint64_t output_pitch() const { return 0; }
  // as_expected: once, before any run. What it is told stays.
  virtual Status expect(const DeviceArrivals& /*arrivals*/) { return {}; }
  // When all parts have come: all of it, or what that kernel has left. Sums: in the order of the ranks.
  virtual Status follow(DeviceStream& stream, const DeviceParts& parts);
};

// Tiles are the outputs' own, or parts of what the owner makes, for itself or for the outputs of all.
enum class PartsTo : std::uint8_t { nobody, owner, all };

struct DeviceRunRequest {
  DeviceGround ground;                // no driver: the rank has nothing to compute, nor to own
  std::vector<Pane> panes;            // by owner
  std::vector<int> order;             // of the owners
  std::vector<std::uint32_t> coming;  // by source: slices that come from it
  std::byte* output = nullptr;
  std::uint64_t output_bytes = 0;
  PartsTo parts_to = PartsTo::nobody;
  std::uint64_t part_bytes = 0;              // one rank's part of what is this rank's own
  std::vector<std::uint64_t> part_bytes_of;  // by rank: the same of each
  bool has_own_part = true;                  // whether a rank has a part of its own
  // Tiles that vary from run to run (for parts alone): the panes have a slice for each owner then, and no tiles.
  bool varies = false;
  std::uint64_t most_tiles = 0;  // of a run
  ExchangeRequest words = {};    // the notes and the listener, where there are some
  bool crowded = true;
};

class DeviceRun {
 public:
  // Collective over the ranks; blocks. nullptr on all of them where devices cannot: some cannot reach others' memory,
  // or lack some of their own. `team`: nullptr where this rank is alone. `work` stays.
  static Result<std::unique_ptr<DeviceRun>> make(Team* team, Oob& oob, DeviceWork& work, DeviceRunRequest request);
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  Status may_start() const;
  // Does not block. What the program has given its default streams so far comes first.
  Status start();
  // Ends it. After a failure there are no more runs.
  Status wait();
  const std::optional<Exchange::Refusal>& refusal() const { return exchange_->refusal(); }
  Exchange& exchange() { return *exchange_; }

  std::size_t slices() const { return slice_count_; }
  std::size_t tiles() const { return tile_count_; }
  // The device memory that the plan has.
  std::uint64_t reserved_bytes() const;

 private:
  // What a rank tells the others of its memory.
  struct Offer {
    std::uint64_t process = 0;
    std::uint64_t able = 0;  // 1: it can, so far
    std::uint64_t device = 0;
    SharedPlace output, parts;
  };

  DeviceRun(Team* team, Oob& oob, DeviceWork& work, DeviceRunRequest request);
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  bool computes() const { return request_.ground.driver != nullptr; }
  // Where a rank's part is among an owner's, and how many there are.
  std::size_t place_of(int source, int owner) const {
    return index(request_.has_own_part || source < owner ? source : source - 1);
  }
  std::size_t part_count() const { return index(request_.has_own_part ? ranks_ : ranks_ - 1); }
  bool takes_parts() const { return request_.parts_to != PartsTo::nobody; }

  // ---- Making ----
  ExchangeRequest flags_alone();
  Status prepare_own(Offer& offer);
  Status reach_all(const std::vector<Offer>& offers);
  Result<std::byte*> reach(const Offer& offer, const SharedPlace& place);
  Status pin_inboxes();
  Status lay_out_tiles();
  Status prepare_following(const std::vector<DeviceTile>& tiles);
  Status prepare_shares(const std::vector<DeviceTile>& tiles, const DeviceArrivals& arrivals);
  Status pin_inbox(std::span<std::byte> inbox);
  Status reserve_for_runs(const std::vector<DeviceSlice>& slices);
  Result<bool> all_can(Oob& oob, const Status& mine);

  // ---- A run ----
  Status run();
  Status announce();
  Status cut_tiles();
  Status compute();
  Status follow_parts();
  Status follow_when_all_came();
  bool were_followed() const;
  // Whether the device is through with all that it was given.
  Result<bool> is_idle();
  bool all_came();
  bool came(int source, std::uint32_t until);
  template <class Done>
  Status wait_until(Done&& done);

  Team* team_;
  DeviceWork& work_;
  DeviceRunRequest request_;
  int rank_ = 0, ranks_ = 1;
  DeviceExports exports_;
  PeerMaps maps_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<Pin> pins_;  // of inboxes that the exchange keeps
  DeviceBytes parts_, tiles_, slices_, counters_;
  std::uint32_t first_own_slice_ = 0;
  std::size_t tile_count_ = 0, slice_count_ = 0;
  // Tiles that vary: as they were cut, and on their way to the device.
  std::vector<DeviceTile> cut_tiles_;
  std::vector<DeviceSlice> cut_slices_;
  PinnedBytes sent_tiles_, sent_slices_;
  bool aligned_ = true;                            // all tiles' targets
  std::vector<std::byte*> outputs_, their_parts_;  // by rank: its output; this rank's place among its parts
  DeviceParts sum_;
  // Of a kernel that follows what comes.
  bool follows_ = false;
  DeviceBytes own_flags_, flag_lists_, output_list_;
  PinnedBytes missed_;
  DeviceShares shares_;
  bool shares_device_ = false;  // some ranks share one
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceEvent> program_, end_;

  // Of the run at hand.
  bool started_ = false;
  bool working_ = false;             // something is given to the device that the event has not passed behind
  std::vector<std::uint32_t> seen_;  // by source: slices known to have come
  Status start_failure_;
  Status failure_;
};

}  // namespace plait::fused

// The steps of a communicator's set-up, in the order in which its ranks take them together.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/layer.h"
#include "runtime/oob/node_oob.h"
#include "runtime/team/channel_groups.h"
#include "runtime/team/connected_channels.h"
#include "runtime/team/network_rates.h"
#include "runtime/team/own_rails.h"
#include "runtime/team/rail_network.h"
#include "runtime/team/single_copy.h"
#include "runtime/team/sockets.h"
#include "runtime/team/team.h"
#include "runtime/team/team_request.h"
#include "tl/connector.h"
#include "tl/shm/copy_probe.h"
#include "tl/shm/shared_heap_buffers.h"
#include "tl/shm/shm_channel.h"
#include "tl/shm/xpmem_buffers.h"
#include "topo/location.h"

namespace plait::runtime {

// ---- What the ranks tell each other ----

// Where a rank waits for connections before it knows the others.
struct EarlyListener {
  ListenerEntry entry;
  std::uint64_t network;  // of the rail
};

struct Entry {
  Location location;
  std::uint64_t fingerprint;
  std::int64_t ranks_on_node;  // of the job; 0: not known
  std::uint64_t mapped_bytes;
  std::uint64_t token;           // rank 0's tells this communicator from others, earlier ones included
  std::uint64_t tuning_records;  // 1: this rank knows some, and would tell them as rank 0
  std::uint64_t devices;         // 1: a device's driver is in this rank's process
  std::uint64_t threaded;        // 1: several threads may move this rank's operations on
  EarlyListener listener;
  NetworkRates network;  // as this rank knows it from earlier communicators
  SegmentOffer steps;    // where its node's ranks can meet, should it be the first of them; not reserved yet
};

// How to attach to a segment, and a word to find in this process's memory.
struct Offer {
  std::int32_t process;
  SegmentOffer segment;  // of the node's first rank
  std::uint64_t word_address;
  std::uint64_t word;
  SharedHeapOffer shared_heap;
  SingleCopySizes known;        // from earlier communicators
  std::uint64_t probe_address;  // of a ProbeSource; 0: this rank has none
  std::int64_t xpmem_segment;   // 0: this rank has none
};

// What a node's first rank tells the others of all ranks.
struct NodeSummary {
  std::uint64_t well;  // 0: something is missing on some node
  std::uint64_t same_settings, affordable, devices, threaded;
  std::uint64_t token, tuning_records;  // rank 0's
  std::uint64_t fingerprint;            // of the node's ranks
  double siblings, crowding;
  NetworkRates network;
  std::uint64_t image_bytes;  // of the hierarchy
  SegmentOffer table;         // that has it; of no bytes: it is told
};

class SetUp {
 public:
  // `oob` and `before` as for set_up(); they stay the caller's where this throws.
  SetUp(TeamRequest request, std::unique_ptr<Oob>& oob, std::unique_ptr<Team>& before);
  Result<std::unique_ptr<Team>> run();
  // After run() has thrown: lets the other ranks know. Returns what this one's set-up has come to.
  Status leave(const std::exception& exception) noexcept;

 private:
  bool may_use(ChannelKind channel) const { return runtime::may_use(request_.channels, channel); }
  bool uses(ChannelKind channel) const { return used_.has(channel); }
  Oob& oob() const { return steps_ != nullptr ? *steps_ : *oob_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Status lowest(bool& mine, bool& other);
  Status agree(const Status& mine, std::string_view failure);
  const Location& location() const;
  Status meet();
  bool may_step_in_memory() const;
  void offer_steps(Entry& mine);
  Status step_in_memory();
  Status open_steps();
  Status meet_all(Entry mine);
  Status meet_by_node(const Entry& mine);
  Status share_by_node(Status state, Oob* leaders, NodeSummary& summary);
  Status gather_node(const Entry& mine, NodeSummary& summary);
  Status lead(Oob& leaders, NodeSummary& summary);
  Status take_hierarchy(const NodeSummary& summary);
  std::size_t among_node(int rank) const;
  Status gather_entries(const Entry& mine, std::vector<Entry>& entries);
  Status failure_meanwhile();
  Status check_entries();
  bool tells_tuning_records() const;
  Status share_tuning_records();
  Surroundings surroundings() const;
  void find_groups(ChannelKind kind);
  bool needs_no_table(ChannelKind kind) const;
  Status choose_channels();
  Status connect_channels();
  Result<bool> connect(ChannelKind kind, Status& cause);
  void listen_early(EarlyListener& mine);
  void take_listeners(std::span<const Entry> entries);
  bool sockets_reach_all(std::span<const Entry> entries) const;
  Status connect_short();
  Status attach_short(std::span<const Offer> offers, const Status& offered);
  Status check_sockets();
  void take_known_network();
  Status connect_all(bool again);
  Status look_at_network();
  std::optional<RateMeter> meter();
  Status measure_network();
  OwnRails& own_rails() const;
  Status connect_rails();
  bool leave_beyond();
  Status open_listeners();
  Status exchange_offers(Offer& mine, std::vector<Offer>& offers, Status& offered);
  Status share_memory();
  Status share_buffers(std::span<const Offer> offers);
  Status attach_peers(std::span<const Offer> offers);
  std::vector<std::size_t> segment_sizes() const;
  Status offer_segment(Offer& offer);
  void offer_single_copy(Offer& offer);
  Status take_segment(std::span<const Offer> offers);
  bool single_copy_works(std::span<const Offer> offers) const;
  Status choose_single_copy(std::span<const Offer> offers, bool kernel);
  Result<SingleCopySizes> measure_single_copy(std::span<const Offer> offers, bool kernel);
  bool measures_single_copy() const;
  SingleCopySizes own_measurement(std::span<const Offer> offers, bool kernel) const;
  std::size_t own_index() const;
  Status open_shm(bool single_copy);
  Status finish(std::unique_ptr<Team>& team);
  Status meet_neighbors(Team& team);
  std::unique_ptr<CommunicatorTrace> make_trace() const;
  bool yields() const;
  Routes routes() const { return groups_.routes(used_); }
  void take_measured(Machine& machine) const;
  PlannerOptions planner_options() const;
  std::unique_ptr<FailureNotice> failure_notice() const;

  TeamRequest request_;
  std::unique_ptr<Oob> oob_;
  int rank_ = 0, ranks_ = 1;
  Connections connections_;
  std::unique_ptr<Team> before_;              // what this set-up replaces; nullptr: nothing, or no longer
  bool replaces_ = false;                     // it replaces something
  bool devices_ = false;                      // some rank has a device's driver in its process
  bool all_devices_ = false;                  // each has; not known where the ranks met by node
  bool threaded_ = false;                     // on some rank
  bool met_ = false;                          // all ranks have come
  bool short_;                                // only what short calls need
  std::unique_ptr<CommunicatorTrace> trace_;  // of what this set-up replaces
  std::optional<FirstRail> first_rail_;       // of a short set-up
  std::unique_ptr<Channel> short_channel_;    // over sockets alone
  // Once the ranks have met, further steps may go through their nodes' memory.
  SharedSegment step_memory_;       // this rank's own, or its node's
  SegmentOffer step_offer_;         // of the node's first rank
  std::unique_ptr<NodeOob> steps_;  // nullptr: by the oob of all
  // Where the ranks are many each knows those of its node alone, and asks these by an oob of their own.
  bool by_node_ = false;
  std::unique_ptr<Oob> node_;             // nullptr: by the oob of all
  std::vector<int> node_ranks_;           // ascending, as they are in it
  std::shared_ptr<SharedSegment> table_;  // that has the hierarchy, once a node
  std::vector<Location> locations_;       // by rank; none where the ranks are many
  std::vector<Location> near_;            // of `neighbours_`
  double crowding_ = 1;                   // ranks_per_core()
  bool same_settings_ = true, affordable_ = true;
  bool tuning_records_told_ = false;  // by rank 0
  double siblings_ = 1;
  std::uint64_t token_ = 0;
  Hierarchy hierarchy_;
  std::vector<int> neighbours_;  // ranks of this node, in vrank order
  SharedSegment segment_;
  std::unique_ptr<ProbeSource> probe_source_;
  std::unique_ptr<XpmemBuffers> xpmem_;  // until it is known whether it is worth while: on all ranks or on none
  SingleCopySizes sizes_;
  SingleCopySizes known_sizes_;  // from earlier communicators, the same on all ranks
  bool reachable_ = false;       // by XPMEM: on all ranks
  // Of the channels that may be used and are not known to fail, each that connects ranks which are not connected for
  // certain; and of those what connects the ranks, once that is decided. tcp is here where sockets are all that there
  // is, not where they take the short messages of ucx.
  ChannelSet candidates_, used_;
  ChannelGroups groups_;
  ConnectedChannels registered_;
  std::optional<RailNetwork> rails_;  // where ucx is used
  Sockets sockets_;
  std::vector<TuningRecord> known_;  // from earlier jobs, the same on all ranks
  NetworkRates known_network_;       // the same on all ranks
  NetworkRates network_;             // zeros: there is no network, or nothing is known of it
};

}  // namespace plait::runtime

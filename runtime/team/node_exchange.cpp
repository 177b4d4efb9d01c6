// How the ranks of a large communicator meet: those of a node tell each other all, its first rank and those of the
// other nodes what all need, and the hierarchy that comes of it stands once a node, in memory that its ranks share.
//
// A rank that cannot go on leaves the meetings of its node, of the first ranks and of all. The others hear of it in one
// of them, take part in those that are left as ranks with nothing to say, and agree in the end.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "core/log.h"
#include "runtime/job/job.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/set_up_steps.h"
#include "tl/shm/shm_channel.h"
#include "topo/crowding.h"

namespace plait::runtime {
namespace {

constexpr std::string_view by_node = "exchange their locations by node";

// What the first ranks tell each other of their nodes: what all of its ranks have in common, and where each is.
struct NodeEntry {
  NodeSummary summary;
  HostId host;
  std::uint64_t machine, leaf_switch;
  std::int64_t ranks;
  double siblings;
};
struct RankEntry {
  std::int32_t rank, package, numa, l3, core, gpu, island, cores_allowed;
};

int colour_of(const HostId& host) {
  const std::uint64_t mixed = (host.high ^ host.low * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
  return static_cast<int>(mixed >> 33);
}

RankEntry rank_entry(int rank, const Location& location) {
  return {rank,          location.package, location.numa,   location.l3,
          location.core, location.gpu,     location.island, location.cores_allowed};
}

Location location_of(const NodeEntry& node, const RankEntry& rank) {
  Location location;
  location.host = node.host;
  location.machine = node.machine;
  location.leaf_switch = node.leaf_switch;
  location.package = rank.package;
  location.numa = rank.numa;
  location.l3 = rank.l3;
  location.core = rank.core;
  location.gpu = rank.gpu;
  location.island = rank.island;
  location.cores_allowed = rank.cores_allowed;
  return location;
}

// By rank, from what the nodes' first ranks have told: `rows` of `most` entries each.
std::vector<Location> locations_of(std::span<const NodeEntry> nodes, std::span<const RankEntry> rows, std::size_t most,
                                   std::size_t ranks) {
  std::vector<Location> locations(ranks);
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (std::size_t local = 0; local < static_cast<std::size_t>(nodes[node].ranks); ++local) {
      const RankEntry& rank = rows[node * most + local];
      locations[static_cast<std::size_t>(rank.rank)] = location_of(nodes[node], rank);
    }
  return locations;
}

// What holds where it holds on all nodes. The first node is rank 0's.
NodeSummary summary_of(std::span<const NodeEntry> nodes) {
  NodeSummary all = nodes.front().summary;
  for (const NodeEntry& node : nodes) {
    const NodeSummary& one = node.summary;
    all.well &= one.well;
    all.same_settings &= one.same_settings & static_cast<std::uint64_t>(one.fingerprint == all.fingerprint);
    all.affordable &= one.affordable;
    all.devices |= one.devices;
    all.threaded |= one.threaded;
    all.siblings = std::max(all.siblings, one.siblings);
    all.network = agreed_rates(all.network, one.network);
  }
  return all;
}

std::shared_ptr<const int> in_own_memory(std::size_t bytes) {
  return std::shared_ptr<const int>(new int[(bytes + sizeof(int) - 1) / sizeof(int)]{},
                                    std::default_delete<const int[]>());
}

}  // namespace

// The node's rank of that number.
std::size_t SetUp::among_node(int rank) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(node_ranks_, rank) - node_ranks_.begin());
}

// All are of one host, unless the colours of two have met.
Status SetUp::gather_node(const Entry& mine, NodeSummary& summary) {
  const auto members = static_cast<std::size_t>(node_->ranks());
  struct Told {
    std::int64_t rank;
    Entry entry;
  };
  std::vector<Told> told(members);
  Told own{rank_, mine};
  if (node_->rank() == 0 && may_step_in_memory()) offer_steps(own.entry);
  if (Status met = node_->gather_all(&own, sizeof own, told.data(), by_node); !met.ok()) return met;
  summary.well = 1;
  summary.same_settings = summary.affordable = 1;
  summary.fingerprint = mine.fingerprint;
  summary.token = told.front().entry.token;
  summary.tuning_records = told.front().entry.tuning_records;
  summary.network = mine.network;
  step_offer_ = told.front().entry.steps;
  near_.clear();
  node_ranks_.clear();
  std::int64_t on_node = 0;
  for (const auto& [rank, entry] : told) {
    node_ranks_.push_back(static_cast<int>(rank));
    near_.push_back(entry.location);
    summary.well &= static_cast<std::uint64_t>(entry.location.host == mine.location.host);
    summary.same_settings &= static_cast<std::uint64_t>(entry.fingerprint == mine.fingerprint);
    summary.affordable &= static_cast<std::uint64_t>(entry.mapped_bytes < job().most_mapped_bytes);
    summary.devices |= entry.devices;
    summary.threaded |= entry.threaded;
    summary.network = agreed_rates(summary.network, entry.network);
    on_node = std::max(on_node, entry.ranks_on_node);
  }
  summary.siblings = std::max(1.0, static_cast<double>(on_node) / static_cast<double>(members));
  return {};
}

// Of a node's first rank: comes to the hierarchy of all, and puts it where the node's others find it.
Status SetUp::lead(Oob& leaders, NodeSummary& summary) {
  const auto nodes = static_cast<std::size_t>(leaders.ranks());
  NodeEntry mine{.summary = summary,
                 .host = near_.empty() ? HostId() : near_.front().host,
                 .machine = near_.empty() ? 0 : near_.front().machine,
                 .leaf_switch = near_.empty() ? 0 : near_.front().leaf_switch,
                 .ranks = static_cast<std::int64_t>(near_.size()),
                 .siblings = summary.siblings};
  std::vector<NodeEntry> told(nodes);
  if (Status met = leaders.gather_all(&mine, sizeof mine, told.data(), by_node); !met.ok()) return met;
  summary = summary_of(told);
  if (summary.well == 0) return {Code::unavailable, "the locations of a node's ranks are not known"};
  std::size_t most = 0;
  for (const NodeEntry& node : told) most = std::max(most, static_cast<std::size_t>(node.ranks));
  std::vector<RankEntry> row(most), rows(most * nodes);
  for (std::size_t local = 0; local < near_.size(); ++local) row[local] = rank_entry(node_ranks_[local], near_[local]);
  if (Status met = leaders.gather_all(row.data(), row.size() * sizeof(RankEntry), rows.data(), by_node); !met.ok())
    return met;
  const std::vector<Location> locations = locations_of(told, rows, most, static_cast<std::size_t>(ranks_));
  summary.crowding = ranks_per_core(locations);
  hierarchy_ = Hierarchy::from_locations(locations);
  summary.image_bytes = hierarchy_.image().size_bytes();
  if (node_->ranks() < 2) return {};
  Result<SharedSegment> table = SharedSegment::create(summary.image_bytes);
  if (!table.ok()) {
    debug("set-up: " + table.status().message());
    return {};
  }
  std::memcpy(table->data(), hierarchy_.image().data(), summary.image_bytes);
  summary.table = table->offer();
  table_ = std::make_shared<SharedSegment>(std::move(*table));
  return {};
}

// In the node's table, or where the node shares no memory in this rank's own.
Status SetUp::take_hierarchy(const NodeSummary& summary) {
  const bool leads = node_->rank() == 0;
  if (summary.table.bytes == 0) {
    if (node_->ranks() < 2) return {};
    const std::shared_ptr<const int> own = in_own_memory(summary.image_bytes);
    int* image = const_cast<int*>(own.get());
    if (leads) std::memcpy(image, hierarchy_.image().data(), summary.image_bytes);
    if (Status met = node_->tell_all(image, summary.image_bytes, by_node); !met.ok()) return met;
    if (!leads) hierarchy_ = Hierarchy::of_image(own);
    return {};
  }
  const Status attached = attempt([&]() -> Status {
    if (leads) return {};
    Result<SharedSegment> table = SharedSegment::attach(summary.table);
    if (table.ok()) table_ = std::make_shared<SharedSegment>(std::move(*table));
    return table.status();
  });
  if (Status met = node_->meet(by_node); !met.ok()) return met;
  if (!attached.ok()) return attached;
  table_->close_descriptor();
  hierarchy_ = Hierarchy::of_image({table_, reinterpret_cast<const int*>(table_->data())});
  return {};
}

// After the first ranks know each other. Fails on this rank alone, or on some.
Status SetUp::share_by_node(Status state, Oob* leaders, NodeSummary& summary) {
  const bool node_meets = state.ok();
  if (leaders != nullptr)
    if (Status led = lead(*leaders, summary); !led.ok()) {
      summary.well = 0;
      if (state.ok()) state = led;
    }
  if (!node_meets) return state;
  if (Status met = node_->tell_all(&summary, sizeof summary, by_node); !met.ok()) return met;
  if (summary.well == 0) return {Code::unavailable, "the locations of a node's ranks are not known"};
  return take_hierarchy(summary);
}

Status SetUp::meet_by_node(const Entry& mine) {
  if (before_ != nullptr) {
    const std::byte here{};
    std::vector<std::byte> all(static_cast<std::size_t>(ranks_));
    Status met =
        oob().gather_all_unless([this] { return failure_meanwhile(); }, &here, sizeof here, all.data(), by_node);
    if (!met.ok()) return met;
  }
  met_ = true;
  if (Status met = oob().part(colour_of(mine.location.host), node_, by_node); !met.ok()) return met;
  std::unique_ptr<Oob> leaders;
  NodeSummary summary{};
  Status state;
  try {
    state = gather_node(mine, summary);
    const bool leads = node_->rank() == 0;
    if (Status met = oob().part(leads ? std::optional(0) : std::nullopt, leaders, by_node); !met.ok()) return met;
    state = share_by_node(std::move(state), leaders.get(), summary);
  } catch (const std::exception&) {
    for (Oob* part : {node_.get(), leaders.get()}) {
      if (part == nullptr) continue;
      part->withdraw();
      part->abandon();
    }
    throw;
  }
  if (Status met = agree(state, "the ranks could not exchange their locations by node"); !met.ok()) return met;
  same_settings_ = summary.same_settings != 0;
  affordable_ = summary.affordable != 0;
  devices_ = summary.devices != 0;
  threaded_ = summary.threaded != 0;
  known_network_ = summary.network;
  siblings_ = summary.siblings;
  crowding_ = summary.crowding;
  token_ = summary.token;
  tuning_records_told_ = summary.tuning_records != 0;
  neighbours_ = hierarchy_.ranks_on_node(hierarchy_.node_of(rank_));
  std::vector<Location> by_vrank;
  for (const int rank : neighbours_) by_vrank.push_back(near_[among_node(rank)]);
  near_ = std::move(by_vrank);
  return check_entries();
}

}  // namespace plait::runtime

#include "runtime/progress/persistent_set_up.h"

#include <array>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "core/log.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {
namespace {

NodeLeaders leaders_of(const Hierarchy& hierarchy, int rank, bool share_segment) {
  NodeLeaders nodes{.leaders = {}, .own = 0, .rank = rank, .ranks = 1};
  if (!share_segment) {
    for (int other = 0; other < hierarchy.ranks(); ++other) nodes.leaders.push_back(other);
    nodes.own = rank;
    return nodes;
  }
  for (int node = 0; node < hierarchy.nodes(); ++node) nodes.leaders.push_back(hierarchy.ranks_on_node(node).front());
  nodes.own = hierarchy.node_of(rank);
  nodes.ranks = static_cast<std::uint32_t>(hierarchy.ranks_on_node(nodes.own).size());
  return nodes;
}

Channel* network_of(const Team& team) { return team.connections.of(team.routes().beyond()); }

// The node's leader makes it, the others attach.
Status share_table(Communicator& communicator, SpaceConnections& space, const NodeLeaders& nodes) {
  Oob& oob = *space.team->oob;
  const bool first = nodes.leaders[static_cast<std::size_t>(nodes.own)] == nodes.rank;
  Channel* channel = space.between_leaders != nullptr ? network_of(*space.between_leaders) : nullptr;
  SharedSegment table;
  SegmentOffer mine;  // of the table
  Status shared = attempt([&]() -> Status {
    if (!first) return {};
    Result<SharedSegment> segment = SharedSegment::create(StartOrder::table_bytes);
    if (!segment.ok()) return segment.status();
    table = std::move(*segment);
    mine = table.offer();
    return {};
  });
  std::vector<SegmentOffer> offers;
  const Status room = attempt([&]() -> Status {
    offers.resize(static_cast<std::size_t>(communicator.ranks));
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  if (Status met = oob.gather_all(&mine, sizeof mine, offers.data(), "exchange their tables"); !met.ok()) return met;
  if (shared.ok())
    shared = attempt([&]() -> Status {
      const SegmentOffer& offer = offers[static_cast<std::size_t>(nodes.leaders[static_cast<std::size_t>(nodes.own)])];
      Result<SharedSegment> segment = first ? std::move(table) : SharedSegment::attach(offer);
      if (!segment.ok()) return segment.status();
      if (nodes.leaders.size() > 1 && channel == nullptr)
        return {Code::unavailable, "the nodes have no channel to agree over"};
      space.order = std::make_unique<StartOrder>(nodes, std::move(*segment), channel);
      return {};
    });
  const std::array<int, 1> well = {shared.ok() ? 1 : 0};
  std::array<int, 1> all_well = {0};
  if (Status met = reduce_all(oob, well, all_well, Op::min, "share a table"); !met.ok()) return met;
  if (all_well[0] == 0) {
    if (!shared.ok()) debug("set-up of persistent collectives: " + shared.message());
    return {Code::unavailable, "the ranks of a node could not share a table"};
  }
  space.order->all_attached();
  return {};
}

Status connect(Communicator& communicator, SpaceConnections& space) {
  Result<std::unique_ptr<Team>> made = communicator.connect(TeamExtent::all_calls, nullptr);
  if (!made.ok()) return made.status();
  Team& team = **made;
  NodeLeaders nodes;
  const Status placed = attempt([&]() -> Status {
    nodes = leaders_of(team.planner.hierarchy(), communicator.rank, team.routes().kinds().any(&ChannelTraits::segment));
    return {};
  });
  if (Status status = team.oob->go_on_together(placed); !status.ok()) return status;
  if (nodes.leaders.size() > 1) {
    auto between_leaders = communicator.connect(TeamExtent::short_calls, nullptr);
    if (!between_leaders.ok()) return between_leaders.status();
    space.between_leaders = std::move(*between_leaders);
  }
  space.team = std::move(*made);
  return share_table(communicator, space, nodes);
}

}  // namespace

Result<SpaceConnections> connect_space(Communicator& communicator) noexcept {
  SpaceConnections space;
  Status made = attempt([&] { return connect(communicator, space); });
  if (!made.ok()) return made;
  return space;
}

}  // namespace plait::runtime

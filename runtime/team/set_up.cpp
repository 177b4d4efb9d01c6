#include "runtime/team/set_up.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/attempt.h"
#include "core/log.h"
#include "core/units.h"
#include "runtime/job/job.h"
#include "runtime/job/own_location.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/record/node_counts.h"
#include "runtime/record/report_rows.h"
#include "runtime/team/connectors.h"
#include "runtime/team/network_rates.h"
#include "runtime/team/rail_network.h"
#include "runtime/team/segment_share.h"
#include "runtime/team/set_up_steps.h"
#include "runtime/team/single_copy.h"
#include "tl/device/device_memory.h"
#include "tl/shm/copy_probe.h"
#include "tl/shm/shared_heap_buffers.h"
#include "tl/shm/shm_channel.h"
#include "tl/shm/xpmem_buffers.h"
#include "tl/trace.h"
#include "topo/crowding.h"
#include "topo/discovery.h"
#include "topo/shape.h"

namespace plait::runtime {

namespace {

// Ranks of the job on a node over those of the communicator, on the node where they are most.
double most_siblings(std::span<const Entry> entries) {
  std::map<HostId, int> members;
  for (const Entry& entry : entries) ++members[entry.location.host];
  double most = 1;
  for (const Entry& entry : entries)
    most = std::max(most, static_cast<double>(entry.ranks_on_node) / members[entry.location.host]);
  return most;
}

}  // namespace

SetUp::SetUp(TeamRequest request, std::unique_ptr<Oob>& oob, std::unique_ptr<Team>& before)
    : request_(std::move(request)), short_(request_.extent == TeamExtent::short_calls && job().config.plan.empty()) {
  before_ = std::move(before);
  replaces_ = before_ != nullptr;
  oob_ = std::move(replaces_ ? before_->oob : oob);
  rank_ = oob_->rank();
  ranks_ = oob_->ranks();
}

// Both become what holds on all ranks.
Status SetUp::lowest(bool& mine, bool& other) {
  const std::array<int, 2> own = {mine, other};
  std::array<int, 2> all = {0, 0};
  if (Status met = reduce_all(oob(), own, all, Op::min, "agree"); !met.ok()) return met;
  mine = all[0] != 0;
  other = all[1] != 0;
  return {};
}

Status SetUp::agree(const Status& mine, std::string_view failure) {
  bool well = mine.ok(), unused = true;
  if (Status met = lowest(well, unused); !met.ok()) return met;
  if (!mine.ok()) debug("set-up: " + mine.message());
  return well ? Status() : Status(Code::unavailable, std::string(failure));
}

const Location& SetUp::location() const {
  if (request_.location) return *request_.location;
  return short_ ? own_rough_location() : own_location();
}

Status SetUp::meet() {
  Entry mine{.location = location(),
             .fingerprint = job().fingerprint,
             .ranks_on_node = job().ranks_on_node,
             .mapped_bytes = mapped_segment_bytes() - (before_ != nullptr ? before_->connections.share.bytes() : 0),
             .token = monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 40,
             .tuning_records = tells_tuning_records() ? 1u : 0u,
             .devices = look_for_device_driver() ? 1u : 0u,
             .threaded = threaded() ? 1u : 0u,
             .listener = {},
             .network = known_network_rates(),
             .steps = {}};
  by_node_ = ranks_ > job().config.flat_ranks;
  if (by_node_) short_ = false;
  if (by_node_) {
    Status met = meet_by_node(mine);
    if (met.code() != Code::unsupported || node_ != nullptr) return met;
    by_node_ = false;
  }
  return meet_all(mine);
}

Status SetUp::meet_all(Entry mine) {
  if (short_) listen_early(mine.listener);
  if (may_step_in_memory()) offer_steps(mine);
  std::vector<Entry> entries;
  if (Status status = gather_entries(mine, entries); !status.ok()) return status;
  all_devices_ = true;
  locations_.reserve(entries.size());
  for (const Entry& entry : entries) {
    locations_.push_back(entry.location);
    same_settings_ &= entry.fingerprint == mine.fingerprint;
    devices_ |= entry.devices != 0;
    threaded_ |= entry.threaded != 0;
    all_devices_ &= entry.devices != 0;
    affordable_ &= entry.mapped_bytes < job().most_mapped_bytes;
    known_network_ = agreed_rates(known_network_, entry.network);
  }
  siblings_ = most_siblings(entries);
  crowding_ = ranks_per_core(locations_);
  token_ = entries.front().token;
  tuning_records_told_ = entries.front().tuning_records != 0;
  hierarchy_ = Hierarchy::from_locations(locations_);
  neighbours_ = hierarchy_.ranks_on_node(hierarchy_.node_of(rank_));
  near_.clear();
  for (const int rank : neighbours_) near_.push_back(locations_[static_cast<std::size_t>(rank)]);
  step_offer_ = entries[static_cast<std::size_t>(neighbours_.front())].steps;
  if (Status status = check_entries(); !status.ok()) return status;
  if (short_) take_listeners(entries);
  return {};
}

// From the entries alone, which all ranks have: no agreement needed.
Status SetUp::check_entries() {
  if (!same_settings_) return {Code::invalid, "settings differ between ranks"};
  return choose_channels();
}

// Whether ranks outnumber the processing units that they may use. Those bound as this one is compete with it; ranks
// outside this communicator are taken to be bound in the same way.
bool SetUp::yields() const {
  const Location& mine = near_[own_index()];
  int here = 0, rivals = 0;
  for (const Location& other : by_node_ ? near_ : locations_) {
    if (other.machine != mine.machine) continue;
    ++here;
    if (other.package == mine.package && other.numa == mine.numa && other.l3 == mine.l3 && other.core == mine.core)
      ++rivals;
  }
  const int in_all = std::max(job().ranks_on_machine, here);
  return static_cast<long>(in_all) * rivals > static_cast<long>(mine.cores_allowed) * std::max(here, 1);
}

void SetUp::take_measured(Machine& machine) const {
  if (rails_) machine.levels.front().take_rails(rails_->shares());
  if (network_.node > 0) machine.levels.front().port_seconds_per_byte = network_.node;
  if (network_.way > 0) machine.levels.front().latency = network_.way;
  if (network_.across_switches > 0) {
    LinkLevel between_switches = machine.levels.front();
    between_switches.name = name(LevelKind::leaf_switch);
    between_switches.port_seconds_per_byte = network_.across_switches;
    machine.levels.insert(machine.levels.begin(), between_switches);
  }
}

PlannerOptions SetUp::planner_options() const {
  const Config& config = job().config;
  PlannerOptions options;
  options.forced_plan = config.plan;
  options.table = job().table;
  options.chunk_bytes = config.chunk_bytes;
  options.host_when_faster = config.host_when_faster;
  options.host = job().host;
  options.routes = routes();
  options.siblings = siblings_;
  options.warns = job().first_rank;
  options.staged = devices_;
  options.rails = rails_ ? rails_->rails() : traits(options.routes->beyond()).rails ? 1 : 0;
  // What is measured differs from run to run, and the plans that follow from it.
  if (config.reproducible != Reproducible::run) take_measured(options.machine);
  options.machine.ranks_per_core = crowding_;
  note_links(network_.node, options.machine.ranks_per_core);
  return options;
}

// The oob stays out of what this may throw away: it is needed for the agreement afterwards.
Status SetUp::finish(std::unique_ptr<Team>& team) {
  if (uses(ChannelKind::tcp)) connections_.take(std::move(short_channel_));
  if (uses(ChannelKind::ucx))
    connections_.take(sockets_.peers.empty() ? rails_->make_channel()
                                             : with_sockets(sockets_, rank_, *rails_, rails_->make_channel()));
  for (const ChannelKind kind : all_channel_kinds) {
    if (!uses(kind) || registered_.connector(kind) == nullptr) continue;
    Result<std::unique_ptr<Channel>> channel = registered_.take(kind, surroundings());
    if (!channel.ok()) return channel.status();
    connections_.take(std::move(*channel));
  }
  connections_.descriptors = std::move(sockets_.descriptors);
  Connections channels = std::move(connections_);
  const bool yield = yields();
  debug("set-up: " + std::to_string(ranks_) + " ranks " + hierarchy_.describe() + ", siblings " +
        std::to_string(siblings_) + (short_ ? ", for short calls" : ""));
  team = std::make_unique<Team>(failure_notice(), std::move(channels), std::move(hierarchy_), rank_, planner_options(),
                                WaitSettings{.yield = yield, .move_operations_on = request_.move_operations_on});
  team->schedules.count_for(request_.grid);
  // What is fastest over channels of its own is no tuning record for others.
  if (request_.channels.empty())
    team->trials.start(shape_text(team->planner.hierarchy(), siblings_), std::move(known_));
  team->short_calls_only = short_;
  team->posted_learn = !threaded_;
  if (all_devices_ && !short_ && may_use(ChannelKind::cuda) && uses(ChannelKind::shm) &&
      team->planner.hierarchy().nodes() == 1 && static_cast<std::size_t>(ranks_) <= tl::most_device_parties)
    team->device_calls.allow(job().config.device_direct_from);
  if (short_) team->schedules.take_only_short_calls();
  if (rails_) team->network_seconds_per_byte = rails_->seconds_per_byte();
  if (job().tracing) team->trace = trace_ != nullptr ? std::move(trace_) : make_trace();
  return {};
}

// It is for those whose waits the shared memory does not end.
std::unique_ptr<FailureNotice> SetUp::failure_notice() const {
  std::vector<int> near;
  const Routes routes = this->routes();
  for (const int rank : neighbours_)  // a segment is of one node
    if (rank == rank_ || traits(routes.between(rank_, rank)).segment) near.push_back(rank);
  std::ranges::sort(near);
  return oob().make_notice(token_, std::move(near));
}

std::unique_ptr<CommunicatorTrace> SetUp::make_trace() const {
  auto trace = std::make_unique<CommunicatorTrace>();
  const std::string title = !request_.name.empty() ? request_.name : "communicator";
  trace->label = title + ", " + std::to_string(ranks_) + " ranks";
  return trace;
}

// Those who meant to set up less told only roughly where they are.
Status SetUp::connect_all(bool again) {
  if (again) {
    locations_.clear();
    if (Status status = meet(); !status.ok()) return status;
  }
  if (Status status = look_at_network(); !status.ok()) return status;
  return uses(ChannelKind::shm) ? share_memory() : Status();
}

// Lists that do not fit together are the host's to complain of; all else is set up.
Status SetUp::meet_neighbors(Team& team) {
  Result<plan::neighbor::Graph> graph = gather_graph(oob(), *request_.neighbors);
  if (!graph.ok()) return graph.status();
  return agree(attempt([&]() -> Status {
                 if (!can_plan(*graph)) return {};
                 Neighborhood::Surroundings surroundings{.rank = rank_, .node_of = {}, .routes = team.routes()};
                 for (int rank = 0; rank < ranks_; ++rank)
                   surroundings.node_of.push_back(team.planner.hierarchy().node_of(rank));
                 team.neighborhood = std::make_unique<Neighborhood>(std::move(*graph), std::move(surroundings));
                 return {};
               }),
               "a rank could not take in its neighbours");
}

Result<std::unique_ptr<Team>> SetUp::run() {
  const bool wanted_short = short_;
  if (Status status = meet(); !status.ok()) return status;
  if (before_ != nullptr) trace_ = std::move(before_->trace);
  before_.reset();  // all ranks have come here: nobody waits for its messages
  if (Status status = step_in_memory(); !status.ok()) return status;
  if (short_)
    if (Status status = connect_short(); !status.ok()) return status;
  if (!short_)
    if (Status status = connect_all(wanted_short); !status.ok()) return status;
  if (Status status = share_tuning_records(); !status.ok()) return status;
  std::unique_ptr<Team> team;
  const Status finished = attempt([&]() -> Status {
    if (short_ && uses(ChannelKind::shm))
      if (Status status = open_shm(false); !status.ok()) return status;
    return finish(team);
  });
  if (Status status = agree(finished, "a rank could not be set up"); !status.ok()) return status;
  if (!short_ && request_.neighbors)
    if (Status status = meet_neighbors(*team); !status.ok()) return status;
  team->oob = std::move(oob_);
  return team;
}

// Until all ranks have met they look for failures of what is replaced (entry_exchange.cpp), and then for each other.
Status SetUp::leave(const std::exception& exception) noexcept {
  const Status cause = status_of(exception);
  if (before_ != nullptr && !met_) {
    before_->give_up(cause);
  } else if (oob_ != nullptr) {
    oob().withdraw();
    oob().abandon();
  }
  return replaces_ ? Status(Code::peer_failed, "out of memory") : cause;
}

namespace {

// For a rank that has not even begun.
Status leave_at_once(Oob* oob, Team* before, const std::exception& exception) noexcept {
  const Status cause = status_of(exception);
  if (before != nullptr) {
    before->give_up(cause);
    return {Code::peer_failed, "out of memory"};
  }
  oob->withdraw();
  oob->abandon();
  return cause;
}

}  // namespace

Result<std::unique_ptr<Team>> set_up(TeamRequest request, std::unique_ptr<Oob> oob, std::unique_ptr<Team> before) {
  std::optional<SetUp> steps;
  try {
    steps.emplace(std::move(request), oob, before);
    return steps->run();
  } catch (const std::exception& exception) {
    return steps ? steps->leave(exception) : leave_at_once(oob.get(), before.get(), exception);
  }
}

}  // namespace plait::runtime

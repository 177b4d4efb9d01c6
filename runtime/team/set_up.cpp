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

constexpr std::size_t max_mapped_bytes = std::size_t{512} << 20;

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
             .listener = {}};
  if (short_) listen_early(mine.listener);
  std::vector<Entry> entries;
  if (Status status = gather_entries(mine, entries); !status.ok()) return status;
  for (const Entry& entry : entries) {
    locations_.push_back(entry.location);
    same_settings_ &= entry.fingerprint == mine.fingerprint;
    affordable_ &= entry.mapped_bytes < max_mapped_bytes;
  }
  siblings_ = most_siblings(entries);
  token_ = entries.front().token;
  tuning_records_told_ = entries.front().tuning_records != 0;
  if (Status status = check_entries(); !status.ok()) return status;
  if (short_) take_listeners(entries);
  return {};
}

// From the entries alone, which all ranks have: no agreement needed.
Status SetUp::check_entries() {
  if (!same_settings_) return {Code::invalid, "settings differ between ranks"};
  hierarchy_ = Hierarchy::from_locations(locations_);
  neighbours_ = hierarchy_.ranks_on_node(hierarchy_.node_of(rank_));
  return choose_channels();
}

Surroundings SetUp::surroundings() const {
  return {.rank = rank_, .hierarchy = hierarchy_, .locations = locations_, .token = token_};
}

// Of a channel that this set-up can connect, by its connector or by steps of its own.
std::vector<int> SetUp::groups_of(ChannelKind kind) const {
  if (const Connector* connector = registered_.connector(kind)) return connector->groups(surroundings());
  const bool steps_here = kind == ChannelKind::shm || kind == ChannelKind::ucx;
  return steps_here ? usual_groups(kind, hierarchy_) : std::vector<int>();
}

// Shared memory that does not work fails the set-up: what it connects needs nothing else. Sockets come with ucx, or in
// its place.
Status SetUp::choose_channels() {
  candidates_ = used_ = {};
  registered_ = ConnectedChannels(make_connectors(oob()));
  ChannelSet certain;
  for (const ChannelKind kind : all_channel_kinds) {
    if (!may_use(kind) || !traits(kind).any_length) continue;
    groups_.set(kind, groups_of(kind));
    if (!groups_.adds(kind, certain)) continue;
    candidates_.add(kind);
    if (kind == ChannelKind::shm) certain.add(kind);
  }
  if (!groups_.connecting_all(candidates_))
    return {Code::unsupported, "PLAIT_CHANNELS names no channel between the ranks"};
  if (candidates_.has(ChannelKind::shm) && !affordable_)
    return {Code::unavailable, "enough shared memory is in use by other communicators"};
  return {};
}

// The nearest first, each that connects ranks which no nearer one does.
Status SetUp::connect_channels() {
  used_ = {};
  Status cause(Code::unavailable, "no channel connects the ranks");
  for (const ChannelKind kind : all_channel_kinds) {
    if (!candidates_.has(kind) || !groups_.adds(kind, used_)) continue;
    const Result<bool> connected = connect(kind, cause);
    if (!connected.ok()) return connected.status();
    if (*connected)
      used_.add(kind);
    else
      candidates_.remove(kind);
  }
  return groups_.connecting_all(used_) ? Status() : cause;
}

// False on all ranks where it does not work on some; of what is asked for by name, `cause` says why then. Shared memory
// and the sockets of short calls have steps of their own later on.
Result<bool> SetUp::connect(ChannelKind kind, Status& cause) {
  if (registered_.connector(kind) != nullptr) return registered_.connect(kind, oob(), surroundings());
  if (kind != ChannelKind::ucx || rails_) return true;
  cause = connect_rails();
  return cause.ok() || cause.code() == Code::unavailable ? Result<bool>(cause.ok()) : cause;
}

Status SetUp::look_at_network() {
  if (Status status = connect_channels(); !status.ok()) return status;
  if (hierarchy_.nodes() > 1)
    if (Status status = measure_network(); !status.ok()) return status;
  if (!rails_) return {};
  if (Status status = rails_->agree_on_weights(); !status.ok()) return status;
  return may_use(ChannelKind::tcp) ? open_listeners() : Status();
}

// Of what connects the nodes; none: there is nothing to measure by.
std::optional<RateMeter> SetUp::meter() {
  if (rails_) return rails_->meter();
  if (Channel* beyond = registered_.opened(*groups_.connecting_all(used_))) return meter_of(*beyond);
  if (HostMessages* messages = oob().messages()) return messages->meter();
  return {};
}

Status SetUp::measure_network() {
  while (const std::optional<RateMeter> by = meter()) {
    const Result<NetworkRates> measured = network_rates(oob(), hierarchy_, *by);
    if (measured.ok()) {
      network_ = *measured;
      debug("set-up: between nodes a message takes " +
            (network_.way > 0 ? format_seconds(network_.way) : std::string("less than 1 ms")) + ", 1 MiB of bytes " +
            format_seconds(network_.node * (1 << 20)));
      return {};
    }
    if (measured.status().code() != Code::unavailable || !leave_beyond()) return measured.status();
    if (Status status = connect_channels(); !status.ok()) return status;
  }
  return {};
}

// Connections are only to ranks that shared memory does not reach.
Status SetUp::open_listeners() {
  const std::size_t near = uses(ChannelKind::shm) ? neighbours_.size() : 1;
  Result<Sockets> opened = open_sockets(oob(), rank_, static_cast<std::size_t>(ranks_) - near, *rails_);
  if (!opened.ok()) return opened.status();
  sockets_ = std::move(*opened);
  return {};
}

Status SetUp::connect_rails() {
  Result<RailNetwork> connected = RailNetwork::connect(oob(), hierarchy_, locations_);
  if (connected.ok()) {
    rails_ = std::move(*connected);
    debug("set-up: rails " + rails_->names());
    return {};
  }
  debug("set-up: " + connected.status().message());
  if (connected.status().code() == Code::peer_failed) oob().abandon();  // leave_trials()
  return connected.status();
}

// What connects the nodes has broken since its check. False where there is nothing else.
bool SetUp::leave_beyond() {
  const ChannelKind beyond = *groups_.connecting_all(used_);
  ChannelSet others = candidates_;
  others.remove(beyond);
  if (!groups_.connecting_all(others)) return false;
  if (job().first_rank)
    warn(std::string(name(beyond)) + ": the rates of the " + (rails_ ? "rails " + rails_->names() : "network") +
         " cannot be measured: left out");
  rails_.reset();
  registered_.leave(beyond);
  candidates_ = others;
  return true;
}

// What the others measure with, and reach this process's memory by.
void SetUp::offer_single_copy(Offer& offer) {
  const std::string& wanted = job().config.single_copy;
  if ((wanted == "auto" || wanted == "xpmem") && system_xpmem().ok()) {
    const Result<std::int64_t>& segment = own_xpmem_segment(*system_xpmem());
    if (segment.ok()) offer.xpmem_segment = *segment;
  }
  if (!offer.known.known() && job().config.single_copy != "none") {
    probe_source_ = std::make_unique<ProbeSource>();
    offer.probe_address = reinterpret_cast<std::uintptr_t>(probe_source_->data());
  }
}

Status SetUp::offer_segment(Offer& offer) {
  offer.process = static_cast<std::int32_t>(getpid());
  if (neighbours_.size() < 2) return {};
  if (!short_) offer_single_copy(offer);
  if (neighbours_.front() != rank_) return {};
  const std::size_t wanted = job().config.segment_bytes;
  const int ranks = static_cast<int>(neighbours_.size());
  const std::size_t built_in =
      short_ ? SharedSegment::least_bytes(ranks, short_call_bytes) : SharedSegment::default_bytes(ranks);
  const std::size_t bytes = wanted != 0 ? wanted : built_in;
  std::vector<int> numa;
  for (const int rank : neighbours_) numa.push_back(locations_[static_cast<std::size_t>(rank)].numa);
  Result<SharedSegment> made = SharedSegment::create(bytes, numa);
  if (!made.ok()) return made.status();
  segment_ = std::move(*made);
  offer.segment = segment_.offer();
  return {};
}

Status SetUp::take_segment(std::span<const Offer> offers) {
  if (neighbours_.size() < 2 || neighbours_.front() == rank_) return {};
  const Offer& offer = offers[static_cast<std::size_t>(neighbours_.front())];
  if (offer.segment.bytes == 0) return {Code::unavailable, "the node's first rank has no segment"};
  Result<SharedSegment> attached = SharedSegment::attach(offer.segment);
  if (!attached.ok()) return attached.status();
  segment_ = std::move(*attached);
  return {};
}

// Each rank reads the node's first one and is read by it: the same kernel, user and limits stand between all others.
bool SetUp::single_copy_works(std::span<const Offer> offers) const {
  const std::string& wanted = job().config.single_copy;
  if (wanted == "none" || wanted == "xpmem") return false;
  const auto readable = [&](int rank) {
    const Offer& offer = offers[static_cast<std::size_t>(rank)];
    return can_read_process(offer.process, reinterpret_cast<const void*>(offer.word_address), offer.word);
  };
  if (neighbours_.front() != rank_) return readable(neighbours_.front());
  return std::all_of(neighbours_.begin() + 1, neighbours_.end(), readable);
}

std::size_t SetUp::own_index() const {
  return static_cast<std::size_t>(std::ranges::find(neighbours_, rank_) - neighbours_.begin());
}

// From what all ranks have in common: they decide alike. One measurement serves all later communicators of its ranks.
Status SetUp::choose_single_copy(std::span<const Offer> offers, bool kernel) {
  const Config& config = job().config;
  const bool mapped = reachable_;
  sizes_ = forced_single_copy(config, kernel, mapped);
  if (!sizes_.known()) {
    SingleCopySizes measured;
    for (const Offer& offer : offers) {
      measured.kernel_from = std::max(measured.kernel_from, offer.known.kernel_from);
      measured.mapped_from = std::max(measured.mapped_from, offer.known.mapped_from);
    }
    if (!measured.known()) {
      const Result<SingleCopySizes> agreed = measure_single_copy(offers, kernel);
      if (!agreed.ok()) return agreed.status();
      measured = *agreed;
    }
    remember_single_copy(measured);
    sizes_ = allowed_single_copy(measured, config, kernel, mapped);
  }
  if (sizes_.mapped_from != never && xpmem_ != nullptr) {
    xpmem_->set_least_bytes(sizes_.mapped_from);
    connections_.buffers = join_buffers(std::move(connections_.buffers), std::move(xpmem_));
  }
  xpmem_.reset();
  note_single_copy(sizes_.kernel_from, sizes_.mapped_from);
  debug("set-up: single copies by the kernel " + size_text(sizes_.kernel_from) + ", by XPMEM " +
        size_text(sizes_.mapped_from));
  return {};
}

// The ranks of a node measure in pairs, at the same time.
Result<SingleCopySizes> SetUp::measure_single_copy(std::span<const Offer> offers, bool kernel) {
  if (Status met = oob().meet("measure single copies"); !met.ok()) return met;
  SingleCopySizes mine;
  const Status measured = attempt([&]() -> Status {
    mine = own_measurement(offers, kernel);
    return {};
  });
  if (!measured.ok()) mine = {never, never};
  return agree_on_single_copy(oob(), mine);
}

// Not known where this rank has no partner, or its turn on a core would only make others wait.
SingleCopySizes SetUp::own_measurement(std::span<const Offer> offers, bool kernel) const {
  if (neighbours_.size() < 2) return {};
  const std::size_t self = own_index(), partner = self ^ 1;
  const auto at_once = static_cast<std::size_t>(std::max(location().cores_allowed, 2));
  if (partner >= neighbours_.size() || self / 2 >= at_once / 2) return {};
  const Offer& theirs = offers[static_cast<std::size_t>(neighbours_[partner])];
  const auto stages = [this](std::size_t local) {
    return stage_memory(segment_, static_cast<int>(neighbours_.size()), static_cast<int>(local));
  };
  if (probe_source_ == nullptr || theirs.probe_address == 0 || stages(self).empty()) return {};
  const std::byte* mapped =
      xpmem_ == nullptr ? nullptr : xpmem_->find(partner, theirs.probe_address, probed_bytes.back());
  const Result<MeasuredCopies> copies = measure_copies({.source = probe_source_->data(),
                                                        .own_stage = stages(self).data(),
                                                        .peer_stage = stages(partner).data(),
                                                        .stage_bytes = stages(self).size(),
                                                        .peer = {theirs.process, neighbours_[partner]},
                                                        .peer_source = theirs.probe_address,
                                                        .kernel = kernel,
                                                        .peer_mapped = mapped});
  if (!copies.ok()) return {never, never};
  return sizes_of(*copies);
}

Status SetUp::open_shm(bool single_copy) {
  if (neighbours_.size() < 2) return {};
  segment_.close_descriptor();
  std::vector<ShmPeer> peers;
  for (const int rank : neighbours_) peers.push_back({rank, locations_[static_cast<std::size_t>(rank)].process});
  connections_.share = SegmentShare(segment_.bytes(), own_index() == 0);
  Result<std::unique_ptr<Channel>> channel =
      make_shm_channel(std::move(segment_), peers, static_cast<int>(own_index()), ranks_,
                       {.single_copy = single_copy,
                        .single_copy_threshold = job().config.single_copy_threshold,
                        .crowded = ranks_per_core(locations_) > 1,
                        .collective_single_copy_from = sizes_.kernel_from,
                        .buffers = connections_.buffers.get(),
                        .ways = &shm_collective_ways()});
  if (!channel.ok()) return channel.status();
  connections_.take(std::move(*channel));
  return {};
}

// On all ranks or on none, because the way of a shared-memory collective depends on it.
Status SetUp::share_buffers(std::span<const Offer> offers) {
  const Status mapped = attempt([&]() -> Status {
    if (neighbours_.size() < 2) return {};
    std::vector<SharedHeapOffer> shared_heaps;
    for (const int rank : neighbours_) shared_heaps.push_back(offers[static_cast<std::size_t>(rank)].shared_heap);
    auto made = make_shared_heap_buffers(shared_heaps, own_index());
    if (made.ok()) connections_.buffers = std::move(*made);
    return made.status();
  });
  const Status attached = attempt([&] { return attach_peers(offers); });
  bool usable = mapped.ok(), reachable = attached.ok();
  if (!usable) debug("set-up: " + mapped.message());
  if (!reachable) debug("set-up: " + attached.message());
  if (Status met = lowest(usable, reachable); !met.ok()) return met;
  if (!usable) connections_.buffers.reset();
  if (!reachable) xpmem_.reset();
  reachable_ = reachable;
  return {};
}

// Through XPMEM. It counts only where a word of every neighbour's memory is found.
Status SetUp::attach_peers(std::span<const Offer> offers) {
  const std::string& wanted = job().config.single_copy;
  if (wanted != "auto" && wanted != "xpmem") return {Code::unavailable, "xpmem: not wanted"};
  if (neighbours_.size() < 2) return {};
  const Result<XpmemLibrary>& library = system_xpmem();
  if (!library.ok()) return library.status();
  std::vector<std::int64_t> segments;
  for (const int rank : neighbours_) segments.push_back(offers[static_cast<std::size_t>(rank)].xpmem_segment);
  if (std::ranges::count(segments, 0) > 0) return {Code::unavailable, "xpmem: a rank of this node has no segment"};
  auto made = XpmemBuffers::connect(*library, segments, own_index());
  if (!made.ok()) return made.status();
  xpmem_ = std::move(*made);
  for (std::size_t peer = 0; peer < neighbours_.size(); ++peer) {
    if (peer == own_index()) continue;
    const Offer& offer = offers[static_cast<std::size_t>(neighbours_[peer])];
    const std::byte* word = xpmem_->find(peer, offer.word_address, sizeof offer.word);
    if (word == nullptr || std::memcmp(word, &offer.word, sizeof offer.word) != 0)
      return {Code::unavailable, "xpmem: the memory of rank " + std::to_string(neighbours_[peer]) + " is not reached"};
  }
  return {};
}

// Precondition: all ranks come here, those that are alone on their node as well, because all agree. `offered` is what
// became of this rank's own part.
Status SetUp::exchange_offers(Offer& mine, std::vector<Offer>& offers, Status& offered) {
  offered = attempt([&] { return offer_segment(mine); });
  offers.resize(static_cast<std::size_t>(ranks_));
  return oob().gather_all(&mine, sizeof mine, offers.data(), "exchange their segments");
}

Status SetUp::share_memory() {
  const std::uint64_t word = monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 40;
  Offer mine{.process = 0,
             .segment = {},
             .word_address = reinterpret_cast<std::uintptr_t>(&word),
             .word = word,
             .shared_heap = SharedHeap::current_offer(),
             .known = known_single_copy(),
             .probe_address = 0,
             .xpmem_segment = 0};
  std::vector<Offer> offers;
  Status offered;
  if (Status status = exchange_offers(mine, offers, offered); !status.ok()) return status;
  const Status taken = offered.ok() ? attempt([&] { return take_segment(offers); }) : offered;
  if (!taken.ok()) debug("set-up: " + taken.message());
  bool attached = taken.ok(), single_copy = taken.ok() && single_copy_works(offers);
  if (Status met = lowest(attached, single_copy); !met.ok()) return met;
  if (!attached) return {Code::unavailable, "shared memory is not available on every node"};
  if (Status status = share_buffers(offers); !status.ok()) return status;
  if (Status status = choose_single_copy(offers, single_copy); !status.ok()) return status;
  return agree(attempt([&] { return open_shm(single_copy); }), "shared memory cannot be used on every node");
}

// Whether ranks outnumber the processing units that they may use. Those bound as this one is compete with it; ranks
// outside this communicator are taken to be bound in the same way.
bool SetUp::yields() const {
  const Location& mine = locations_[static_cast<std::size_t>(rank_)];
  int here = 0, rivals = 0;
  for (const Location& other : locations_) {
    if (other.machine != mine.machine) continue;
    ++here;
    if (other.package == mine.package && other.numa == mine.numa && other.l3 == mine.l3 && other.core == mine.core)
      ++rivals;
  }
  const int in_all = std::max(job().ranks_on_machine, here);
  return static_cast<long>(in_all) * rivals > static_cast<long>(mine.cores_allowed) * std::max(here, 1);
}

PlannerOptions SetUp::planner_options() const {
  const Config& config = job().config;
  PlannerOptions options;
  options.forced_plan = config.plan;
  options.table = job().table;
  options.chunk_bytes = config.chunk_bytes;
  options.host_when_faster = config.host_when_faster;
  options.routes = routes();
  options.siblings = siblings_;
  options.warns = job().first_rank;
  options.rails = rails_ ? rails_->rails() : traits(options.routes->beyond()).rails ? 1 : 0;
  if (network_.node > 0) options.machine.levels.front().port_seconds_per_byte = network_.node;
  if (network_.way > 0) options.machine.levels.front().latency = network_.way;
  if (network_.across_switches > 0) {
    LinkLevel between_switches = options.machine.levels.front();
    between_switches.name = name(LevelKind::leaf_switch);
    between_switches.port_seconds_per_byte = network_.across_switches;
    options.machine.levels.insert(options.machine.levels.begin(), between_switches);
  }
  options.machine.ranks_per_core = ranks_per_core(locations_);
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
  if (short_) team->schedules.take_only_short_calls();
  if (job().tracing) team->trace = trace_ != nullptr ? std::move(trace_) : make_trace();
  return {};
}

// Those whose waits the shared memory does not end.
std::unique_ptr<FailureNotice> SetUp::failure_notice() const {
  std::vector<int> others;
  const Routes routes = this->routes();
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_ && !traits(routes.between(rank_, rank)).segment) others.push_back(rank);
  return oob().make_notice(token_, std::move(others));
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

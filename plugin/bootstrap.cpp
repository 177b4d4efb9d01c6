#include "plugin/bootstrap.h"

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

#include "core/log.h"
#include "core/units.h"
#include "plugin/attempt.h"
#include "plugin/bootstrap_steps.h"
#include "plugin/cooperation.h"
#include "plugin/errors.h"
#include "plugin/layer.h"
#include "plugin/link_probe.h"
#include "plugin/node_report.h"
#include "plugin/progress.h"
#include "plugin/rails.h"
#include "plugin/report.h"
#include "plugin/segment_share.h"
#include "plugin/single_copy.h"
#include "runtime/job/job.h"
#include "runtime/job/own_location.h"
#include "tl/mpi/mpi_channel.h"
#include "tl/shm/arena_buffers.h"
#include "tl/shm/copy_probe.h"
#include "tl/shm/shm_channel.h"
#include "tl/shm/xpmem_buffers.h"
#include "tl/trace.h"
#include "topo/crowding.h"
#include "topo/discovery.h"
#include "topo/shape.h"

namespace plait::plugin {

namespace {

constexpr std::size_t max_mapped_bytes = std::size_t{512} << 20;

// Ranks of the job on a node over those of the communicator, on the node where they are most.
double most_siblings(std::span<const bootstrap::Card> cards) {
  std::map<HostId, int> members;
  for (const bootstrap::Card& card : cards) ++members[card.location.host];
  double most = 1;
  for (const bootstrap::Card& card : cards)
    most = std::max(most, static_cast<double>(card.ranks_on_node) / members[card.location.host]);
  return most;
}

}  // namespace

namespace bootstrap {

bool listed(std::string_view channel) {
  const auto& channels = job().config.channels;
  return std::ranges::find(channels, channel) != channels.end();
}

bool may_use(const Communicator& communicator, std::string_view channel) {
  const auto& chosen = communicator.channels;
  return chosen.empty() ? listed(channel) : std::ranges::find(chosen, channel) != chosen.end();
}

Bootstrap::Bootstrap(const Communicator& communicator, Extent extent, std::unique_ptr<Machinery>& before)
    : communicator_(communicator), short_(extent == Extent::short_calls && job().config.plan.empty()) {
  before_ = std::move(before);
  replaces_ = before_ != nullptr;
}

// Both become what holds on all ranks.
Status Bootstrap::lowest(bool& mine, bool& other) const {
  const std::array<int, 2> own = {mine, other};
  std::array<int, 2> all = {0, 0};
  if (Status met = reduce_all(own.data(), all.data(), 2, MPI_INT, MPI_MIN, comm(), "agree"); !met.ok()) return met;
  mine = all[0] != 0;
  other = all[1] != 0;
  return {};
}

Status Bootstrap::agree(const Status& mine, std::string_view failure) const {
  bool well = mine.ok(), unused = true;
  if (Status met = lowest(well, unused); !met.ok()) return met;
  if (!mine.ok()) debug("set-up: " + mine.message());
  return well ? Status() : Status(Code::unavailable, std::string(failure));
}

// Those of the set-up that this one replaces serve on.
Status Bootstrap::take_messages() {
  if (before_ != nullptr) {
    connections_.messages = std::move(before_->connections.messages);
    return {};
  }
  Result<PrivateCommunicator> made = make_private_communicator(communicator_.handle);
  if (!made.ok()) return made.status();
  connections_.messages = std::move(*made);
  return {};
}

Status Bootstrap::meet() {
  Card mine{.location = short_ ? own_rough_location() : own_location(),
            .fingerprint = job().fingerprint,
            .ranks_on_node = job().ranks_on_node,
            .mapped_bytes = mapped_segment_bytes() - (before_ != nullptr ? before_->connections.share.bytes() : 0),
            .token = monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 40,
            .lessons = tells_lessons() ? 1u : 0u,
            .listener = {}};
  if (short_) listen_early(mine.listener);
  std::vector<Card> cards;
  if (Status status = gather_cards(mine, cards); !status.ok()) return status;
  for (const Card& card : cards) {
    locations_.push_back(card.location);
    same_settings_ &= card.fingerprint == mine.fingerprint;
    affordable_ &= card.mapped_bytes < max_mapped_bytes;
  }
  siblings_ = most_siblings(cards);
  token_ = cards.front().token;
  lessons_told_ = cards.front().lessons != 0;
  if (Status status = check_cards(); !status.ok()) return status;
  if (short_) take_listeners(cards);
  return {};
}

// From the cards alone, which all ranks have: no agreement needed.
Status Bootstrap::check_cards() {
  if (!same_settings_) return {Code::invalid, "settings differ between ranks"};
  hierarchy_ = Hierarchy::from_locations(locations_);
  neighbours_ = hierarchy_.ranks_on_node(hierarchy_.node_of(communicator_.rank));
  return choose_channels();
}

Status Bootstrap::choose_channels() {
  const bool neighbours = hierarchy_.nodes() < communicator_.ranks;
  use_shm_ = may_use("shm") && neighbours;
  const bool network = hierarchy_.nodes() > 1 || !use_shm_;
  use_ucx_ = may_use("ucx") && network;
  use_mpi_ = may_use("mpi") && network;
  if (!use_ucx_ && !use_mpi_ && network)
    return {Code::unsupported, "PLAIT_CHANNELS names no channel between the ranks"};
  if (use_shm_ && !affordable_) return {Code::unavailable, "enough shared memory is in use by other communicators"};
  return {};
}

Status Bootstrap::look_at_network() {
  if (use_ucx_)
    if (Status status = connect_rails(); !status.ok()) return status;
  if (hierarchy_.nodes() > 1) {
    Result<NetworkRates> measured = network_rates(comm(), hierarchy_, rails_ ? rails_->meter() : mpi_meter(comm()));
    if (measured.status().code() == Code::unavailable && leave_rails())
      measured = network_rates(comm(), hierarchy_, mpi_meter(comm()));
    if (!measured.ok()) return measured.status();
    network_ = *measured;
    debug("set-up: between nodes a message takes " +
          (network_.way > 0 ? format_seconds(network_.way) : std::string("less than 1 ms")) + ", 1 MiB of bytes " +
          format_seconds(network_.node * (1 << 20)));
  }
  if (!rails_) return {};
  if (Status status = rails_->agree_on_weights(); !status.ok()) return status;
  return may_use("tcp") ? open_listeners() : Status();
}

// Connections are only to ranks that shared memory does not reach.
Status Bootstrap::open_listeners() {
  const std::size_t near = use_shm_ ? neighbours_.size() : 1;
  Result<Sockets> opened =
      open_sockets(comm(), communicator_.rank, static_cast<std::size_t>(communicator_.ranks) - near, *rails_);
  if (!opened.ok()) return opened.status();
  sockets_ = std::move(*opened);
  return {};
}

// Where UCX does not work on all ranks, MPI's messages do.
Status Bootstrap::connect_rails() {
  Result<RailNetwork> connected = RailNetwork::connect(comm(), hierarchy_, locations_);
  if (connected.ok()) {
    rails_ = std::move(*connected);
    use_mpi_ = false;
    debug("set-up: rails " + rails_->names());
    return {};
  }
  debug("set-up: " + connected.status().message());
  if (connected.status().code() == Code::peer_failed) connections_.messages.leave();  // leave_trials()
  use_ucx_ = false;
  return use_mpi_ && connected.status().code() == Code::unavailable ? Status() : connected.status();
}

// One has broken since its check. False where there are none, or nothing else.
bool Bootstrap::leave_rails() {
  if (!rails_ || !may_use("mpi")) return false;
  if (job().first_rank) warn("ucx: the rates of the rails " + rails_->names() + " cannot be measured: left out");
  rails_.reset();
  use_ucx_ = false;
  use_mpi_ = true;
  return true;
}

// What the others measure with, and reach this process's memory by.
void Bootstrap::offer_single_copy(Offer& offer) {
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

Status Bootstrap::offer_segment(Offer& offer) {
  offer.process = static_cast<std::int32_t>(getpid());
  if (neighbours_.size() < 2) return {};
  if (!short_) offer_single_copy(offer);
  if (neighbours_.front() != communicator_.rank) return {};
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

Status Bootstrap::take_segment(std::span<const Offer> offers) {
  if (neighbours_.size() < 2 || neighbours_.front() == communicator_.rank) return {};
  const Offer& offer = offers[static_cast<std::size_t>(neighbours_.front())];
  if (offer.segment.bytes == 0) return {Code::unavailable, "the node's first rank has no segment"};
  Result<SharedSegment> attached = SharedSegment::attach(offer.segment);
  if (!attached.ok()) return attached.status();
  segment_ = std::move(*attached);
  return {};
}

// Each rank reads the node's first one and is read by it: the same kernel, user and limits stand between all others.
bool Bootstrap::single_copy_works(std::span<const Offer> offers) const {
  const std::string& wanted = job().config.single_copy;
  if (wanted == "none" || wanted == "xpmem") return false;
  const auto readable = [&](int rank) {
    const Offer& offer = offers[static_cast<std::size_t>(rank)];
    return can_read_process(offer.process, reinterpret_cast<const void*>(offer.word_address), offer.word);
  };
  if (neighbours_.front() != communicator_.rank) return readable(neighbours_.front());
  return std::all_of(neighbours_.begin() + 1, neighbours_.end(), readable);
}

std::size_t Bootstrap::own_index() const {
  return static_cast<std::size_t>(std::ranges::find(neighbours_, communicator_.rank) - neighbours_.begin());
}

// From what all ranks have in common: they decide alike. One measurement serves all later communicators of its ranks.
Status Bootstrap::choose_single_copy(std::span<const Offer> offers, bool kernel) {
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
  note_single_copy(sizes_);
  debug("set-up: single copies by the kernel " + size_text(sizes_.kernel_from) + ", by XPMEM " +
        size_text(sizes_.mapped_from));
  return {};
}

// The ranks of a node measure in pairs, at the same time.
Result<SingleCopySizes> Bootstrap::measure_single_copy(std::span<const Offer> offers, bool kernel) {
  if (Status met = meet_all(comm(), "measure single copies"); !met.ok()) return met;
  SingleCopySizes mine;
  const Status measured = attempt([&]() -> Status {
    mine = own_measurement(offers, kernel);
    return {};
  });
  if (!measured.ok()) mine = {never, never};
  return agree_on_single_copy(comm(), mine);
}

// Not known where this rank has no partner, or its turn on a core would only make others wait.
SingleCopySizes Bootstrap::own_measurement(std::span<const Offer> offers, bool kernel) const {
  if (neighbours_.size() < 2) return {};
  const std::size_t self = own_index(), partner = self ^ 1;
  const auto at_once = static_cast<std::size_t>(std::max(own_location().cores_allowed, 2));
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

Status Bootstrap::open_shm(bool single_copy) {
  if (neighbours_.size() < 2) return {};
  segment_.close_descriptor();
  std::vector<ShmPeer> peers;
  for (const int rank : neighbours_) peers.push_back({rank, locations_[static_cast<std::size_t>(rank)].process});
  connections_.share = SegmentShare(segment_.bytes(), own_index() == 0);
  Result<std::unique_ptr<Channel>> channel =
      make_shm_channel(std::move(segment_), peers, static_cast<int>(own_index()), communicator_.ranks,
                       {.single_copy = single_copy,
                        .single_copy_threshold = job().config.single_copy_threshold,
                        .crowded = ranks_per_core(locations_) > 1,
                        .group_single_copy_from = sizes_.kernel_from,
                        .buffers = connections_.buffers.get(),
                        .ways = &group_ways()});
  if (!channel.ok()) return channel.status();
  connections_.shm = std::move(*channel);
  return {};
}

// On all ranks or on none, because the way of a group step depends on it.
Status Bootstrap::share_buffers(std::span<const Offer> offers) {
  const Status mapped = attempt([&]() -> Status {
    if (neighbours_.size() < 2) return {};
    std::vector<ArenaOffer> arenas;
    for (const int rank : neighbours_) arenas.push_back(offers[static_cast<std::size_t>(rank)].arena);
    auto made = make_arena_buffers(arenas, own_index());
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
Status Bootstrap::attach_peers(std::span<const Offer> offers) {
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
Status Bootstrap::exchange_offers(Offer& mine, std::vector<Offer>& offers, Status& offered) {
  offered = attempt([&] { return offer_segment(mine); });
  offers.resize(static_cast<std::size_t>(communicator_.ranks));
  const int bytes = static_cast<int>(sizeof mine);
  return gather_all(&mine, bytes, offers.data(), comm(), "exchange their segments");
}

Status Bootstrap::share_memory() {
  const std::uint64_t word = monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 40;
  Offer mine{.process = 0,
             .segment = {},
             .word_address = reinterpret_cast<std::uintptr_t>(&word),
             .word = word,
             .arena = Arena::current_offer(),
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
bool Bootstrap::yields() const {
  const Location& mine = locations_[static_cast<std::size_t>(communicator_.rank)];
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

PlannerOptions Bootstrap::planner_options() const {
  const Config& config = job().config;
  PlannerOptions options;
  options.forced_plan = config.plan;
  options.table = job().table;
  options.chunk_bytes = config.chunk_bytes;
  options.host_when_faster = config.host_when_faster;
  options.shared_memory = use_shm_;
  options.network = rails_ || use_sockets_ ? ChannelKind::ucx : ChannelKind::mpi;
  options.siblings = siblings_;
  options.warns = job().first_rank;
  options.rails = rails_ ? rails_->rails() : options.network == ChannelKind::ucx ? 1 : 0;
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

// The private communicator stays out of what this may throw away: it is needed for the agreement afterwards.
Status Bootstrap::finish(std::unique_ptr<Machinery>& machinery) {
  if (rails_) connections_.ucx = rails_->make_channel();
  if (use_sockets_) connections_.ucx = std::move(short_channel_);
  if (rails_ && !sockets_.peers.empty()) {
    connections_.ucx = with_sockets(sockets_, communicator_.rank, *rails_, std::move(connections_.ucx));
  }
  connections_.descriptors = std::move(sockets_.descriptors);
  if (use_mpi_) connections_.mpi = make_mpi_channel(comm(), MpiChannelOptions());
  Connections channels;
  channels.share = std::move(connections_.share);
  channels.descriptors = std::move(connections_.descriptors);
  channels.buffers = std::move(connections_.buffers);
  channels.shm = std::move(connections_.shm);
  channels.ucx = std::move(connections_.ucx);
  channels.mpi = std::move(connections_.mpi);
  const bool yield = yields();
  debug("set-up: " + std::to_string(communicator_.ranks) + " ranks " + hierarchy_.describe() + ", siblings " +
        std::to_string(siblings_) + (short_ ? ", for short calls" : ""));
  machinery = std::make_unique<Machinery>(std::move(channels), std::move(hierarchy_), communicator_.rank,
                                          planner_options(), failure_notice(), yield, [] { progress(); });
  machinery->schedules.count_for(communicator_.grid);
  // What is fastest over channels of its own is no lesson for others.
  if (communicator_.channels.empty())
    machinery->trials.start(shape_text(machinery->planner.hierarchy(), siblings_), std::move(known_));
  machinery->short_calls_only = short_;
  if (short_) machinery->schedules.take_only_short_calls();
  if (job().tracing) machinery->trace = trace_ != nullptr ? std::move(trace_) : make_trace();
  return {};
}

// Those whose waits the shared memory does not end.
FailureNotice Bootstrap::failure_notice() const {
  std::vector<int> others;
  const int node = hierarchy_.node_of(communicator_.rank);
  for (int rank = 0; rank < communicator_.ranks; ++rank)
    if (rank != communicator_.rank && (!use_shm_ || hierarchy_.node_of(rank) != node)) others.push_back(rank);
  return {token_, std::move(others)};
}

std::unique_ptr<CommunicatorTrace> Bootstrap::make_trace() const {
  auto trace = std::make_unique<CommunicatorTrace>();
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  PMPI_Comm_get_name(communicator_.handle, name.data(), &length);
  const std::string title = length > 0 ? std::string(name.data()) : "communicator";
  trace->label = title + ", " + std::to_string(communicator_.ranks) + " ranks";
  return trace;
}

// Those who meant to set up less told only roughly where they are.
Status Bootstrap::connect_all(bool again) {
  if (again) {
    locations_.clear();
    if (Status status = meet(); !status.ok()) return status;
  }
  if (Status status = look_at_network(); !status.ok()) return status;
  return use_shm_ ? share_memory() : Status();
}

Result<std::unique_ptr<Machinery>> Bootstrap::run() {
  const bool wanted_short = short_;
  if (Status status = take_messages(); !status.ok()) return status;
  if (Status status = meet(); !status.ok()) return status;
  if (before_ != nullptr) trace_ = std::move(before_->trace);
  before_.reset();  // all ranks have come here: nobody waits for its messages
  if (short_)
    if (Status status = connect_short(); !status.ok()) return status;
  if (!short_)
    if (Status status = connect_all(wanted_short); !status.ok()) return status;
  if (Status status = share_lessons(); !status.ok()) return status;
  std::unique_ptr<Machinery> machinery;
  const Status finished = attempt([&]() -> Status {
    if (short_ && use_shm_)
      if (Status status = open_shm(false); !status.ok()) return status;
    return finish(machinery);
  });
  if (Status status = agree(finished, "a rank could not be set up"); !status.ok()) return status;
  machinery->connections.messages = std::move(connections_.messages);
  return machinery;
}

// Until all ranks have met they look for failures of what is replaced (card_exchange.cpp), and then for each other.
Status Bootstrap::leave(const std::exception& exception) noexcept {
  const Status cause = status_of(exception);
  if (before_ != nullptr && !met_) {
    before_->give_up(cause, comm());
  } else if (comm() != MPI_COMM_NULL) {
    withdraw(comm());
    connections_.messages.leave();
  }
  return replaces_ ? Status(Code::peer_failed, "out of memory") : cause;
}

namespace {

// For a rank that has not even begun.
Status leave_at_once(const Communicator& communicator, Machinery* before, const std::exception& exception) noexcept {
  const Status cause = status_of(exception);
  if (before != nullptr) {
    before->give_up(cause);
    return {Code::peer_failed, "out of memory"};
  }
  decline_set_up(communicator);
  return cause;
}

}  // namespace
}  // namespace bootstrap

void decline_set_up(const Communicator& communicator) noexcept {
  Result<PrivateCommunicator> made = make_private_communicator(communicator.handle);
  if (!made.ok()) return;
  withdraw(made->handle());
  made->leave();
}

Result<std::unique_ptr<Machinery>> set_up(const Communicator& communicator, Extent extent,
                                          std::unique_ptr<Machinery> before) {
  std::optional<bootstrap::Bootstrap> bootstrap;
  try {
    bootstrap.emplace(communicator, extent, before);
    return bootstrap->run();
  } catch (const std::exception& exception) {
    return bootstrap ? bootstrap->leave(exception) : bootstrap::leave_at_once(communicator, before.get(), exception);
  }
}

}  // namespace plait::plugin

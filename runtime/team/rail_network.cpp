#include "runtime/team/rail_network.h"

#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include "core/log.h"
#include "core/text_hash.h"
#include "runtime/job/descriptor_share.h"
#include "runtime/job/job.h"
#include "runtime/oob/oob.h"
#include "runtime/team/trial_message.h"
#include "tl/peer_watch.h"
#include "tl/trace.h"
#include "topo/rails.h"

namespace plait::runtime {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t check_limit_ns = 5 * second_ns;
constexpr std::uint64_t probe_limit_ns = second_ns;

// A first idea of the rates is wrong by 1.45 on a busy machine, which costs 15 % of both rails. Where they seem to
// differ by more than this they are measured once more, for so long that a processor's absence does not count.
constexpr double seem_same_within = 1.2;
constexpr double exact_trial_s = 0.1;
constexpr int most_times_longer =
    12;  // 7.5 MiB, within the limit of a trial also where the first figure was far too fast
// Rails whose rates differ by less than that measurement wavers are taken to be the same.
constexpr double same_within = 1.25;
constexpr double picoseconds_kib = 1e12 * 1024;
// A slower one is not worth its messages.
constexpr double slowest_share = 1.0 / 16;

}  // namespace

// What each rank tells the others.
struct RailNetwork::Entry {
  std::uint64_t process;
  std::uint64_t communicator;  // rank 0's counts
  std::uint32_t probe_port;
  std::uint32_t rails;
  std::array<std::uint64_t, most_rails> network;
  std::array<std::uint32_t, most_rails> address;
};

Result<std::vector<RailNetwork::Entry>> RailNetwork::exchange_entries(std::span<const Location> locations) {
  Entry mine{};
  const Result<const UcpLibrary*> ucp = system_ucp();
  if (!ucp.ok()) debug("ucx: " + ucp.status().message());
  {
    const std::scoped_lock lock(own_->guard);
    mine.process = own_->process;
    mine.communicator = own_->new_identity();
    mine.probe_port = own_probe_port();
    for (const Rail& rail : own_->rails) {
      if (!ucp.ok()) break;
      mine.network[mine.rails] = hash_text(rail.network);
      mine.address[mine.rails++] = rail.address;
    }
  }
  std::vector<Entry> entries(locations.size());
  if (Status met = oob_->gather_all(&mine, sizeof mine, entries.data(), "exchange their rails"); !met.ok()) return met;
  identity_ = entries.front().communicator;
  return entries;
}

// Those that every rank has. An address that two hosts have is of a network within each of them.
Status RailNetwork::choose(std::span<const Entry> entries, std::span<const Location> locations) {
  if (entries.size() > most_ucx_ranks)
    return {Code::unavailable, "ucx: more than " + std::to_string(most_ucx_ranks) + " ranks"};
  for (std::uint32_t i = 0; i < entries.front().rails; ++i) {
    const std::uint64_t network = entries.front().network[i];
    std::map<std::uint32_t, HostId> holders;
    const auto has_it = [&](const Entry& entry) {
      const auto end = entry.network.begin() + entry.rails;
      const auto found = std::find(entry.network.begin(), end, network);
      if (found == end) return false;
      const std::uint32_t address = entry.address[static_cast<std::size_t>(found - entry.network.begin())];
      const HostId host = locations[static_cast<std::size_t>(&entry - entries.data())].host;
      return address == 0 || holders.try_emplace(address, host).first->second == host;
    };
    if (std::ranges::all_of(entries, has_it)) networks_.push_back(network);
  }
  return networks_.empty() ? Status(Code::unavailable, "ucx: there is no rail that all ranks have") : Status();
}

Status RailNetwork::open_workers(std::size_t peers) {
  const std::scoped_lock lock(own_->guard);
  for (const std::uint64_t network : networks_) {
    const Result<RailWorker*> worker = own_->worker_on(network, peers);
    if (!worker.ok()) return worker.status();
    rails_.push_back({*worker, network});
  }
  return {};
}

namespace {

// Each rank's worker addresses, in slots of one size.
class AddressTable {
 public:
  AddressTable(std::size_t ranks, std::size_t rails, std::size_t longest)
      : slot_(sizeof(std::uint32_t) + longest), row_(slot_ * rails), mine_(row_), all_(row_ * ranks) {}

  void put(std::size_t rail, const std::string& address) {
    const auto bytes = static_cast<std::uint32_t>(address.size());
    std::memcpy(&mine_[rail * slot_], &bytes, sizeof bytes);
    std::memcpy(&mine_[rail * slot_ + sizeof bytes], address.data(), bytes);
  }
  Status exchange(Oob& oob) {
    return oob.gather_all(mine_.data(), row_, all_.data(), "exchange their rails' addresses");
  }
  std::string get(std::size_t rank, std::size_t rail) const {
    const char* from = &all_[rank * row_ + rail * slot_];
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, from, sizeof bytes);
    return {from + sizeof bytes, bytes};
  }

 private:
  std::size_t slot_, row_;
  std::vector<char> mine_, all_;
};

bool knows(const UcxPeer& peer, std::uint64_t network) {
  return std::ranges::find(peer.rails, network, &UcxPeer::OnRail::network) != peer.rails.end();
}

}  // namespace

bool RailNetwork::knows_all(std::span<const Entry> entries) const {
  const std::scoped_lock lock(own_->guard);
  return std::ranges::all_of(entries, [&](const Entry& entry) {
    const auto found = own_->peers.find(entry.process);
    return found != own_->peers.end() &&
           std::ranges::all_of(networks_, [&](std::uint64_t network) { return knows(*found->second, network); });
  });
}

// Addresses travel only where somebody has not met somebody else before.
Status RailNetwork::exchange_addresses(std::span<const Entry> entries, std::span<const Location> locations) {
  const Status opened = open_workers(entries.size());
  if (!opened.ok()) debug(opened.message());
  std::array<int, 3> mine = {opened.ok() ? 0 : 1, knows_all(entries) ? 0 : 1, 0}, all = {};
  for (const UcxRail& rail : rails_) mine[2] = std::max(mine[2], static_cast<int>(rail.worker->address().size()));
  if (Status met = reduce_all(*oob_, mine, all, Op::max, "agree on their rails"); !met.ok()) return met;
  if (all[0] != 0) return {Code::unavailable, "ucx: a rail cannot be opened on every rank"};
  if (all[1] != 0) {
    AddressTable addresses(entries.size(), rails_.size(), static_cast<std::size_t>(all[2]));
    for (std::size_t i = 0; i < rails_.size(); ++i) addresses.put(i, rails_[i].worker->address());
    if (Status met = addresses.exchange(*oob_); !met.ok()) return met;
    meet(entries, locations, [&](std::size_t rank, std::size_t rail) { return addresses.get(rank, rail); });
  }
  const std::scoped_lock lock(own_->guard);
  for (const Entry& entry : entries) peers_.push_back(own_->peers[entry.process]);
  return {};
}

void RailNetwork::meet(std::span<const Entry> entries, std::span<const Location> locations,
                       const std::function<std::string(std::size_t rank, std::size_t rail)>& address) const {
  const std::scoped_lock lock(own_->guard);
  for (std::size_t rank = 0; rank < entries.size(); ++rank) {
    const Entry& entry = entries[rank];
    std::shared_ptr<const UcxPeer>& known = own_->peers[entry.process];
    auto peer = known != nullptr ? std::make_shared<UcxPeer>(*known) : std::make_shared<UcxPeer>();
    peer->process = entry.process;
    peer->host = locations[rank].hostname;
    peer->probe_port = static_cast<std::uint16_t>(entry.probe_port);
    for (std::size_t i = 0; i < networks_.size(); ++i) {
      if (knows(*peer, networks_[i])) continue;
      const auto place = std::ranges::find(entry.network, networks_[i]) - entry.network.begin();
      peer->rails.push_back({networks_[i], entry.address[static_cast<std::size_t>(place)], address(rank, i)});
    }
    known = std::move(peer);
  }
}

UcxChannelOptions RailNetwork::options() const {
  UcxChannelOptions options;
  options.communicator = identity_;
  options.rank = rank_;
  options.weights = weights_;
  options.peers_answer = peers_answer_;
  return options;
}

// A channel of this rail alone: should it fail, the others are left in peace.
bool RailNetwork::check_rail(std::size_t rail, TrialPartners partners) const {
  const auto channel = make_ucx_channel({rails_[rail]}, peers_, options());
  return trial_succeeds(*channel, *oob_, partners, check_limit_ns);
}

bool RailNetwork::probe_reaches(std::size_t rail, int peer) const {
  const UcxPeer& other = *peers_[static_cast<std::size_t>(peer)];
  const Rail& own = rails_[rail].worker->rail();
  if (own.address == 0 || other.probe_port == 0) return false;
  const auto there = std::ranges::find(other.rails, rails_[rail].network, &UcxPeer::OnRail::network);
  ReachabilityProbe probe = ReachabilityProbe::at(own.address, there->address, other.probe_port);
  const std::uint64_t begin = monotonic_ns();
  while (probe.answer() == ReachabilityProbe::Answer::none_yet && monotonic_ns() - begin < probe_limit_ns)
    sched_yield();
  return probe.answer() == ReachabilityProbe::Answer::alive;
}

Status RailNetwork::check(TrialPartners partners) {
  std::array<int, most_rails + 1> mine{}, all{};
  mine[most_rails] = 1;
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    mine[rail] = check_rail(rail, partners) ? 1 : 0;
    mine[most_rails] &= mine[rail] != 0 && probe_reaches(rail, partners.to) ? 1 : 0;
  }
  if (Status met = reduce_all(*oob_, mine, all, Op::min, "agree on rails that work"); !met.ok()) return met;
  peers_answer_ = all[most_rails] != 0;
  std::vector<UcxRail> working;
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    if (all[rail] != 0)
      working.push_back(rails_[rail]);
    else if (job().first_rank)
      warn("ucx: rail " + rails_[rail].worker->rail().name + " is left out: its check failed");
  }
  rails_ = std::move(working);
  return rails_.empty() ? Status(Code::unavailable, "ucx: no rail passed its check") : Status();
}

Result<RailNetwork> RailNetwork::connect(Oob& oob, OwnRails& own, const Hierarchy& hierarchy,
                                         std::span<const Location> locations) {
  RailNetwork network(oob, own);
  const Result<std::vector<Entry>> entries = network.exchange_entries(locations);
  if (!entries.ok()) return entries.status();
  if (Status status = network.choose(*entries, locations); !status.ok()) return status;
  const TrialPartners partners = trial_partners(hierarchy, network.rank_);
  try {
    if (Status status = network.exchange_addresses(*entries, locations); !status.ok()) return status;
    if (Status status = network.check(partners); !status.ok()) return status;
  } catch (const std::exception&) {  // the caller withdraws, which the others see once their trials are over
    leave_trials(oob, partners);
    throw;
  }
  return network;
}

std::string RailNetwork::names() const {
  std::string text;
  for (const UcxRail& rail : rails_) text.append(text.empty() ? "" : ", ").append(rail.worker->rail().name);
  return text;
}

// `longer`: by rail, so many times what a trial sends.
RateMeter RailNetwork::meter(const std::vector<int>& longer, std::map<std::uint64_t, double>& into) {
  const auto meters = std::make_shared<std::vector<ChannelMeter>>();
  const auto make_room = [this, meters, longer, &into](int all_longer) {
    meters->clear();
    for (std::size_t i = 0; i < rails_.size(); ++i)
      meters->emplace_back(make_ucx_channel({rails_[i]}, peers_, options()), all_longer * longer[i]);
    const std::scoped_lock lock(own_->guard);
    for (const UcxRail& rail : rails_) into.try_emplace(rail.network);
  };
  const auto measure = [this, meters, longer, &into](RateTrial trial) {
    double rate = 0, first_s = std::numeric_limits<double>::infinity();
    const int all_longer = trial.longer;
    for (std::size_t i = 0; i < rails_.size(); ++i) {
      trial.longer = all_longer * longer[i];
      const MeasuredRate measured = (*meters)[i].measure(trial);
      const double seconds = measured.seconds_per_byte;
      if (seconds <= 0) return measured;
      rate += 1 / seconds;
      first_s = std::min(first_s, measured.first_s);
      const std::scoped_lock lock(own_->guard);
      into[rails_[i].network] = seconds;
    }
    return MeasuredRate{1 / rate, first_s};
  };
  return {.make_room = make_room, .measure = measure};
}

RateMeter RailNetwork::meter() { return meter(std::vector<int>(rails_.size(), 1), own_->seconds_per_byte); }

// The mean of what was measured: a busy machine makes single figures too low. In whole numbers, whose sum is the same
// on all ranks. By rail; 0 where nobody knows.
Result<std::vector<double>> RailNetwork::agreed(std::map<std::uint64_t, double>& known) {
  std::array<long long, 2 * std::size_t{most_rails}> mine{}, all{};  // picoseconds a KiB, and whether it is known
  {
    const std::scoped_lock lock(own_->guard);
    for (std::size_t i = 0; i < rails_.size(); ++i) {
      const auto found = known.find(rails_[i].network);
      const double seconds = found == known.end() ? 0 : found->second;
      mine[2 * i] = std::llround(seconds * picoseconds_kib);
      mine[2 * i + 1] = seconds > 0 ? 1 : 0;
    }
  }
  if (Status met = reduce_all(*oob_, mine, all, Op::sum, "agree on the rates of their rails"); !met.ok()) return met;
  std::vector<double> seconds(rails_.size());
  const std::scoped_lock lock(own_->guard);
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    seconds[i] = static_cast<double>(all[2 * i]) / static_cast<double>(std::max(all[2 * i + 1], 1LL)) / picoseconds_kib;
    if (seconds[i] > 0) known[rails_[i].network] = seconds[i];
  }
  return seconds;
}

namespace {

bool all_known(const std::vector<double>& seconds) { return std::ranges::min(seconds) > 0; }

bool differ(const std::vector<double>& seconds) {
  return all_known(seconds) && std::ranges::max(seconds) > seem_same_within * std::ranges::min(seconds);
}

// How much more than usual takes about exact_trial_s.
int longer_for(double seconds_a_byte) {
  constexpr double usual_bytes = double{rate_piece_bytes} * (untimed_pieces + timed_pieces);
  return static_cast<int>(
      std::clamp<double>(std::ceil(exact_trial_s / (seconds_a_byte * usual_bytes)), 1, most_times_longer));
}

}  // namespace

Status RailNetwork::measure_shares(const Hierarchy& hierarchy) {
  Result<std::vector<double>> seconds = agreed(own_->seconds_per_byte);
  if (!seconds.ok()) return seconds.status();
  if (differ(*seconds)) {
    Result<std::vector<double>> exact = agreed(own_->exact);
    if (!exact.ok()) return exact.status();
    if (!all_known(*exact) && hierarchy.nodes() > 1) {
      std::vector<int> longer;
      for (const double rate : *seconds) longer.push_back(longer_for(rate));
      if (Status status = measure_once(*oob_, hierarchy, meter(longer, own_->exact)); !status.ok()) return status;
      exact = agreed(own_->exact);
      if (!exact.ok()) return exact.status();
    }
    if (all_known(*exact)) seconds = std::move(exact);
  }
  take_weights(*seconds);
  return {};
}

void RailNetwork::take_weights(const std::vector<double>& seconds) {
  const double fastest = std::ranges::min(seconds);
  double rate = 0;
  for (const double each : seconds) rate += each > 0 ? 1 / each : 0;
  seconds_per_byte_ = rate > 0 ? 1 / rate : 0;
  weights_.clear();
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    const double share = fastest > 0 ? fastest / seconds[i] : 1;
    weights_.push_back(share * same_within > 1 ? 1 : share >= slowest_share ? share : 0);
    debug("ucx: rail " + rails_[i].worker->rail().name + " weight " + std::to_string(weights_.back()));
  }
}

std::vector<double> RailNetwork::shares() const {
  if (std::ranges::find(weights_, 0.0) != weights_.end()) return {};
  constexpr double parts = 32;
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  std::vector<double> shares;
  for (const double weight : weights_) shares.push_back(std::max(1.0, std::round(parts * weight / sum)));
  const double taken = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= taken;
  return shares;
}

std::size_t RailNetwork::fastest() const {
  if (weights_.empty()) return 0;
  return static_cast<std::size_t>(std::ranges::max_element(weights_) - weights_.begin());
}

std::vector<std::uint32_t> RailNetwork::addresses() const {
  const std::uint64_t network = rails_[fastest()].network;
  std::vector<std::uint32_t> addresses;
  for (const auto& peer : peers_) {
    if (peer == nullptr) return {};
    const auto there = std::ranges::find(peer->rails, network, &UcxPeer::OnRail::network);
    if (there == peer->rails.end() || there->address == 0) return {};
    addresses.push_back(there->address);
  }
  return addresses;
}

std::string RailNetwork::host_of(int rank) const {
  const auto& peer = peers_[static_cast<std::size_t>(rank)];
  return peer != nullptr ? peer->host : "this host";
}

std::unique_ptr<Channel> RailNetwork::make_channel() const { return make_ucx_channel(rails_, peers_, options()); }

}  // namespace plait::runtime

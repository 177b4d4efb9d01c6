#include "runtime/team/own_rails.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/text_hash.h"
#include "runtime/job/descriptor_share.h"
#include "runtime/job/job.h"
#include "tl/peer_watch.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// Besides one a connection. UCX ends the process where it cannot open what it needs.
constexpr std::size_t worker_descriptors = 16;
constexpr int counter_bits = 20, process_bits = 24;  // of a communicator's identity

// A helper thread moves posted operations on beside whatever the program's thread does, whatever MPI's thread level.
WorkerThreads worker_threads() {
  if (threaded()) return WorkerThreads::at_once;
  return job().main_thread_only ? WorkerThreads::one : WorkerThreads::in_turn;
}

// Of all ranks in this process.
struct AllRails {
  std::mutex guard;
  std::vector<OwnRails*> made, idle;  // the first made is the process's; idle: that no RailsOfRank holds
};
AllRails& all_rails() {
  static auto* const all = new AllRails;
  return *all;
}

// The guard must be held.
OwnRails& make_rails(AllRails& all) {
  all.made.reserve(all.made.size() + 1);
  all.idle.reserve(all.made.size() + 1);  // for all of them: giving back needs no memory
  all.made.push_back(new OwnRails);
  return *all.made.back();
}

OwnRails& take_rails() {
  AllRails& all = all_rails();
  const std::scoped_lock lock(all.guard);
  if (all.idle.empty()) return make_rails(all);
  OwnRails& taken = *all.idle.back();
  all.idle.pop_back();
  return taken;
}

void give_back(OwnRails& rails) {
  AllRails& all = all_rails();
  const std::scoped_lock lock(all.guard);
  all.idle.push_back(&rails);
}

}  // namespace

OwnRails::OwnRails() {
  if (getrandom(&process, sizeof process, 0) != sizeof process) process = monotonic_ns();
  std::vector<Rail> all = discover_rails();
  if (Status status = choose_rails(all, job().config.rails); !status.ok()) warn(status.message());
  for (Rail& rail : all)
    if (rail.used && rails.size() < static_cast<std::size_t>(most_rails)) rails.push_back(std::move(rail));
}

std::uint64_t OwnRails::new_identity() {
  return (process & ((1u << process_bits) - 1)) << counter_bits | (communicators++ & ((1u << counter_bits) - 1));
}

Result<RailWorker*> OwnRails::worker_on(std::uint64_t network, std::size_t peers_there) {
  if (const auto known = workers.find(network); known != workers.end()) return known->second.get();
  if (free_descriptors() < worker_descriptors + peers_there)
    return Status(Code::unavailable, "ucx: the limit on open files leaves too few for connections");
  const auto rail = std::ranges::find(rails, network, [](const Rail& one) { return hash_text(one.network); });
  const RailOptions options{.transports = job().config.ucx_transports, .threads = worker_threads(), .process = process};
  Result<std::unique_ptr<RailWorker>> made = RailWorker::open(**system_ucp(), *rail, options);
  if (!made.ok()) return made.status();
  return workers.emplace(network, std::move(*made)).first->second.get();
}

OwnRails& process_rails() {
  AllRails& all = all_rails();
  const std::scoped_lock lock(all.guard);
  if (!all.made.empty()) return *all.made.front();
  OwnRails& made = make_rails(all);
  all.idle.push_back(&made);
  return made;
}

OwnRails& RailsOfRank::get() {
  std::call_once(once_, [this] { taken_ = &take_rails(); });
  return *taken_;
}

RailsOfRank::~RailsOfRank() {
  if (taken_ != nullptr) give_back(*taken_);
}

std::optional<FirstRail> first_ethernet_rail() {
  OwnRails& own = process_rails();
  const std::scoped_lock lock(own.guard);
  if (own.rails.empty() || own.rails.front().kind != RailKind::ethernet || own.rails.front().address == 0) return {};
  const Rail& first = own.rails.front();
  return FirstRail{.name = first.name,
                   .network = hash_text(first.network),
                   .address = first.address,
                   .bytes_sent = &own.early_bytes};
}

std::uint16_t own_probe_port() {
  static const auto* const port = new ProbePort;
  return port->number();
}

std::vector<RailTraffic> rail_traffic() {
  std::vector<RailTraffic> traffic;
  const auto add = [&](const std::string& name, std::uint64_t bytes) {
    const auto known = std::ranges::find(traffic, name, &RailTraffic::name);
    if (known == traffic.end())
      traffic.push_back({name, bytes});
    else
      known->bytes += bytes;
  };
  AllRails& all = all_rails();
  const std::scoped_lock all_lock(all.guard);
  for (OwnRails* own : all.made) {
    const std::scoped_lock lock(own->guard);
    for (const auto& [network, worker] : own->workers) add(worker->rail().name, worker->bytes_sent());
    const std::uint64_t early = own->early_bytes.load(std::memory_order_relaxed);
    if (early > 0) add(own->rails.front().name, early);
  }
  return traffic;
}

}  // namespace plait::runtime

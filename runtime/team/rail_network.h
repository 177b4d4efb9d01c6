// The rails between the ranks of a communicator: which ones all of them have, that they work, and how fast they are.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/team/network_rates.h"
#include "runtime/team/own_rails.h"
#include "runtime/team/trial_message.h"
#include "tl/channel.h"
#include "tl/ucx/ucx_channel.h"
#include "topo/hierarchy.h"
#include "topo/location.h"

namespace plait::runtime {

// The agreed rails of one communicator, before and after their rates are known.
class RailNetwork {
 public:
  // Collective; blocks, for seconds at most where a rail is cut. All ranks
  // get the same rails, or all fail: `unavailable` where there is no UCX on some rank, no rail that all have, or none
  // that works on all. A message went over every rail from each rank to another by then.
  // `own`: this rank's.
  static Result<RailNetwork> connect(Oob& oob, OwnRails& own, const Hierarchy& hierarchy,
                                     std::span<const Location> locations);

  int rails() const { return static_cast<int>(rails_.size()); }
  std::string names() const;  // "eth0, eth1"

  // For network_rates(): what one rank receives from another over all rails together, each measured alone.
  RateMeter meter();
  // Collective: the rails' rates, as far as any rank knows them, decide the shares of long messages. Where they seem to
  // differ between nodes and no rank has measured them for long, that is done: about 0.1 s a rail, less where the
  // network is fast, once in a process's life. Fails (unavailable) where a rail cannot be measured any more, on all
  // ranks.
  Status measure_shares(const Hierarchy& hierarchy);
  // By rail what it has of the whole rate, with rates known, in 32nds: their sum is 1. Plans depend on it, which should
  // not waver with what is measured. Empty where long messages leave some rail out.
  std::vector<double> shares() const;
  double seconds_per_byte() const { return seconds_per_byte_; }  // over all rails together; 0: not known
  // IPv4 addresses of all ranks on the fastest rail, in host order, with rates known; empty where it is no Ethernet.
  std::vector<std::uint32_t> addresses() const;
  std::string fastest_name() const { return rails_[fastest()].worker->rail().name; }
  // Counts what goes over that rail without UCX. Lives as long as the process.
  std::atomic<std::uint64_t>* socket_bytes() const { return &rails_[fastest()].worker->socket_bytes(); }
  std::string host_of(int rank) const;

  // The channel between the ranks. Call it last, once.
  std::unique_ptr<Channel> make_channel() const;

 private:
  struct Entry;
  RailNetwork(Oob& oob, OwnRails& own) : oob_(&oob), own_(&own), rank_(oob.rank()) {}
  Result<std::vector<Entry>> exchange_entries(std::span<const Location> locations);
  Status choose(std::span<const Entry> entries, std::span<const Location> locations);
  Status open_workers(std::size_t peers);
  Status exchange_addresses(std::span<const Entry> entries, std::span<const Location> locations);
  bool knows_all(std::span<const Entry> entries) const;
  void meet(std::span<const Entry> entries, std::span<const Location> locations,
            const std::function<std::string(std::size_t rank, std::size_t rail)>& address) const;
  Status check(TrialPartners partners);
  bool check_rail(std::size_t rail, TrialPartners partners) const;
  bool probe_reaches(std::size_t rail, int peer) const;
  UcxChannelOptions options() const;
  RateMeter meter(const std::vector<int>& longer, std::map<std::uint64_t, double>& into);
  Result<std::vector<double>> agreed(std::map<std::uint64_t, double>& known);
  void take_weights(const std::vector<double>& seconds);
  std::size_t fastest() const;

  Oob* oob_;  // the caller's
  OwnRails* own_;
  int rank_ = 0;
  std::uint64_t identity_ = 0;  // of the communicator
  std::vector<std::uint64_t> networks_;
  std::vector<UcxRail> rails_;
  std::vector<std::shared_ptr<const UcxPeer>> peers_;
  std::vector<double> weights_;
  double seconds_per_byte_ = 0;
  bool peers_answer_ = false;
};

}  // namespace plait::runtime

// How a communicator's channel over UCX comes to its end after a failure: its peers are told, and what is under way to
// and from the program's memory is over before that is the program's again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "tl/ucx/farewell.h"
#include "tl/ucx/rail_state.h"

namespace plait::tl {

// Not thread-safe; takes the workers' turns itself but for listen().
class ChannelEnd {
 public:
  struct Membership {
    std::uint64_t communicator;
    int rank;
    std::size_t ranks;
    std::uint64_t patience_ns;  // UcxChannelOptions
  };
  // `rails` is the channel's.
  ChannelEnd(std::vector<RailState>& rails, const Membership& membership);

  // Tells the peers; once. Does not block.
  void announce(const Status& cause);

  // Receives are cancelled, but those that have begun to arrive; sends cannot be. So both are waited for, as long as
  // the peers can be expected to take them: nothing is to be written to memory that the program has back, and nobody is
  // to get the bytes of memory that is used for something else. What is left then goes with its connection.
  // `out_of_reach`: a peer, or a rail, was found to be.
  void come_to(const Status& cause, bool out_of_reach);

  // Takes the farewells that have arrived over the worker, whose turn the caller has. Cheap where there are none.
  void listen(RailWorker& worker) { farewells_.listen(worker); }
  // Not ok once there was one: peer_failed, with the rank that failed and its reason.
  const Status& heard() const { return farewells_.heard(); }

 private:
  void cancel_receives();
  bool settle();
  bool all_gave_up();
  void cut_off();
  void let_go();

  std::vector<RailState>& rails_;
  Farewells farewells_;
  std::uint64_t patience_ns_;
  bool announced_ = false;
};

}  // namespace plait::tl

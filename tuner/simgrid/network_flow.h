// A message's way through SimGrid's network, without a communication of SimGrid's around it: at the end of each one
// CommImpl::finish() of 3.32 walks the list of all that nobody waits for (CommImpl::detach() enters them, as
// Comm::sendto_init() does), so that N at once took N x N.
#pragma once

#include <simgrid/s4u/Host.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace plait::tuner {

using FlowId = const void*;

struct NetworkFlow {
  FlowId id = nullptr;
  std::shared_ptr<void> held;
};

// Begins now. From SimGrid's kernel (a timer).
NetworkFlow begin_flow(simgrid::s4u::Host* from, simgrid::s4u::Host* to, std::uint64_t bytes);
// From a timer at the date of its end, before others begin: until then it takes its share of the links. The flow has to
// stay until SimGrid has looked at what ended, past that date.
void end_flow(NetworkFlow& flow);
// Of every flow, and of what is none of these, in the middle of SimGrid's update. For ever: SimGrid forgets no
// listener.
void on_flow_end(std::function<void(FlowId)> told);

}  // namespace plait::tuner

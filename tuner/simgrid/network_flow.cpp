#include "tuner/simgrid/network_flow.h"

#include <simgrid/version.h>

#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u/Comm.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Link.hpp>
#include <string>
#include <utility>
#include <vector>

namespace plait::tuner {

namespace sg = simgrid;
using sg::kernel::resource::Action;

#if SIMGRID_VERSION_MAJOR == 3 && SIMGRID_VERSION_MINOR == 32

// The network's model as SimGrid 3.32 itself sees it. Its header is not installed; its base's is, and these functions
// follow that one's. Not in the anonymous namespace, where the compiler would know that nothing implements them.
class SeenNetworkModel : public sg::kernel::resource::Model {
 public:
  virtual void* create_link(const std::string& name, const std::vector<double>& rates) = 0;
  virtual void* create_wifi_link(const std::string& name, const std::vector<double>& rates) = 0;
  virtual Action* communicate(sg::s4u::Host* from, sg::s4u::Host* to, double bytes, double rate) = 0;
};

namespace {

NetworkFlow flow(sg::s4u::Host* from, sg::s4u::Host* to, double bytes) {
  constexpr double any_rate = -1;
  const auto& zone = *sg::s4u::Engine::get_instance()->get_netzone_root()->get_impl();
  auto* network = reinterpret_cast<SeenNetworkModel*>(zone.get_network_model().get());
  Action* action = network->communicate(from, to, bytes, any_rate);
  return {action, {action, [](Action* ended) { ended->unref(); }}};
}

void let_go(NetworkFlow& flow) { flow.held.reset(); }
FlowId flow_of(const Action& action) { return &action; }

#else

namespace {

NetworkFlow flow(sg::s4u::Host* from, sg::s4u::Host* to, double bytes) {
  auto comm = std::make_shared<sg::s4u::CommPtr>(sg::s4u::Comm::sendto_async(from, to, static_cast<uint64_t>(bytes)));
  return {(*comm)->get_impl(), comm};
}

void let_go(NetworkFlow&) {}  // it does by itself
FlowId flow_of(const Action& action) { return action.get_activity(); }

#endif

}  // namespace

NetworkFlow begin_flow(sg::s4u::Host* from, sg::s4u::Host* to, std::uint64_t bytes) {
  return flow(from, to, static_cast<double>(bytes));
}

void end_flow(NetworkFlow& flow) { let_go(flow); }

// A communication's only change of state is its end.
void on_flow_end(std::function<void(FlowId)> told) {
  sg::s4u::Link::on_communication_state_change_cb(
      [told = std::move(told)](sg::kernel::resource::NetworkAction& network_action, Action::State) {
        // NetworkAction is an Action first of all, which SimGrid's installed headers do not say.
        told(flow_of(reinterpret_cast<const Action&>(network_action)));
      });
}

}  // namespace plait::tuner

// Three channels more than there are, for the sources of a test that are compiled with this before all else: between
// ranks of a node, and two between nodes, the last of them for where the others do not work. What a new channel adds: a
// line of core/channel_kind.h, and one of runtime/team/connectors.cpp.
#pragma once

#include <memory>

#define PLAIT_MORE_CHANNEL_KINDS(LINE) \
  LINE(link, .crosses_nodes = false, .device_memory = true) LINE(fabric) LINE(ether)
#define PLAIT_MORE_CONNECTORS make_link_connector, make_fabric_connector, make_ether_connector,

namespace plait::tl {
class Connector;
}
namespace plait::runtime {
class Oob;
std::unique_ptr<tl::Connector> make_link_connector(Oob& oob);
std::unique_ptr<tl::Connector> make_fabric_connector(Oob& oob);
std::unique_ptr<tl::Connector> make_ether_connector(Oob& oob);
}  // namespace plait::runtime

#include "runtime/team/connectors.h"

#include <array>

#include "runtime/oob/host_connector.h"

// Those of a test that has a channel more.
#ifndef PLAIT_MORE_CONNECTORS
#define PLAIT_MORE_CONNECTORS
#endif

namespace plait::runtime {
namespace {

// nullptr: these ranks have no such channel, all of them alike. Settings are handed on here: tl/ knows those of no job.
using MakeConnector = std::unique_ptr<Connector> (*)(Oob& oob);

// A line for each.
constexpr std::array registered = std::to_array<MakeConnector>({
    make_host_connector,
    PLAIT_MORE_CONNECTORS  //
});

}  // namespace

std::vector<std::unique_ptr<Connector>> make_connectors(Oob& oob) {
  std::vector<std::unique_ptr<Connector>> made;
  for (const MakeConnector make : registered)
    if (std::unique_ptr<Connector> connector = make(oob)) made.push_back(std::move(connector));
  return made;
}

}  // namespace plait::runtime

#include "tl/connector.h"

namespace plait::tl {

std::vector<int> usual_groups(ChannelKind kind, const Hierarchy& hierarchy) {
  std::vector<int> groups(static_cast<std::size_t>(hierarchy.ranks()), 0);
  if (traits(kind).crosses_nodes) return groups;
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) groups[static_cast<std::size_t>(rank)] = hierarchy.node_of(rank);
  return groups;
}

}  // namespace plait::tl

#include "tuner/simgrid/global_links.h"

#include <simgrid/plugins/load.h>
#include <xbt/sysdep.h>

#include <algorithm>
#include <simgrid/s4u/Link.hpp>

namespace plait::tuner {
GlobalLinks::GlobalLinks(Topology topology, int nodes) {
  sg_link_t* all = sg_link_list();
  for (std::size_t i = 0; i < sg_link_count(); ++i)
    if (is_global_link(sg_link_get_name(all[i]), topology, nodes)) links_.push_back(all[i]);
  for (sg_link_t link : links_) sg_link_load_track(link);
  xbt_free(all);
}

double GlobalLinks::bytes() const {
  double sum = 0;
  for (sg_link_t link : links_) sum += sg_link_get_cum_load(link);
  return sum;
}

bool GlobalCrossings::is_global(const simgrid::s4u::Link* link) {
  const auto [known, is_new] = known_.try_emplace(link, false);
  if (is_new) known->second = is_global_link(link->get_name(), topology_, nodes_);
  return known->second;
}

int GlobalCrossings::between(const simgrid::s4u::Host* from, const simgrid::s4u::Host* to) {
  if (from == to || topology_ == Topology::flat) return 0;
  way_.clear();
  from->route_to(to, way_, nullptr);
  return static_cast<int>(std::ranges::count_if(way_, [&](const auto* link) { return is_global(link); }));
}

}  // namespace plait::tuner

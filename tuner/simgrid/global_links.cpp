#include "tuner/simgrid/global_links.h"

#include <simgrid/plugins/load.h>
#include <xbt/sysdep.h>

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

}  // namespace plait::tuner

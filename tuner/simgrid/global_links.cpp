#include "tuner/simgrid/global_links.h"

#include <simgrid/plugins/load.h>
#include <xbt/sysdep.h>

#include <charconv>
#include <string_view>

namespace plait::tuner {
namespace {

// SimGrid 3.32's names: "link_from_8191_8051_4108_UP" from a switch, whose numbers follow those of the nodes;
// "blue_link_between_group_0_and_4_..."; "torus_link_from_12_to_13_DOWN".
bool is_global(std::string_view name, Topology topology, int nodes) {
  switch (topology) {
    case Topology::fat_tree: {
      constexpr std::string_view before = "link_from_";
      int from = -1;
      if (!name.starts_with(before)) return false;
      std::from_chars(name.data() + before.size(), name.data() + name.size(), from);
      return from >= nodes;
    }
    case Topology::dragonfly:
      return name.starts_with("blue_link_");
    case Topology::torus:
      return name.starts_with("torus_link_from_");
    case Topology::flat:
      return false;
  }
  return false;
}

}  // namespace

GlobalLinks::GlobalLinks(Topology topology, int nodes) {
  sg_link_t* all = sg_link_list();
  for (std::size_t i = 0; i < sg_link_count(); ++i)
    if (is_global(sg_link_get_name(all[i]), topology, nodes)) links_.push_back(all[i]);
  for (sg_link_t link : links_) sg_link_load_track(link);
  xbt_free(all);
}

double GlobalLinks::bytes() const {
  double sum = 0;
  for (sg_link_t link : links_) sum += sg_link_get_cum_load(link);
  return sum;
}

}  // namespace plait::tuner

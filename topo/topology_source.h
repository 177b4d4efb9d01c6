// Where a topology comes from.
#pragma once

#include <string>

namespace plait::topo {

struct TopologySource {
  enum class Kind { this_machine, synthetic, xml_file } kind = Kind::this_machine;
  std::string text;  // hwloc synthetic description or the path of an XML file
};

}  // namespace plait::topo

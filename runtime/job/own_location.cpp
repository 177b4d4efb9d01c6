#include "runtime/job/own_location.h"

#include "topo/discovery.h"

namespace plait::runtime {

const Location& own_location() {
  static const Location location = discover_location();
  return location;
}

const Location& own_rough_location() {
  static const Location location = discover_rough_location();
  return location;
}

}  // namespace plait::runtime

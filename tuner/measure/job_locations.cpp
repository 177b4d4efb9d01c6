#include "tuner/measure/job_locations.h"

#include <cstring>
#include <span>

#include "core/config.h"
#include "plan/choose/table.h"
#include "topo/discovery.h"
#include "topo/shape.h"

namespace plait::tuner {

std::vector<Location> gather_locations(MpiSession& session) {
  const Location mine = discover_location();
  const auto bytes = session.gather_bytes(std::as_bytes(std::span(&mine, 1)));
  std::vector<Location> all(static_cast<std::size_t>(session.ranks()));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

Fingerprint job_fingerprint(MpiSession& session, const Hierarchy& hierarchy) {
  const std::string hardware = describe_processors();
  Fingerprint print =
      system_fingerprint(session.library_release(), hardware, load_config_from_process().config.channels);
  for (const std::string& other : session.gather_text_at_root(hardware))
    if (other != hardware) print.erase("hardware");
  if (const std::string shape = shape_text(hierarchy, 1); !shape.empty()) print["shape"] = shape;
  return print;
}

}  // namespace plait::tuner

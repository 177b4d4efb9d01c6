#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "topo/discovery.h"

namespace plait::topo {
namespace {

// The first processor's "model name" (x86), or what else names it; empty where the kernel says nothing.
std::string model_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string implementer;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos || colon + 2 > line.size()) continue;
    std::string name = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1), value = line.substr(colon + 2);
    if (name == "model name" || name == "cpu") return value;
    if (name == "CPU implementer" || name == "CPU part") implementer += (implementer.empty() ? "" : "/") + value;
  }
  return implementer;
}

}  // namespace

std::string describe_processors() {
  constexpr std::size_t longest = 200;
  std::string name = model_name();
  name.resize(std::min(name.size(), longest));
  const long processors = std::max(sysconf(_SC_NPROCESSORS_CONF), 1L);
  return std::to_string(processors) + " x " + (name.empty() ? "unknown processor" : name);
}

}  // namespace plait::topo

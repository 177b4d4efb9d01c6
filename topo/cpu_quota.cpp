#include "topo/detail/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace plait::topo::detail {
namespace {

// One CPU limit: `quota` microseconds of processor time in each `period` microseconds.
struct Limit {
  double quota = 0, period = 0;
};

// cgroup v2: "200000 100000" or "max 100000".
std::optional<Limit> read_v2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  Limit limit;
  if (file >> limit.quota >> limit.period && limit.period > 0) return limit;
  return std::nullopt;
}

// cgroup v1: one number a file, a quota of -1 is none.
std::optional<Limit> read_v1(const std::string& directory) {
  std::ifstream quota(directory + "/cpu.cfs_quota_us"), period(directory + "/cpu.cfs_period_us");
  Limit limit;
  if (quota >> limit.quota && period >> limit.period && limit.quota > 0 && limit.period > 0) return limit;
  return std::nullopt;
}

// The tightest limit from `path` up to the mount point. In a container `path` may be the host's and not exist under
// the container's mount: then only the mount point itself answers, which is the container's own group.
template <class Read>
int tightest(const std::string& mount, std::string path, Read read) {
  int processors = 0;
  while (true) {
    if (const auto limit = read(mount + path)) {
      const int here = std::max(1, static_cast<int>(std::min(limit->quota / limit->period, 1e6)));
      processors = processors == 0 ? here : std::min(processors, here);
    }
    const auto slash = path.find_last_of('/');
    if (slash == std::string::npos) return processors;
    path.resize(slash);
  }
}

bool has_controller(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string controller; std::getline(list, controller, ',');) {
    if (controller == wanted) return true;
  }
  return false;
}

}  // namespace

int cgroup_processors(std::string_view filesystem_root) {
  const std::string root(filesystem_root);
  std::ifstream groups(root + "/proc/self/cgroup");
  int processors = 0;
  const auto tighten = [&](int limit) {
    if (limit > 0) processors = processors == 0 ? limit : std::min(processors, limit);
  };
  // Each line is "hierarchy:controllers:path"; cgroup v2 has no controllers.
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      tighten(tightest(root + "/sys/fs/cgroup", path, read_v2));
      tighten(tightest(root + "/sys/fs/cgroup/unified", path, read_v2));
    } else if (has_controller(controllers, "cpu")) {
      // Which of the two names exists depends on how the two controllers were mounted.
      tighten(tightest(root + "/sys/fs/cgroup/cpu", path, read_v1));
      tighten(tightest(root + "/sys/fs/cgroup/cpu,cpuacct", path, read_v1));
    }
  }
  return processors;
}

}  // namespace plait::topo::detail

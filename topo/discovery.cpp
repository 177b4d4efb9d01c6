#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/config.h"
#include "core/text_hash.h"
#include "topo/detail/cpu_quota.h"
#include "topo/detail/hwloc_topology.h"
#include "topo/discovery.h"
#include "topo/gpus.h"

namespace plait::topo {
namespace {

// An identity only has to be the same on all ranks of a node and differ between nodes.
std::uint64_t hash(std::string_view text, std::uint64_t seed = 0) { return hash_text(text, hash_begin ^ seed); }

// The text that changes with every boot of every machine. Without /proc the host name has to stand in for it.
// Not by a stream, which takes a lack of memory for the end of the file: the rank would be on a node of its own.
std::string boot_identity(const char* hostname) {
  std::array<char, 64> text{};
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file >= 0 ? read(file, text.data(), text.size()) : -1;
  if (file >= 0) close(file);
  if (length <= 0) return std::string("host ") + hostname;
  const std::string_view read_text(text.data(), static_cast<std::size_t>(length));
  return std::string(read_text.substr(0, read_text.find('\n')));
}

std::string namespace_identity(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? std::to_string(status.st_dev) + ':' + std::to_string(status.st_ino) : "unknown";
}

// Two differently seeded hashes of all that must agree for two processes to share memory and a NIC.
HostId host_id(const std::string& boot) {
  const std::string identity = boot + ' ' + namespace_identity("/proc/self/ns/ipc") + ' ' +
                               namespace_identity("/proc/self/ns/net") + ' ' +
                               namespace_identity("/proc/self/ns/pid");  // segments are attached through /proc
  return {hash(identity), hash(identity, 0x9e3779b97f4a7c15u)};
}

// The processors the calling thread may run on: the thread that enters MPI is the one whose place counts.
detail::Bitmap binding_of_this_thread(hwloc_topology_t topology) {
  detail::Bitmap binding(hwloc_bitmap_alloc());
  if (binding && hwloc_get_cpubind(topology, binding.get(), HWLOC_CPUBIND_THREAD) != 0) binding.reset();
  return binding;
}

std::uint64_t leaf_switch() {
  const std::string name = load_config_from_process().config.leaf_switch;
  return name.empty() ? 0 : std::max<std::uint64_t>(1, hash(name));
}

void find_place(Location& location) {
  const auto topology = detail::load_topology({});
  if (!topology.ok()) return;
  const auto binding = binding_of_this_thread(topology->get());
  if (binding) detail::locate(topology->get(), binding.get(), location);
}

// Asks the management library of GPUs, which takes long, only where the process has one of them for its own.
void find_gpu(Location& location) {
  const std::string only = load_config_from_process().config.only_gpu;
  if (only.empty() && !computes_on_gpu()) return;
  const auto gpus = system_gpus()->gpus();
  if (!gpus.ok()) return;
  location.gpu = own_gpu(*gpus, only);
  if (location.gpu >= 0) location.island = islands_of(*gpus)[static_cast<std::size_t>(location.gpu)];
}

// Processors in the thread's binding.
int processors_bound_to() {
  // The kernel's count, not hwloc's: it must hold when hwloc is shown another machine through HWLOC_SYNTHETIC.
  constexpr int most = 1 << 16;
  int allowed = 1;
  if (cpu_set_t* set = CPU_ALLOC(most); set != nullptr) {
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    if (sched_getaffinity(0, bytes, set) == 0) allowed = CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
  }
  return allowed;
}

int processors_allowed() {
  const int allowed = processors_bound_to();
  const int quota = detail::cgroup_processors("");
  return std::max(1, quota > 0 ? std::min(quota, allowed) : allowed);
}

}  // namespace

HostId discover_host() {
  std::array<char, 64> hostname{};
  gethostname(hostname.data(), hostname.size() - 1);
  return host_id(boot_identity(hostname.data()));
}

std::uint64_t discover_machine() {
  std::array<char, 64> hostname{};
  gethostname(hostname.data(), hostname.size() - 1);
  return hash(boot_identity(hostname.data()));
}

namespace {

Location locate_process() {
  Location location;
  gethostname(location.hostname, sizeof location.hostname - 1);
  const std::string boot = boot_identity(location.hostname);
  location.machine = hash(boot);
  location.host = host_id(boot);
  location.leaf_switch = leaf_switch();
  location.process = getpid();
  location.user = geteuid();
  location.cores_allowed = processors_allowed();
  return location;
}

}  // namespace

Location discover_location() {
  Location location = locate_process();
  find_place(location);
  find_gpu(location);
  return location;
}

Location discover_rough_location() {
  Location location = locate_process();
  if (processors_bound_to() < sysconf(_SC_NPROCESSORS_ONLN)) find_place(location);
  return location;
}

}  // namespace plait::topo

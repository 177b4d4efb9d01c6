#include "topo/rails.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>

namespace plait::topo {
namespace {

constexpr double bits_a_byte = 8;
constexpr std::uint32_t link_local = 0xa9fe0000, link_local_mask = 0xffff0000;  // 169.254.0.0/16: not routable

std::string interface_file(const std::string& name, const char* file) { return "/sys/class/net/" + name + "/" + file; }

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// In Mbit/s, -1 or unreadable where the driver does not say.
double nominal_rate(const std::string& name) {
  const std::string text = first_word(interface_file(name, "speed"));
  int mbit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mbit);
  return error == std::errc() && end == text.data() + text.size() && mbit > 0 ? mbit * 1e6 / bits_a_byte : 0;
}

std::string dotted(std::uint32_t address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8)
    text += (text.empty() ? "" : ".") + std::to_string(address >> shift & 0xff);
  return text;
}

std::string subnet(const Interface& interface) {
  return dotted(interface.address & interface.netmask) + "/" + std::to_string(__builtin_popcount(interface.netmask));
}

std::string obstacle(const Interface& interface) {
  if (!interface.up) return "down";
  if (!interface.running) return "no link";
  if (interface.bridge) return "a bridge of this host's own";
  if ((interface.address & link_local_mask) == link_local) return "no routable address";
  return "up";
}

Rail rail_of(const VerbsPort& port) {
  Rail rail;
  rail.name = port.device + ":" + std::to_string(port.port);
  rail.kind = port.ethernet ? RailKind::roce : RailKind::infiniband;
  // The first half of the GID is the subnet's prefix: four groups of four digits.
  std::size_t end = 0;
  for (int group = 0; group < 4 && end != std::string::npos; ++group) end = port.gid.find(':', end + (group > 0));
  rail.network = std::string(name(rail.kind)) + " " + port.gid.substr(0, end);
  rail.bytes_per_second = port.bytes_per_second;
  rail.state = port.active ? "up" : port.state;
  return rail;
}

Rail rail_of(const Interface& interface) {
  Rail rail;
  rail.name = interface.name;
  rail.network = subnet(interface);
  rail.address = interface.address;
  rail.bytes_per_second = interface.bytes_per_second;
  rail.state = obstacle(interface);
  return rail;
}

// A second port on a network is another rail: it meets the second ports of the other nodes.
void number_networks(std::vector<Rail>& rails) {
  std::map<std::string, int> seen;
  for (Rail& rail : rails)
    if (const int number = ++seen[rail.network]; number > 1) rail.network += "#" + std::to_string(number);
}

Status choose_named(std::vector<Rail>& rails, std::string_view wanted) {
  std::vector<Rail> chosen;
  while (!wanted.empty()) {
    const std::string_view one = wanted.substr(0, wanted.find(','));
    const auto found = std::ranges::find(rails, one, &Rail::name);
    if (found == rails.end())
      return {Code::invalid, "PLAIT_RAILS: there is no rail '" + std::string(one) + "' (plait topo shows them)"};
    chosen.push_back(std::move(*found));
    rails.erase(found);
    chosen.back().used = chosen.back().state == "up";
    wanted.remove_prefix(std::min(wanted.size(), one.size() + 1));
  }
  for (Rail& rail : rails)
    if (rail.state == "up") rail.state = "not in PLAIT_RAILS";
  chosen.insert(chosen.end(), std::make_move_iterator(rails.begin()), std::make_move_iterator(rails.end()));
  rails = std::move(chosen);
  return {};
}

}  // namespace

std::string_view name(RailKind kind) {
  switch (kind) {
    case RailKind::infiniband:
      return "InfiniBand";
    case RailKind::roce:
      return "RoCE";
    default:
      return "Ethernet";
  }
}

std::vector<Interface> network_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET || entry->ifa_netmask == nullptr) continue;
    if (std::ranges::find(found, entry->ifa_name, &Interface::name) != found.end()) continue;  // its first address
    Interface interface;
    interface.name = entry->ifa_name;
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    interface.running = (entry->ifa_flags & IFF_RUNNING) != 0;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    interface.bridge = std::ifstream(interface_file(interface.name, "bridge/bridge_id")).good();
    interface.address = ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr);
    interface.netmask = ntohl(reinterpret_cast<const sockaddr_in*>(entry->ifa_netmask)->sin_addr.s_addr);
    interface.bytes_per_second = nominal_rate(interface.name);
    found.push_back(std::move(interface));
  }
  std::ranges::sort(found, {}, &Interface::name);
  return found;
}

std::vector<Rail> rails_of(std::span<const VerbsPort> ports, std::span<const Interface> interfaces) {
  std::vector<Rail> rails;
  for (const VerbsPort& port : ports) rails.push_back(rail_of(port));
  const bool verbs = std::ranges::any_of(ports, &VerbsPort::active);
  for (const Interface& interface : interfaces) {
    if (interface.loopback) continue;
    rails.push_back(rail_of(interface));
    if (verbs && rails.back().state == "up") rails.back().state = "there are HCAs";
  }
  number_networks(rails);
  return rails;
}

Status choose_rails(std::vector<Rail>& rails, std::string_view wanted) {
  int most = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), most);
  const bool number = error == std::errc() && end == wanted.data() + wanted.size() && most > 0;
  if (wanted != "all" && !number) return choose_named(rails, wanted);
  for (Rail& rail : rails) {
    if (rail.state != "up") continue;
    rail.used = !number || most-- > 0;
    if (!rail.used) rail.state = "beyond the number in PLAIT_RAILS";
  }
  return {};
}

// Opening libibverbs takes longer than everything else here, and finds nothing where the kernel knows of no device.
std::vector<Rail> discover_rails() {
  std::error_code none;
  if (!std::filesystem::exists("/sys/class/infiniband_verbs", none)) return rails_of({}, network_interfaces());
  const auto ports = system_verbs()->ports();
  return rails_of(ports.ok() ? *ports : std::vector<VerbsPort>(), network_interfaces());
}

namespace {

// This process has as many files open as it may, or the machine has: a file that is there is not read then.
bool lacks_files(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == EMFILE || errno == ENFILE;
  close(file);
  return false;
}

}  // namespace

bool link_is_up(const Rail& rail) {
  const auto colon = rail.name.find(':');
  const bool ethernet = rail.kind == RailKind::ethernet;
  const std::string path = ethernet ? interface_file(rail.name, "carrier")
                                    : "/sys/class/infiniband/" + rail.name.substr(0, colon) + "/ports/" +
                                          rail.name.substr(colon + 1) + "/state";
  std::ifstream file(path);
  std::string state;
  std::getline(file, state);
  if (state.empty()) return lacks_files(path);  // unreadable otherwise: the interface is down or gone
  return ethernet ? state == "1" : state.find("ACTIVE") != std::string::npos;
}

}  // namespace plait::topo

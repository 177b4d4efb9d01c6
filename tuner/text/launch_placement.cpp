#include "tuner/text/launch_placement.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

bool is_host_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), allowed);
}

Result<HostSlots> parse_host(const std::string& word) {
  const auto refused = [&] {
    return Status(Code::invalid, "--hosts \"" + word + "\": expected name:slots, such as a:16");
  };
  const auto colon = word.rfind(':');
  if (colon == word.npos || !is_host_name(std::string_view(word).substr(0, colon))) return refused();
  HostSlots host{word.substr(0, colon), 0};
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data() + colon + 1, end, host.slots);
  if (error != std::errc() || rest != end || host.slots < 1) return refused();
  return host;
}

// Of the first host; by symmetry every host's ranks take their slots in the same order.
std::string slot_order(std::span<const int> devices, int ranks_per_host) {
  std::string list;
  int expected = 0;
  bool ascending = true;
  for (const int device : devices) {
    if (device >= ranks_per_host) continue;
    ascending &= device == expected++;
    list += (list.empty() ? "" : ",") + std::to_string(device);
  }
  return ascending ? "" : list;
}

}  // namespace

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  std::vector<HostSlots> hosts;
  for (const std::string& word : split(text, ',')) {
    auto host = parse_host(word);
    if (!host.ok()) return host.status();
    const auto same = [&](const HostSlots& other) { return other.name == host->name; };
    if (std::any_of(hosts.begin(), hosts.end(), same)) {
      return {Code::invalid, "--hosts: \"" + host->name + "\" is named twice"};
    }
    hosts.push_back(std::move(*host));
  }
  return hosts;
}

Result<int> ranks_per_host(std::span<const int> system, std::span<const HostSlots> hosts) {
  std::size_t groups = 1;
  std::size_t level = 0;
  std::string expected = "1";
  for (; groups != hosts.size() && level < system.size(); ++level) {
    if (system[level] == 1) continue;
    groups *= static_cast<std::size_t>(system[level]);
    expected += ", " + std::to_string(groups);
  }
  if (groups != hosts.size()) {
    return {Code::invalid, "--hosts: " + plural(hosts.size(), "host") +
                               "; expected as many as the outermost levels have groups, one of " + expected};
  }
  int ranks = 1;
  for (; level < system.size(); ++level) ranks *= system[level];
  for (const HostSlots& host : hosts) {
    if (host.slots < ranks) {
      return {Code::invalid, "--hosts: " + host.name + " has " +
                                 plural(static_cast<std::uint64_t>(host.slots), "slot") + "; expected at least " +
                                 std::to_string(ranks)};
    }
  }
  return ranks;
}

std::string rankfile(std::span<const int> devices, std::span<const HostSlots> hosts, int ranks_per_host) {
  std::string text;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const int device = devices[rank];
    text += "rank " + std::to_string(rank) + '=' + hosts[static_cast<std::size_t>(device / ranks_per_host)].name +
            " slot=" + std::to_string(device % ranks_per_host) + '\n';
  }
  return text;
}

LaunchOptions launch_options(std::span<const int> devices, int ranks_per_host) {
  const int ranks = static_cast<int>(devices.size());
  const int hosts = ranks / ranks_per_host;
  bool block = true, cyclic = true;
  for (int rank = 0; rank < ranks; ++rank) {
    const int device = devices[static_cast<std::size_t>(rank)];
    block &= device == rank;
    cyclic &= device == rank % hosts * ranks_per_host + rank / hosts;
  }
  if (block) return {"--map-by slot", "--distribution=block:block", ""};
  if (cyclic) return {"--map-by node", "--distribution=cyclic:block", ""};
  return {"", "", slot_order(devices, ranks_per_host)};
}

std::vector<std::string> host_of_ranks(std::span<const int> devices, std::span<const HostSlots> hosts,
                                       int ranks_per_host) {
  std::vector<std::string> names;
  for (const int device : devices) names.push_back(hosts[static_cast<std::size_t>(device / ranks_per_host)].name);
  return names;
}

}  // namespace plait::tuner

#include "plan/model/machine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/json.h"
#include "plan/model/collective.h"
#include "plan/model/instruct.h"
#include "plan/model/json_members.h"

namespace plait::plan {

namespace {

// The two systems that P² (Xie et al., MLSys 2022, section 5) was measured on. Rates are bytes a second.
struct GpuSystem {
  const char* name;
  double network_rate;  // of a node's NIC
  bool network_half_duplex;
  double device_rate;  // of a GPU's NVLink
  bool device_half_duplex;
};

constexpr std::array gpu_systems = {
    // 16 A100 a node on an NVSwitch, 270 GB/s each; 100 Gbit/s a node, of which the paper takes 60 to 64 % to be usable
    // (7.5 to 8 GB/s). 7 GB/s, both directions together, fits its measured times best.
    GpuSystem{"a100", 7.0e9, true, 270e9, true},
    // 8 V100 a node in an NVLink ring, 135 GB/s in each direction; the same network. PCIe's 32 GB/s lie between the two
    // and limit nothing.
    GpuSystem{"v100", 8.0e9, true, 135e9, false},
};

// A pass over the payload before the first message: fitted to the paper's rows within one node.
constexpr double gpu_start_rate = 168e9;
// Of a message across the network, and within a node. The paper's rows move gigabytes and hardly depend on them.
constexpr double gpu_network_latency = 20e-6;
constexpr double gpu_device_latency = 5e-6;

Machine machine_of(const GpuSystem& system) {
  Machine machine;
  machine.name = system.name;
  machine.levels = {{.name = "node",
                     .latency = gpu_network_latency,
                     .port_seconds_per_byte = 1 / system.network_rate,
                     .half_duplex = system.network_half_duplex,
                     .network = true},
                    {.name = "gpu",
                     .latency = gpu_device_latency,
                     .port_seconds_per_byte = 1 / system.device_rate,
                     .half_duplex = system.device_half_duplex}};
  machine.start_seconds_per_byte = 1 / gpu_start_rate;
  return machine;
}

// ---- machine files

constexpr int most_rails = 16;

constexpr std::size_t most_channels = 8;
constexpr int most_meeting = 1 << 16;

Result<ChannelLink> parse_channel(const Json& json, const std::string& where) {
  ChannelLink link;
  JsonMembers members(json, where);
  members.text("channel", link.channel)
      .seconds("latency_seconds", link.latency)
      .seconds("overhead_seconds", link.overhead)
      .rate("bytes_per_second", link.seconds_per_byte);
  if (Status status = members.finish(); !status.ok()) return status;
  return link;
}

Status parse_channels_of(const Json& json, const std::string& where, LinkLevel& level) {
  if (!json.is_array() || json.empty() || json.size() > most_channels)
    return unexpected(where, "a list of 1 to " + std::to_string(most_channels) + " channels");
  for (std::size_t index = 0; index < json.size(); ++index) {
    Result<ChannelLink> link = parse_channel(json[index], where + "[" + std::to_string(index) + "].");
    if (!link.ok()) return link.status();
    level.channels.push_back(std::move(*link));
  }
  return {};
}

// "rail_shares": [4, 1]: any numbers in proportion to the rails' rates.
Status parse_rail_shares(const Json& json, const std::string& where, LinkLevel& level) {
  double sum = 0;
  bool good = json.is_array() && json.size() == static_cast<std::size_t>(level.rails);
  for (std::size_t rail = 0; good && rail < json.size(); ++rail) {
    good = json[rail].is_number() && json[rail].get<double>() > 0 && json[rail].get<double>() < 1e9;
    if (good) sum += level.rail_shares.emplace_back(json[rail].get<double>());
  }
  if (!good) return unexpected(where, "a positive number for each of " + std::to_string(level.rails) + " rails");
  for (double& share : level.rail_shares) share /= sum;
  return {};
}

Status parse_meeting(const Json& json, const std::string& where, Meeting& meeting) {
  if (!json.is_object()) return unexpected(where, "an object");
  JsonMembers members(json, where + ".");
  members.count("near", meeting.near, most_meeting)
      .positive("messages", meeting.messages)
      .count("ring", meeting.ring, most_meeting);
  return members.finish();
}

Status parse_device_link(const Json& json, const std::string& where, DeviceLink& link) {
  if (!json.is_object()) return unexpected(where, "an object");
  JsonMembers members(json, where + ".");
  members.seconds("latency_seconds", link.latency).rate("bytes_per_second", link.seconds_per_byte);
  return members.finish();
}

// {"to": {..}, "from": {..}}
Status parse_devices(const Json& json, Machine& machine) {
  if (!json.is_object()) return unexpected("devices", "an object");
  JsonMembers members(json, "devices.");
  const Json *to = members.any("to"), *from = members.any("from");
  Status status = members.finish();
  if (status.ok() && to != nullptr) status = parse_device_link(*to, "devices.to", machine.to_device);
  if (status.ok() && from != nullptr) status = parse_device_link(*from, "devices.from", machine.from_device);
  return status;
}

Result<LinkLevel> parse_level(const Json& json, std::size_t index) {
  LinkLevel level;
  const std::string where = "levels[" + std::to_string(index) + "].";
  JsonMembers members(json, where);
  members.text("name", level.name)
      .seconds("latency_seconds", level.latency)
      .seconds("overhead_seconds", level.overhead)
      .seconds("cpu_seconds_per_byte", level.cpu_seconds_per_byte)
      .rate("port_bytes_per_second", level.port_seconds_per_byte)
      .seconds("port_seconds_per_message", level.port_seconds_per_message)
      .duplex("duplex", level.half_duplex)
      .flag("port_shared", level.port_shared)
      .flag("network", level.network)
      .count("rails", level.rails, most_rails);
  const Json *channels = members.any("channels"), *shares = members.any("rail_shares");
  const Json *meeting = members.any("meeting"), *devices = members.any("devices");
  if (Status status = members.finish(); !status.ok()) return status;
  if (shares != nullptr)
    if (Status status = parse_rail_shares(*shares, where + "rail_shares", level); !status.ok()) return status;
  if (meeting != nullptr)
    if (Status status = parse_meeting(*meeting, where + "meeting", level.meeting); !status.ok()) return status;
  if (devices != nullptr)
    if (Status status = parse_device_link(*devices, where + "devices", level.devices); !status.ok()) return status;
  if (channels != nullptr)
    if (Status status = parse_channels_of(*channels, where + "channels", level); !status.ok()) return status;
  return level;
}

constexpr std::size_t most_host_points = 64;

// {"allreduce": [{"bytes": 8, "seconds": 1e-6}, ..], ..}
Result<std::vector<HostPoint>> parse_host_curve(const Json& json, const std::string& where) {
  if (!json.is_array() || json.size() > most_host_points)
    return unexpected(where, "a list of at most " + std::to_string(most_host_points) + " points");
  std::vector<HostPoint> points;
  for (std::size_t index = 0; index < json.size(); ++index) {
    const std::string place = where + "[" + std::to_string(index) + "]";
    HostPoint& point = points.emplace_back();
    JsonMembers members(json[index], place + ".");
    members.bytes("bytes", point.bytes).seconds("seconds", point.seconds);
    if (Status status = members.finish(); !status.ok()) return status;
    if (index > 0 && points[index - 1].bytes >= point.bytes) return unexpected(place + ".bytes", "more than before");
  }
  return points;
}

Status parse_host(const Json& json, Machine& machine) {
  if (!json.is_object()) return unexpected("host", "an object of curves by collective");
  for (const auto& [collective, curve] : json.items()) {
    if (!collective_named(collective)) return unexpected("host: \"" + collective + "\"", "the name of a collective");
    Result<std::vector<HostPoint>> points = parse_host_curve(curve, "host." + collective);
    if (!points.ok()) return points.status();
    machine.host[collective] = std::move(*points);
  }
  return {};
}

Result<Machine> parse_members(const Json& json) {
  Machine machine;
  JsonMembers members(json, "");
  members.version("plait_machine", 1).text("name", machine.name);
  const Json* levels = members.list("levels", most_levels, "levels");
  const Json *host = members.any("host"), *devices = members.any("devices");
  members.rate("reduce_bytes_per_second", machine.reduce_seconds_per_byte)
      .rate("copy_bytes_per_second", machine.copy_seconds_per_byte)
      .rate("start_bytes_per_second", machine.start_seconds_per_byte)
      .positive("ranks_per_core", machine.ranks_per_core)
      .fingerprint("fingerprint", machine.fingerprint);
  if (Status status = members.finish(); !status.ok()) return status;
  if (host != nullptr) {
    if (Status status = parse_host(*host, machine); !status.ok()) return status;
  }
  if (devices != nullptr)
    if (Status status = parse_devices(*devices, machine); !status.ok()) return status;
  for (std::size_t index = 0; index < levels->size(); ++index) {
    Result<LinkLevel> level = parse_level((*levels)[index], index);
    if (!level.ok()) return level.status();
    machine.levels.push_back(std::move(*level));
  }
  return machine;
}

double rate_of(double seconds_per_byte) { return seconds_per_byte > 0 ? 1 / seconds_per_byte : 0; }

Json device_link_json(const DeviceLink& link) {
  return {{"latency_seconds", link.latency}, {"bytes_per_second", rate_of(link.seconds_per_byte)}};
}

Json level_json(const LinkLevel& level) {
  Json json = {{"name", level.name},
               {"latency_seconds", level.latency},
               {"overhead_seconds", level.overhead},
               {"cpu_seconds_per_byte", level.cpu_seconds_per_byte},
               {"port_bytes_per_second", rate_of(level.port_seconds_per_byte)},
               {"port_seconds_per_message", level.port_seconds_per_message},
               {"duplex", level.half_duplex ? "half" : "full"},
               {"network", level.network},
               {"rails", level.rails}};
  if (level.port_shared) json["port_shared"] = true;
  if (!level.rail_shares.empty()) json["rail_shares"] = level.rail_shares;
  if (const Meeting& meeting = level.meeting; meeting != Meeting()) {
    json["meeting"]["messages"] = meeting.messages;
    if (meeting.near > 0) json["meeting"]["near"] = meeting.near;
    if (meeting.ring > 0) json["meeting"]["ring"] = meeting.ring;
  }
  if (level.devices.known()) json["devices"] = device_link_json(level.devices);
  for (const ChannelLink& link : level.channels)
    json["channels"].push_back({{"channel", link.channel},
                                {"latency_seconds", link.latency},
                                {"overhead_seconds", link.overhead},
                                {"bytes_per_second", rate_of(link.seconds_per_byte)}});
  return json;
}

}  // namespace

double Meeting::at(int distance, int children) const {
  if (distance < near || children < 2) return 1;
  if (ring == 0) return messages;
  const int places = distance % ring == 0 ? distance / ring : distance % ring;
  return messages * std::max(std::min(places, ring - places), 1);
}

// A ring's busiest link carries an eighth of the pairs in each direction, that in the middle of a part of one a
// quarter.
double Meeting::of_all(int children) const {
  if (ring == 0 || children < 2) return 1;
  const double met = std::min(ring, children), across = children < ring ? 4 : 8;
  return std::max(messages * met * met / (across * (met - 1)), 1.0);
}

Machine default_machine() {
  Machine machine;
  machine.name = "default";
  // Slots stay in the second-level cache: the rates are the cache's, and a message costs most of a microsecond. These
  // figures put the change from exchanges to halves at 64 KiB between two ranks, where perf/tl_exchange finds it.
  machine.levels = {{.name = "node",
                     .latency = 15e-6,
                     .overhead = 5e-6,
                     .cpu_seconds_per_byte = 1 / 6e9,
                     .port_seconds_per_byte = 1 / 1.2e9,
                     .port_seconds_per_message = 1e-6,
                     .half_duplex = false,
                     .network = true},
                    {.name = "rank", .latency = 0.8e-6, .overhead = 0.05e-6, .cpu_seconds_per_byte = 1 / 80e9}};
  machine.reduce_seconds_per_byte = 1 / 80e9;
  machine.copy_seconds_per_byte = 1 / 80e9;
  return machine;
}

Result<Machine> machine_named(std::string_view name) {
  std::string names = "default";
  if (name == names) return default_machine();
  for (const GpuSystem& system : gpu_systems) {
    if (name == system.name) return machine_of(system);
    names += std::string(", ") + system.name;
  }
  return Status(Code::invalid, "machine \"" + std::string(name) + "\": expected one of " + names);
}

Result<Machine> parse_machine(std::string_view text) {
  constexpr int deepest = 8;
  const Result<Json> json = parse_json(text, deepest);
  Result<Machine> machine = json.ok() ? parse_members(*json) : Result<Machine>(json.status());
  if (!machine.ok()) return Status(Code::invalid, "machine file: " + machine.status().message());
  return machine;
}

std::string machine_json(const Machine& machine) {
  Json json = {{"plait_machine", 1}, {"name", machine.name}, {"levels", Json::array()}};
  if (machine.to_device.known()) json["devices"]["to"] = device_link_json(machine.to_device);
  if (machine.from_device.known()) json["devices"]["from"] = device_link_json(machine.from_device);
  for (const LinkLevel& level : machine.levels) json["levels"].push_back(level_json(level));
  json["reduce_bytes_per_second"] = rate_of(machine.reduce_seconds_per_byte);
  json["copy_bytes_per_second"] = rate_of(machine.copy_seconds_per_byte);
  json["start_bytes_per_second"] = rate_of(machine.start_seconds_per_byte);
  json["ranks_per_core"] = machine.ranks_per_core;
  for (const auto& [collective, points] : machine.host)
    for (const HostPoint& point : points)
      json["host"][collective].push_back({{"bytes", point.bytes}, {"seconds", point.seconds}});
  if (!machine.fingerprint.empty()) json["fingerprint"] = machine.fingerprint;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace plait::plan

#include "plan/machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "plan/program.h"

namespace plait {

namespace {

using Json = nlohmann::ordered_json;

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

Status wrong(const std::string& where, const std::string& expected) {
  return {Code::invalid, where + ": expected " + expected};
}

// The members of one object of the file, read in turn; the first that is wrong stays in status().
class Members {
 public:
  Members(const Json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {
    if (!object.is_object()) fail("", "an object");
  }

  // A member that is absent leaves `value` as it is, unless it is required.
  Members& text(const char* member, std::string& value) {
    const Json* found = take(member);
    if (!found) return fail(member, "a name; it is missing");
    if (!found->is_string() || found->get_ref<const std::string&>().empty()) return fail(member, "a name");
    value = found->get<std::string>();
    return *this;
  }
  Members& flag(const char* member, bool& value) {
    const Json* found = take(member);
    if (!found) return *this;
    if (!found->is_boolean()) return fail(member, "true or false");
    value = found->get<bool>();
    return *this;
  }
  Members& seconds(const char* member, double& value) {
    const Json* found = take(member);
    if (!found) return *this;
    if (!is_amount(*found)) return fail(member, "a number of seconds, 0 or more");
    value = found->get<double>();
    return *this;
  }
  // A rate becomes its inverse; 0 means that there is no limit, and so does its inverse.
  Members& rate(const char* member, double& seconds_per_byte) {
    const Json* found = take(member);
    if (!found) return *this;
    const double rate = is_amount(*found) ? found->get<double>() : -1;
    if (rate < 0 || (rate > 0 && !std::isnormal(1 / rate))) return fail(member, "bytes a second, or 0 for no limit");
    seconds_per_byte = rate > 0 ? 1 / rate : 0;
    return *this;
  }
  Members& positive(const char* member, double& value) {
    const Json* found = take(member);
    if (!found) return *this;
    if (!is_amount(*found) || found->get<double>() <= 0) return fail(member, "a positive number");
    value = found->get<double>();
    return *this;
  }
  Members& duplex(const char* member, bool& half) {
    const Json* found = take(member);
    if (!found) return *this;
    if (*found != "full" && *found != "half") return fail(member, "\"full\" or \"half\"");
    half = *found == "half";
    return *this;
  }
  Members& version(const char* member, int wanted) {
    const Json* found = take(member);
    if (!found || !found->is_number_integer() || *found != wanted) return fail(member, std::to_string(wanted));
    return *this;
  }
  const Json* list(const char* member, std::size_t most) {
    const Json* found = take(member);
    if (found && found->is_array() && !found->empty() && found->size() <= most) return found;
    fail(member, "a list of 1 to " + std::to_string(most) + " levels");
    return nullptr;
  }

  // Call last: whatever was not asked for is unknown.
  Status finish() {
    if (!status_.ok() || !object_.is_object()) return status_;
    for (const auto& [member, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), member) == known_.end()) {
        std::string list;
        for (const std::string& name : known_) list += (list.empty() ? "" : ", ") + name;
        return wrong(prefix_ + "\"" + member + "\" is no member", "one of " + list);
      }
    }
    return {};
  }

 private:
  static bool is_amount(const Json& value) {
    return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
  }
  const Json* take(const char* member) {
    known_.emplace_back(member);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(member);
    return found == object_.end() ? nullptr : &*found;
  }
  Members& fail(const std::string& member, const std::string& expected) {
    const std::string whole = prefix_.empty() ? "the document" : prefix_.substr(0, prefix_.size() - 1);
    if (status_.ok()) status_ = wrong(member.empty() ? whole : prefix_ + member, expected);
    return *this;
  }

  const Json& object_;
  std::string prefix_;
  std::vector<std::string> known_;
  Status status_;
};

Result<LinkLevel> parse_level(const Json& json, std::size_t index) {
  LinkLevel level;
  Members members(json, "levels[" + std::to_string(index) + "].");
  members.text("name", level.name)
      .seconds("latency_seconds", level.latency)
      .seconds("overhead_seconds", level.overhead)
      .seconds("cpu_seconds_per_byte", level.cpu_seconds_per_byte)
      .rate("port_bytes_per_second", level.port_seconds_per_byte)
      .seconds("port_seconds_per_message", level.port_seconds_per_message)
      .duplex("duplex", level.half_duplex)
      .flag("network", level.network);
  if (Status status = members.finish(); !status.ok()) return status;
  return level;
}

Result<Machine> parse_members(const Json& json) {
  Machine machine;
  Members members(json, "");
  members.version("plait_machine", 1).text("name", machine.name);
  const Json* levels = members.list("levels", most_levels);
  members.rate("reduce_bytes_per_second", machine.reduce_seconds_per_byte)
      .rate("copy_bytes_per_second", machine.copy_seconds_per_byte)
      .rate("start_bytes_per_second", machine.start_seconds_per_byte)
      .positive("ranks_per_core", machine.ranks_per_core);
  if (Status status = members.finish(); !status.ok()) return status;
  for (std::size_t index = 0; index < levels->size(); ++index) {
    Result<LinkLevel> level = parse_level((*levels)[index], index);
    if (!level.ok()) return level.status();
    machine.levels.push_back(std::move(*level));
  }
  return machine;
}

double rate_of(double seconds_per_byte) { return seconds_per_byte > 0 ? 1 / seconds_per_byte : 0; }

Json level_json(const LinkLevel& level) {
  return {{"name", level.name},
          {"latency_seconds", level.latency},
          {"overhead_seconds", level.overhead},
          {"cpu_seconds_per_byte", level.cpu_seconds_per_byte},
          {"port_bytes_per_second", rate_of(level.port_seconds_per_byte)},
          {"port_seconds_per_message", level.port_seconds_per_message},
          {"duplex", level.half_duplex ? "half" : "full"},
          {"network", level.network}};
}

}  // namespace

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

Result<Machine> parse_machine(std::string_view json) {
  try {
    Result<Machine> machine = parse_members(Json::parse(json));
    if (!machine.ok()) return Status(Code::invalid, "machine file: " + machine.status().message());
    return machine;
  } catch (const nlohmann::json::exception& error) {
    return Status(Code::invalid, std::string("machine file: expected JSON: ") + error.what());
  }
}

std::string machine_json(const Machine& machine) {
  Json json = {{"plait_machine", 1}, {"name", machine.name}, {"levels", Json::array()}};
  for (const LinkLevel& level : machine.levels) json["levels"].push_back(level_json(level));
  json["reduce_bytes_per_second"] = rate_of(machine.reduce_seconds_per_byte);
  json["copy_bytes_per_second"] = rate_of(machine.copy_seconds_per_byte);
  json["start_bytes_per_second"] = rate_of(machine.start_seconds_per_byte);
  json["ranks_per_core"] = machine.ranks_per_core;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace plait

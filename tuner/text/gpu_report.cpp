#include "tuner/text/gpu_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "core/units.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> end_names = {"gpu", "switch", "other"};
std::string_view name(GpuLink::End end) { return end_names[static_cast<std::size_t>(end)]; }

std::string decimal(double value) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + ' ' + std::string(count == 1 ? one : many);
}

Json known(int index) { return index >= 0 ? Json(index) : Json(nullptr); }

// ---- Text ----

// "18 links to 4 switches, 478 GB/s"
std::string links_text(const std::vector<GpuLink>& links) {
  std::array<std::size_t, end_names.size()> ends = {};
  std::size_t in_all = 0;
  double rate = 0;
  for (const GpuLink& link : links) {
    ++ends[static_cast<std::size_t>(link.end)];
    in_all += static_cast<std::size_t>(link.links);
    rate += link.bytes_per_second;
  }
  if (in_all == 0) return "no links of its own";
  std::string to;
  const std::array<std::pair<std::string_view, std::string_view>, end_names.size()> words = {
      {{"GPU", "GPUs"}, {"switch", "switches"}, {"other end", "other ends"}}};
  for (std::size_t end = 0; end < ends.size(); ++end)
    if (ends[end] > 0) to += (to.empty() ? "" : " and ") + plural(ends[end], words[end].first, words[end].second);
  return plural(in_all, "link", "links") + " to " + to + (rate > 0 ? ", " + decimal(rate / 1e9) + " GB/s" : "");
}

std::string nearest_text(const GpuTopology& found, const Gpu& gpu) {
  const std::vector<int> nearest = nearest_nics(gpu);
  if (nearest.empty()) return "";
  std::string names;
  for (const int nic : nearest) names += (names.empty() ? "" : " ") + found.nics[static_cast<std::size_t>(nic)].name;
  constexpr std::array<std::string_view, 4> within = {"by one PCIe switch", "by one host bridge", "on its NUMA node",
                                                      "across the machine"};
  const Nearness nearness = gpu.nics[static_cast<std::size_t>(nearest[0])];
  return ", near " + names + " (" + std::string(within[static_cast<std::size_t>(nearness)]) + ')';
}

std::string gpu_text(const GpuTopology& found, std::size_t index) {
  const Gpu& gpu = found.gpus[index];
  std::string text =
      "GPU " + std::to_string(index) + ": " + (gpu.facts.name.empty() ? "not to be asked" : gpu.facts.name);
  if (gpu.facts.bytes > 0) text += ", " + format_bytes(gpu.facts.bytes);
  if (!gpu.facts.pci.empty()) text += ", " + gpu.facts.pci;
  if (gpu.numa >= 0) text += ", NUMA node " + std::to_string(gpu.numa);
  return text + ", " + links_text(gpu.facts.links) + nearest_text(found, gpu) + '\n';
}

std::string island_text(const Island& island, std::size_t index) {
  std::string text = "island " + std::to_string(index) + ": GPUs";
  for (const int gpu : island.gpus) text += ' ' + std::to_string(gpu);
  return text +
         (island.switches > 0 ? ", through " + plural(static_cast<std::size_t>(island.switches), "switch", "switches")
                              : ", from GPU to GPU") +
         '\n';
}

// ---- JSON ----

Json gpu_json(const GpuTopology& found, const Gpu& gpu) {
  Json json = {{"name", gpu.facts.name},      {"uuid", gpu.facts.uuid},        {"pci", gpu.facts.pci},
               {"bytes", gpu.facts.bytes},    {"package", known(gpu.package)}, {"numa", known(gpu.numa)},
               {"island", known(gpu.island)}, {"links", Json::array()},        {"nics", Json::array()}};
  for (const GpuLink& link : gpu.facts.links)
    json["links"].push_back({{"end", name(link.end)},
                             {"peer", link.peer},
                             {"links", link.links},
                             {"bytes_per_second", link.bytes_per_second}});
  for (std::size_t nic = 0; nic < gpu.nics.size(); ++nic)
    json["nics"].push_back({{"name", found.nics[nic].name}, {"nearness", topo::name(gpu.nics[nic])}});
  return json;
}

// ---- Reading ----

template <class T>
bool take(const Json& object, const char* member, T& value) {
  const auto found = object.find(member);
  if (found == object.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!found->is_number()) return false;
  } else if (!found->is_number_unsigned()) {
    return false;
  }
  value = found->template get<T>();
  return true;
}

bool take_link(const Json& json, GpuLink& link) {
  std::string end;
  if (!json.is_object() || !take(json, "end", end) || !take(json, "peer", link.peer) ||
      !take(json, "links", link.links) || !take(json, "bytes_per_second", link.bytes_per_second))
    return false;
  const auto known = std::ranges::find(end_names, end);
  link.end = static_cast<GpuLink::End>(known - end_names.begin());
  return known != end_names.end() && link.links > 0;
}

bool take_gpu(const Json& json, GpuFacts& gpu) {
  if (!json.is_object() || !take(json, "name", gpu.name) || !take(json, "uuid", gpu.uuid) ||
      !take(json, "pci", gpu.pci) || !take(json, "bytes", gpu.bytes))
    return false;
  const auto links = json.find("links");
  if (links == json.end() || !links->is_array()) return false;
  return std::ranges::all_of(*links, [&](const Json& link) { return take_link(link, gpu.links.emplace_back()); });
}

// The member `gpus` of the first node, where the whole output was kept.
const Json* part_of_gpus(const Json& json) {
  if (!json.is_object() || !json.contains("nodes")) return &json;
  const Json& nodes = json["nodes"];
  const bool one = nodes.is_array() && !nodes.empty() && nodes[0].is_object() && nodes[0].contains("gpus");
  return one ? &nodes[0]["gpus"] : nullptr;
}

}  // namespace

std::string gpus_text(const Result<GpuTopology>& found) {
  if (!found.ok()) return "no GPU found (" + found.status().message() + ")\n";
  if (found->gpus.empty()) return "no GPU found (the driver's library lists none)\n";
  std::string text;
  for (std::size_t gpu = 0; gpu < found->gpus.size(); ++gpu) text += gpu_text(*found, gpu);
  for (std::size_t island = 0; island < found->islands.size(); ++island)
    text += island_text(found->islands[island], island);
  return text;
}

Json gpus_json(const Result<GpuTopology>& found) {
  Json json = {{"devices", Json::array()}, {"islands", Json::array()}, {"nics", Json::array()}, {"reason", nullptr}};
  if (!found.ok()) {
    json["reason"] = found.status().message();
    return json;
  }
  for (const Gpu& gpu : found->gpus) json["devices"].push_back(gpu_json(*found, gpu));
  for (const Island& island : found->islands)
    json["islands"].push_back({{"gpus", island.gpus}, {"switches", island.switches}});
  for (const Nic& nic : found->nics)
    json["nics"].push_back({{"name", nic.name}, {"pci", nic.pci}, {"numa", known(nic.numa)}});
  return json;
}

Result<std::vector<GpuFacts>> parse_gpus(std::string_view text) {
  constexpr std::size_t most_gpus = 1024;
  const auto wrong = [](const std::string& expected) { return Status(Code::invalid, "expected " + expected); };
  const Json json = Json::parse(text, nullptr, false);
  const Json* part = json.is_discarded() ? nullptr : part_of_gpus(json);
  if (part == nullptr || !part->is_object() || !part->contains("devices") || !(*part)["devices"].is_array())
    return wrong("what `plait topo --json` prints, or its member gpus");
  const Json& devices = (*part)["devices"];
  if (devices.size() > most_gpus) return wrong("at most 1024 devices");
  std::vector<GpuFacts> gpus(devices.size());
  for (std::size_t index = 0; index < devices.size(); ++index)
    if (!take_gpu(devices[index], gpus[index]))
      return wrong("devices[" + std::to_string(index) + "] with name, uuid, pci, bytes and links");
  return gpus;
}

Result<std::vector<GpuFacts>> read_gpus(const std::string& path) {
  constexpr std::size_t most_bytes = 16 << 20;
  const auto text = read_file(path, most_bytes);
  if (!text.ok()) return text.status();
  auto gpus = parse_gpus(*text);
  if (!gpus.ok()) return Status(Code::invalid, "'" + path + "': " + gpus.status().message());
  return gpus;
}

}  // namespace plait::tuner

#include "plan/overlap/layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/file.h"
#include "plan/model/json_members.h"

namespace plait::plan {
namespace {

constexpr int version = 1;
constexpr int deepest = 4;
constexpr std::size_t longest_name = 256, largest_file = std::size_t{16} << 20;
constexpr std::size_t most_bytes = std::size_t{1} << 50;          // of all layers: sums of doubles are exact then
constexpr double longest_seconds = 1e9, shortest_seconds = 1e-9;  // of all layers

Status read_layer(const Json& json, const std::string& where, Layer& layer) {
  JsonMembers members(json, where);
  layer.seconds = -1;
  members.text("name", layer.name).bytes("bytes", layer.bytes).seconds("seconds", layer.seconds);
  if (Status status = members.finish(); !status.ok()) return status;
  if (layer.seconds < 0) return unexpected(where + "seconds", "a number of seconds, 0 or more; it is missing");
  if (layer.name.size() > longest_name)
    return unexpected(where + "name", "at most " + std::to_string(longest_name) + " bytes");
  return {};
}

Status check_sums(const LayerTable& table) {
  double bytes = 0, seconds = 0;
  for (const Layer& layer : table.layers) {
    bytes += static_cast<double>(layer.bytes);
    seconds += layer.seconds;
  }
  if (bytes <= 0) return unexpected("layers", "a layer with a gradient: all bytes are 0");
  if (bytes > static_cast<double>(most_bytes)) return unexpected("layers", "gradients of at most 2^50 bytes together");
  if (seconds < shortest_seconds || seconds > longest_seconds)
    return unexpected("layers", "computation of 1e-9 to 1e9 seconds together");
  return {};
}

}  // namespace

BackwardPass backward_pass(const LayerTable& table) {
  BackwardPass pass;
  pass.bytes_factor = table.bytes_factor;
  for (const Layer& layer : table.layers) {
    pass.tail += layer.seconds;
    if (layer.bytes == 0) continue;
    pass.computation.push_back(std::exchange(pass.tail, 0));
    pass.bytes.push_back(static_cast<double>(layer.bytes));
  }
  return pass;
}

std::vector<OverlapCall> overlap_calls(const LayerTable& table) {
  std::vector<OverlapCall> calls;
  for (const Layer& layer : table.layers)
    if (layer.bytes > 0) calls.push_back({layer.bytes, layer.name});
  return calls;
}

LayerTable scaled(LayerTable table, double seconds_factor, double bytes_factor) {
  table.bytes_factor *= bytes_factor;
  for (Layer& layer : table.layers) {
    layer.seconds *= seconds_factor;
    if (layer.bytes == 0) continue;
    // Whole floats, where there are that many.
    const double bytes = std::round(static_cast<double>(layer.bytes) * bytes_factor / 4) * 4;
    layer.bytes = static_cast<std::size_t>(std::max(bytes, 4.));
  }
  return table;
}

Result<LayerTable> parse_layers(std::string_view text) {
  const Result<Json> json = parse_json(text, deepest);
  if (!json.ok()) return json.status();
  LayerTable table;
  JsonMembers members(*json, "");
  members.version("plait_layers", version).text("model", table.model);
  const Json* layers = members.list("layers", most_layers, "layers");
  if (Status status = members.finish(); !status.ok()) return status;
  for (std::size_t i = 0; i < layers->size(); ++i) {
    const std::string where = "layers[" + std::to_string(i) + "].";
    if (Status status = read_layer((*layers)[i], where, table.layers.emplace_back()); !status.ok()) return status;
  }
  if (Status status = check_sums(table); !status.ok()) return status;
  return table;
}

std::string layers_json(const LayerTable& table) {
  Json json = {{"plait_layers", version}, {"model", table.model}, {"layers", Json::array()}};
  for (const Layer& layer : table.layers)
    json["layers"].push_back({{"name", layer.name}, {"bytes", layer.bytes}, {"seconds", layer.seconds}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<LayerTable> read_layers(const std::string& path) {
  const Result<std::string> text = read_file(path, largest_file);
  if (!text.ok()) return text.status();
  Result<LayerTable> table = parse_layers(*text);
  if (!table.ok()) return {Code::invalid, "\"" + path + "\": " + table.status().message()};
  return table;
}

}  // namespace plait::plan

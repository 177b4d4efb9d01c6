#include "tuner/text/limit_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/units.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

struct NamedCurve {
  const char* key;    // in JSON
  const char* title;  // of a column
  MoveCurve NodeLimits::*curve;
};

constexpr std::array<NamedCurve, 12> curves = {{
    {"copy_one", "copy, one", &NodeLimits::copy_one},
    {"copy_all", "copy, all", &NodeLimits::copy_all},
    {"copy_one_cold", "cold, one", &NodeLimits::copy_one_cold},
    {"copy_all_cold", "cold, all", &NodeLimits::copy_all_cold},
    {"reduce_f32_one", "f32 sum, one", &NodeLimits::reduce_f32_one},
    {"reduce_f32_all", "f32 sum, all", &NodeLimits::reduce_f32_all},
    {"reduce_i32_one", "i32 sum, one", &NodeLimits::reduce_i32_one},
    {"reduce_i32_all", "i32 sum, all", &NodeLimits::reduce_i32_all},
    {"pull_one", "pull, one", &NodeLimits::pull_one},
    {"pull_all", "pull, all", &NodeLimits::pull_all},
    {"mapped_one", "mapped, one", &NodeLimits::mapped_one},
    {"mapped_all", "mapped, all", &NodeLimits::mapped_all},
}};

using Cells = std::vector<std::string>;

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// GB/s of a size, or a dash where it was not measured.
std::string rate(const MoveCurve& curve, std::size_t bytes) {
  const auto found = std::find_if(curve.begin(), curve.end(), [&](const MovePoint& p) { return p.bytes == bytes; });
  return found == curve.end() ? "-" : number(static_cast<double>(bytes) / found->seconds / 1e9, 2);
}

std::vector<Cells> table_of(const NodeLimits& limits) {
  std::vector<Cells> lines = {{"size"}};
  for (const NamedCurve& named : curves) lines[0].emplace_back(named.title);
  for (const MovePoint& point : limits.copy_all) {
    Cells line = {format_bytes(point.bytes)};
    for (const NamedCurve& named : curves) line.push_back(rate(limits.*named.curve, point.bytes));
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string markdown_line(const Cells& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + '\n';
}

std::string plain_line(const Cells& cells) {
  constexpr std::size_t width = 12;
  std::string line;
  for (const std::string& cell : cells) line += std::string(width + 1 - std::min(width, cell.size()), ' ') + cell;
  return line + '\n';
}

std::string round_trips(const NodeLimits& limits) {
  const auto microseconds = [](double seconds) { return number(seconds * 1e6, 3) + " us"; };
  std::string text = "flag round trip of two ranks: ";
  if (limits.spin_round_trip_s > 0) text += microseconds(limits.spin_round_trip_s) + " spinning on two cores, ";
  return text + microseconds(limits.yield_round_trip_s) + " yielding on one core\n";
}

// Nanoseconds: finer is noise.
double json_microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

}  // namespace

std::string limits_text(const NodeLimits& limits, bool markdown) {
  std::string text = std::to_string(limits.ranks) + " ranks on " + std::to_string(limits.cores) +
                     (limits.cores == 1 ? " core" : " cores") + " of one node; GB/s a rank\n\n";
  const auto lines = table_of(limits);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    text += markdown ? markdown_line(lines[index]) : plain_line(lines[index]);
    if (markdown && index == 0) text += markdown_line(Cells(lines[0].size(), "---:"));
  }
  return text + '\n' + round_trips(limits);
}

Json limits_json(const NodeLimits& limits) {
  Json json = {{"ranks", limits.ranks}, {"cores", limits.cores}};
  const auto trip = limits.spin_round_trip_s;
  json["spin_round_trip_us"] = trip > 0 ? Json(json_microseconds(trip)) : Json(nullptr);
  json["yield_round_trip_us"] = json_microseconds(limits.yield_round_trip_s);
  for (const NamedCurve& named : curves) {
    Json points = Json::array();
    for (const MovePoint& point : limits.*named.curve) {
      points.push_back({{"bytes", point.bytes}, {"us", point.seconds * 1e6}});
    }
    json[named.key] = std::move(points);
  }
  return json;
}

}  // namespace plait::tuner

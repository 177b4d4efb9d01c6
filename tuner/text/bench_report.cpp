#include "tuner/text/bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/units.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  const char* title;
  std::size_t width;
  bool left = false;
};

// The plan's name comes last, because it may be long.
std::vector<Column> columns(const BenchHeading& heading) {
  std::vector<Column> all = {{"collective", 20, true}, {"size", 9}, {"host us", 10}, {"Plait us", 10}, {"ratio", 7}};
  if (heading.limits) all.push_back({"limit us", 10});
  if (heading.bounded()) all.push_back({heading.limits ? "of limit" : "of bound", 9});
  all.push_back({"plan", 4, true});
  return all;
}

std::string decimals(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Three digits or more.
std::string microseconds(double seconds) {
  const double value = seconds * 1e6;
  return decimals(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::vector<std::string> cells(const BenchHeading& heading, const BenchRow& row) {
  const Measurement& measured = row.measured;
  std::vector<std::string> all = {
      std::string(name(row.collective)), row.collective == Collective::barrier ? "-" : format_bytes(row.bytes),
      microseconds(measured.host_seconds), microseconds(measured.plait_seconds), decimals(row.ratio(), 2)};
  if (heading.limits) all.push_back(row.bound_seconds ? microseconds(*row.bound_seconds) : "-");
  if (heading.bounded()) {
    const auto share = row.bound_share();
    all.push_back(share ? decimals(*share * 100, 1) + " %" : "-");
  }
  all.push_back(measured.plan + (measured.channels.empty() ? "" : " (" + joined(measured.channels) + ")") +
                (measured.on_trial ? ", on trial" : ""));
  return all;
}

std::string table_line(const std::vector<Column>& columns, const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t index = 0; index < cells.size(); ++index) {
    const Column& column = columns[index];
    const std::string padding(column.width - std::min(column.width, cells[index].size()), ' ');
    if (index > 0) line += "  ";
    line += column.left ? cells[index] + padding : padding + cells[index];
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + '\n';
}

std::string line(const BenchHeading& heading, const std::vector<std::string>& cells, BenchFormat format) {
  return format == BenchFormat::markdown ? markdown_line(cells) : table_line(columns(heading), cells);
}

std::string counted(int count, const char* what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::string job_line(const BenchHeading& heading) {
  std::string text = counted(heading.job.ranks(), "rank") + " on " + counted(heading.job.nodes(), "node");
  if (heading.job.nodes() > 1) text += ", mapping " + std::string(mapping(heading.job));
  if (heading.rate_bytes_per_second) {
    text += ", NICs of " + decimals(*heading.rate_bytes_per_second / 1e6, 2) + " MB/s";
    if (heading.rails > 1) text += " (" + counted(heading.rails, "rail") + ")";
  }
  if (heading.buffers == BufferKind::shared) text += ", buffers of MPI_Alloc_mem";
  return text + ", root " + std::to_string(heading.root) + '\n';
}

// Nanoseconds: finer is noise.
double json_microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

double four_decimals(double value) { return std::round(value * 1e4) / 1e4; }

Json row_json(const BenchRow& row) {
  const auto share = row.bound_share();
  return {{"collective", name(row.collective)},
          {"bytes", row.bytes},
          {"host_us", json_microseconds(row.measured.host_seconds)},
          {"plait_us", json_microseconds(row.measured.plait_seconds)},
          {"ratio", four_decimals(row.ratio())},
          {"bound_us", row.bound_seconds ? Json(json_microseconds(*row.bound_seconds)) : Json(nullptr)},
          {"bound_share", share ? Json(four_decimals(*share)) : Json(nullptr)},
          {"plan", row.measured.plan},
          {"channels", row.measured.channels},
          {"batches", row.measured.batches},
          {"on_trial", row.measured.on_trial}};
}

Json heading_json(const BenchHeading& heading) {
  const auto& rate = heading.rate_bytes_per_second;
  return {{"ranks", heading.job.ranks()},
          {"nodes", heading.job.nodes()},
          {"mapping", mapping(heading.job)},
          {"root", heading.root},
          {"buffers", heading.buffers == BufferKind::shared ? "shared" : "private"},
          {"rate_bytes_per_second", rate ? Json(*rate) : Json(nullptr)},
          {"rails", heading.rails}};
}

}  // namespace

std::optional<double> BenchRow::bound_share() const {
  if (!bound_seconds) return std::nullopt;
  return *bound_seconds / measured.plait_seconds;
}

std::string bench_heading_text(const BenchHeading& heading, BenchFormat format) {
  if (format == BenchFormat::lines) return heading_json(heading).dump() + '\n';
  std::vector<std::string> titles, rules;
  for (const Column& column : columns(heading)) {
    titles.emplace_back(column.title);
    rules.emplace_back(column.left ? "---" : "---:");
  }
  if (format == BenchFormat::table) return job_line(heading) + '\n' + line(heading, titles, format);
  return job_line(heading) + '\n' + line(heading, titles, format) + line(heading, rules, format);
}

std::string bench_row_text(const BenchHeading& heading, const BenchRow& row, BenchFormat format) {
  if (format == BenchFormat::lines) return row_json(row).dump() + '\n';
  return line(heading, cells(heading, row), format);
}

Json bench_json(const BenchHeading& heading, const std::vector<BenchRow>& rows) {
  Json list = Json::array();
  for (const BenchRow& row : rows) list.push_back(row_json(row));
  Json json = heading_json(heading);
  json["rows"] = std::move(list);
  return json;
}

std::string bench_row_name(const BenchRow& row) {
  const std::string collective(name(row.collective));
  return row.collective == Collective::barrier ? collective : collective + " of " + format_bytes(row.bytes);
}

}  // namespace plait::tuner

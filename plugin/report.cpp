#include "plugin/report.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/units.h"
#include "plait/plait.h"
#include "plugin/gather_text.h"
#include "plugin/node_report.h"
#include "plugin/placement_advice.h"
#include "plugin/process.h"
#include "plugin/rails.h"
#include "plugin/trials.h"
#include "tl/mpi/library_version.h"

namespace plait {
namespace {

using nlohmann::json;

struct Rows {
  std::mutex guard;
  std::map<ReportKey, std::unique_ptr<ReportRow>> by_key;
};

Rows& rows() {
  static auto* all = new Rows;  // never destroyed: calls may come until the process ends
  return *all;
}

// The best network that any communicator of this process saw, so that the advice does not claim too much, and the most
// crowded cores.
struct Links {
  std::mutex guard;
  double network = 0;  // seconds a byte; 0: not measured
  double crowd = 1;    // ranks a core
};
Links& links() {
  static auto* all = new Links;  // never destroyed, like the rows
  return *all;
}

constexpr int class_bits = 3;

std::size_t class_begin(int size_class) { return size_class < 0 ? 0 : std::size_t{1} << (class_bits * size_class); }
std::size_t class_end(int size_class) { return size_class < 0 ? 0 : class_begin(size_class + 1); }

// ---- From the ranks to rank 0 ----

std::string serialise_rows() {
  json list = json::array();
  const std::scoped_lock lock(rows().guard);
  for (const auto& [key, row] : rows().by_key)
    if (row->calls.load() != 0)  // a plan may have served calls of another form only
      list.push_back({static_cast<int>(key.collective), key.ranks, key.size_class, key.plan, key.channels, key.reason,
                      row->calls.load(), row->bytes.load(), row->nanoseconds.load(), key.grid,
                      static_cast<int>(key.form)});
  const std::scoped_lock links_lock(links().guard);
  json rails = json::array();
  for (const RailTraffic& rail : rail_traffic()) rails.push_back({rail.name, rail.bytes});
  const json all = {{"rows", list},   {"network", links().network}, {"crowd", links().crowd},
                    {"rails", rails}, {"saved", saved_seconds()},   {"node", own_node_facts()}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

struct Line {
  int collective, form, ranks, size_class;
  std::string plan, reason;
  auto operator<=>(const Line&) const = default;
};

// Over all ranks: a collective of n ranks was counted n times.
struct Sums {
  std::uint64_t calls = 0, bytes = 0, nanoseconds = 0;
  std::set<std::string> channels;  // each rank knows of its own: some have no neighbour, some no part in the network
};
using Table = std::map<Line, Sums>;

// What the advice on placement is made from: calls on the communicators of a process grid.
struct GridLine {
  std::string axes;
  int collective, size_class;
  auto operator<=>(const GridLine&) const = default;
};
using Rails = std::map<std::string, std::uint64_t>;  // bytes sent, by name

struct Report {
  Rails rails;
  NodeReport node;
  Table table;
  std::map<GridLine, Sums> grid;
  double saved = 0;  // seconds, summed over the ranks
};

std::uint64_t shared(std::uint64_t sum, const Line& line) {
  const auto ranks = static_cast<std::uint64_t>(std::max(line.ranks, 1));
  return (sum + ranks / 2) / ranks;
}

std::string name_of(const Line& line) {
  const std::string collective(name(static_cast<Collective>(line.collective)));
  switch (static_cast<Form>(line.form)) {
    case Form::nonblocking:
      return "i" + collective;
    case Form::persistent:
      return collective + "_init";
    default:
      return collective;
  }
}

// "shm,mpi" -> both of them.
void add_channels(std::set<std::string>& channels, const std::string& names) {
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) channels.insert(name);
}

std::string joined(const Sums& sums) {
  std::string text;
  for (const std::string& channel : sums.channels) text.append(text.empty() ? "" : ",").append(channel);
  return text;
}

void add(Sums& sums, const json& row) {
  sums.calls += row[6].get<std::uint64_t>();
  sums.bytes += row[7].get<std::uint64_t>();
  sums.nanoseconds += row[8].get<std::uint64_t>();
}

void merge(Report& report, int rank, const std::string& text) {
  const json all = json::parse(text, nullptr, false);
  if (!all.is_object()) return;
  note_links(all["network"], all["crowd"]);
  const auto& nodes = process().world_nodes;
  const auto index = static_cast<std::size_t>(rank);
  merge_node_facts(report.node, all["node"], index < nodes.size() ? nodes[index] : 0);
  report.saved += all["saved"].get<double>();
  for (const json& rail : all["rails"]) report.rails[rail[0]] += rail[1].get<std::uint64_t>();
  for (const json& row : all["rows"]) {
    Sums& sums = report.table[{row[0], row[10], row[1], row[2], row[3], row[5]}];
    add_channels(sums.channels, row[4]);
    add(sums, row);
    if (row[9] != "") add(report.grid[{row[9], row[0], row[2]}], row);
  }
}

// Every rank is in one communicator of each set of axes: what the ranks counted, over their number, is what each
// communicator did.
std::string advice(const Report& report) {
  JobPlacement job{.nodes = process().world_nodes, .machine = default_machine(), .traffic = {}};
  if (links().network > 0) job.machine.levels.front().port_seconds_per_byte = links().network;
  job.machine.ranks_per_core = links().crowd;
  for (const auto& [line, sums] : report.grid) {
    const auto axes = parse_grid_axes(line.axes);
    if (!axes.has_value() || sums.calls == 0) continue;
    const auto calls = static_cast<double>(sums.calls);
    job.traffic.push_back({.axes = *axes,
                           .collective = static_cast<Collective>(line.collective),
                           .calls = calls / static_cast<double>(std::max<std::size_t>(job.nodes.size(), 1)),
                           .bytes = static_cast<double>(sums.bytes) / calls});
  }
  return placement_advice(job);
}

// ---- The table for people ----

using Cells = std::vector<std::string>;

std::string size_range(int size_class) {
  if (size_class < 0) return "-";
  return format_bytes(class_begin(size_class)) + " - " + format_bytes(class_end(size_class));
}

std::string seconds(std::uint64_t nanoseconds) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.6f", static_cast<double>(nanoseconds) * 1e-9);
  return text.data();
}

Cells cells(const Line& line, const Sums& sums) {
  const std::string channels = joined(sums);
  return {name_of(line),
          std::to_string(line.ranks),
          size_range(line.size_class),
          std::to_string(shared(sums.calls, line)),
          format_bytes(shared(sums.bytes, line)),
          seconds(shared(sums.nanoseconds, line)),
          channels.empty() ? line.plan : line.plan + " over " + channels,
          line.reason};
}

Cells total(const Table& table) {
  Sums all;
  std::uint64_t accelerated = 0;
  for (const auto& [line, sums] : table) {
    all.calls += shared(sums.calls, line);
    all.bytes += shared(sums.bytes, line);
    all.nanoseconds += shared(sums.nanoseconds, line);
    if (line.plan != "host") accelerated += shared(sums.calls, line);
  }
  return {"total",
          "",
          "",
          std::to_string(all.calls),
          format_bytes(all.bytes),
          seconds(all.nanoseconds),
          std::to_string(accelerated) + " accelerated",
          ""};
}

std::string aligned(const std::vector<Cells>& lines) {
  std::vector<std::size_t> widths;
  for (const Cells& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    std::string row = "plait: ";
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - line[i].size(), ' ');
      const bool number = i >= 1 && i <= 5;  // numbers stand to the right
      row += (number ? padding + line[i] : line[i] + padding) + "  ";
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string rails_text(const Rails& rails) {
  std::string text;
  for (const auto& [name, bytes] : rails)
    text += (text.empty() ? "plait: rails: " : ", ") + name + " " + format_bytes(bytes);
  return text.empty() ? text : text + "\n";
}

double saved_by_a_rank(const Report& report) {
  return report.saved / static_cast<double>(std::max<std::size_t>(process().world_nodes.size(), 1));
}

// Empty where no trial has found anything faster.
std::string saved_text(const Report& report) {
  const double mean = saved_by_a_rank(report);
  return mean > 0 ? "plait: saved " + seconds(static_cast<std::uint64_t>(mean * 1e9)) +
                        " s against the host MPI (from trials; mean of the ranks)\n"
                  : "";
}

void print(const Report& report, const std::string& shared) {
  std::vector<Cells> lines;
  lines.push_back({"collective", "ranks", "size", "calls", "bytes", "seconds", "plan", "to the host because"});
  for (const auto& [line, sums] : report.table) lines.push_back(cells(line, sums));
  lines.push_back(total(report.table));
  const std::string placement = advice(report);
  const std::string text = aligned(lines) + "plait: MPI: " + library_version() + "\n" + saved_text(report) +
                           rails_text(report.rails) + node_report_text(report.node, shared) +
                           (placement.empty() ? "" : "plait: " + placement + "\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// ---- The file for tools ----

void write(const Report& report, const Config& config) {
  const std::string& path = config.report_path;
  const std::string placement = advice(report);
  int ranks = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  json list = json::array();
  for (const auto& [line, sums] : report.table)
    list.push_back({{"collective", name_of(line)},
                    {"ranks", line.ranks},
                    {"bytes_from", class_begin(line.size_class)},
                    {"bytes_below", class_end(line.size_class)},
                    {"calls", shared(sums.calls, line)},
                    {"bytes", shared(sums.bytes, line)},
                    {"seconds", static_cast<double>(shared(sums.nanoseconds, line)) * 1e-9},
                    {"plan", line.plan},
                    {"channels", joined(sums)},
                    {"reason", line.reason}});
  json object = {{"version", plait_version()}, {"mpi", library_version()}, {"ranks", ranks}, {"rows", list}};
  object["saved_seconds"] = saved_by_a_rank(report);
  object["node"] = node_report_json(report.node, config.shared);
  for (const auto& [name, bytes] : report.rails) object["rails"].push_back({{"name", name}, {"bytes", bytes}});
  if (!placement.empty()) object["placement"] = placement;
  const std::string text = object.dump(2) + "\n";
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file != nullptr && std::fclose(file) != 0) || !written) warn("the report could not be written to " + path);
}

}  // namespace

int size_class(std::size_t bytes) { return bytes == 0 ? -1 : (std::bit_width(bytes) - 1) / class_bits; }

ReportRow& report_row(const ReportKey& key) {
  const std::scoped_lock lock(rows().guard);
  std::unique_ptr<ReportRow>& row = rows().by_key[key];
  if (row == nullptr) row = std::make_unique<ReportRow>();
  return *row;
}

void note_links(double network_seconds_per_byte, double ranks_per_core) {
  const std::scoped_lock lock(links().guard);
  double& network = links().network;
  if (network_seconds_per_byte > 0 && (network == 0 || network_seconds_per_byte < network))
    network = network_seconds_per_byte;
  links().crowd = std::max(links().crowd, ranks_per_core);
}

void finish_report(const Config& config) {
  Report report;
  gather_text(serialise_rows(), [&](int rank, const std::string& text) { merge(report, rank, text); });
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  if (config.report_path.empty())
    print(report, config.shared);
  else
    write(report, config);
}

}  // namespace plait

#include "runtime/report/job_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/attempt.h"
#include "core/json.h"
#include "core/log.h"
#include "core/units.h"
#include "runtime/enforcer/schedule_counts.h"
#include "runtime/fusion/overlap_counts.h"
#include "runtime/job/job.h"
#include "runtime/job/own_location.h"
#include "runtime/oob/oob.h"
#include "runtime/record/node_counts.h"
#include "runtime/record/report_rows.h"
#include "runtime/report/node_report.h"
#include "runtime/report/placement_facts.h"
#include "runtime/report/report_content.h"
#include "runtime/team/own_rails.h"

namespace plait::runtime {
namespace {

using json = SortedJson;

std::size_t class_begin(int size_class) {
  return size_class < 0 ? 0 : std::size_t{1} << (size_class_bits * size_class);
}
std::size_t class_end(int size_class) { return size_class < 0 ? 0 : class_begin(size_class + 1); }

// ---- From the ranks to rank 0 ----

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::string serialise_rows() {
  json list = json::array();
  for_each_row([&](const ReportKey& key, const ReportRow& row) {
    if (row.calls.load() == 0) return;  // a plan may have served calls of another form only
    list.push_back({static_cast<int>(key.collective), key.ranks, key.size_class, key.plan, key.channels, key.reason,
                    row.calls.load(), row.bytes.load(), row.nanoseconds.load(), key.grid, static_cast<int>(key.form)});
  });
  const MeasuredLinks links = measured_links();
  json rails = json::array();
  for (const RailTraffic& rail : rail_traffic()) rails.push_back({rail.name, rail.bytes});
  const Location& own = own_location();
  const OrderCounts order = order_counts();
  const json all = {{"rows", list},
                    {"order", {order.calls, order.bytes, order.by_host}},
                    {"network", links.network},
                    {"crowd", links.crowd},
                    {"rails", rails},
                    {"saved", seconds(saved_nanoseconds())},
                    {"place", {own.package, own.numa, own.l3, own.core, own.cores_allowed}},
                    {"overlap", OverlapCounts::instance().facts()},
                    {"schedule", ScheduleCounts::instance().facts()},
                    {"node", own_node_facts()}};
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

// What advice on placement is made from: calls on the communicators of a process grid.
struct GridLine {
  std::string axes;
  int collective, size_class;
  auto operator<=>(const GridLine&) const = default;
};
using Rails = std::map<std::string, std::uint64_t>;  // bytes sent, by name

struct Report {
  int ranks = 0;
  std::string version;
  Rails rails;
  NodeReport node;
  OverlapReport overlap;
  ScheduleReport schedule;
  Table table;
  std::map<GridLine, Sums> grid;
  std::vector<PlacementFacts::Rank> places;  // of the ranks, where it is known on which node each is
  double saved = 0;                          // seconds, summed over the ranks
  OrderCounts order;                         // summed over the ranks
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
  const auto& nodes = job().world_nodes;
  const auto index = static_cast<std::size_t>(rank);
  merge_overlap_facts(report.overlap, all["overlap"]);
  merge_schedule_facts(report.schedule, all["schedule"]);
  merge_node_facts(report.node, all["node"], index < nodes.size() ? nodes[index] : 0);
  const json& place = all["place"];
  if (index < report.places.size())
    report.places[index] = {nodes[index], place[0], place[1], place[2], place[3], place[4]};
  report.saved += all["saved"].get<double>();
  report.order.calls += all["order"][0].get<std::uint64_t>();
  report.order.bytes += all["order"][1].get<std::uint64_t>();
  report.order.by_host += all["order"][2].get<std::uint64_t>();
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
PlacementFacts placement_facts(const Report& report) {
  const auto accelerated = [](const auto& entry) { return entry.first.plan != "host"; };
  const MeasuredLinks links = measured_links();
  PlacementFacts facts{.ranks = report.places,
                       .network_seconds_per_byte = links.network,
                       .ranks_per_core = links.crowd,
                       .rows = {},
                       .accelerated = std::any_of(report.table.begin(), report.table.end(), accelerated)};
  for (const auto& [line, sums] : report.grid) {
    if (sums.calls == 0) continue;
    const auto calls = static_cast<double>(sums.calls);
    facts.rows.push_back({.axes = line.axes,
                          .collective = static_cast<Collective>(line.collective),
                          .calls = calls / static_cast<double>(std::max<std::size_t>(facts.ranks.size(), 1)),
                          .bytes = static_cast<double>(sums.bytes) / calls});
  }
  return facts;
}

// Of all ranks, as far as the nodes are known: the rest is told by each.
std::vector<PlacementFacts::Rank> known_places() {
  std::vector<PlacementFacts::Rank> places;
  for (const int node : job().world_nodes) places.push_back({.node = node});
  return places;
}

// ---- What is said, as text or as a page ----

std::string size_range(int size_class) {
  if (size_class < 0) return "-";
  return format_bytes(class_begin(size_class)) + " - " + format_bytes(class_end(size_class));
}

double saved_by_a_rank(const Report& report) { return report.saved / std::max(report.ranks, 1); }

void add_rows(const Table& table, ReportContent& content) {
  std::uint64_t nanoseconds = 0;
  for (const auto& [line, sums] : table) {
    content.rows.push_back({.collective = name_of(line),
                            .ranks = line.ranks,
                            .sizes = size_range(line.size_class),
                            .calls = shared(sums.calls, line),
                            .bytes = shared(sums.bytes, line),
                            .seconds = seconds(shared(sums.nanoseconds, line)),
                            .plan = line.plan,
                            .channels = joined(sums),
                            .reason = line.reason});
    const ReportContent::Row& row = content.rows.back();
    content.total.calls += row.calls;
    content.total.bytes += row.bytes;
    content.total.accelerated += row.by_host() ? 0 : row.calls;
    nanoseconds += shared(sums.nanoseconds, line);
  }
  content.total.seconds = seconds(nanoseconds);
}

// Nothing without PLAIT_REPRODUCIBLE. Calls as the mean of the ranks has them.
std::string reproducible_line(const Report& report) {
  if (job().config.reproducible == Reproducible::no) return {};
  if (job().config.reproducible == Reproducible::run) return "reproducible: run";
  const auto ranks = static_cast<std::uint64_t>(std::max(report.ranks, 1));
  const OrderCounts& order = report.order;
  std::string line = "reproducible: order, " + std::to_string(order.calls / ranks) + " calls, " +
                     format_bytes(static_cast<std::size_t>(order.bytes / ranks));
  if (order.by_host > 0)
    line += "; " + std::to_string((order.by_host + ranks - 1) / ranks) + " more were the host's, in its own order";
  return line;
}

ReportContent content_of(const Report& report, const std::string& shared_setting) {
  ReportContent content;
  content.ranks = report.ranks;
  content.version = report.version;
  add_rows(report.table, content);
  content.facts.push_back("MPI: " + job().mpi_library);
  std::string rails;
  for (const auto& [name, bytes] : report.rails) {
    content.rails.push_back({name, bytes});
    rails += (rails.empty() ? "rails: " : ", ") + name + " " + format_bytes(bytes);
  }
  if (const double saved = saved_by_a_rank(report); saved > 0) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(),
                  "saved %.6f s against the host MPI (as trials or a table measured it; mean of the ranks)", saved);
    content.facts.push_back(text.data());
  }
  if (!rails.empty()) content.facts.push_back(rails);
  if (std::string line = reproducible_line(report); !line.empty()) content.facts.push_back(std::move(line));
  for (std::string& line : overlap_report_lines(report.overlap)) content.facts.push_back(std::move(line));
  for (std::string& line : schedule_report_lines(report.schedule)) content.facts.push_back(std::move(line));
  for (std::string& line : node_report_lines(report.node, shared_setting)) content.facts.push_back(std::move(line));
  if (worth_asking(placement_facts(report))) content.advice.push_back(placement_question(""));
  return content;
}

// ---- The file for tools ----

std::string tools_text(const Report& report, const Config& config) {
  const PlacementFacts placement = placement_facts(report);
  json list = json::array();
  for (const auto& [line, sums] : report.table)
    list.push_back({{"collective", name_of(line)},
                    {"ranks", line.ranks},
                    {"bytes_from", class_begin(line.size_class)},
                    {"bytes_below", class_end(line.size_class)},
                    {"calls", shared(sums.calls, line)},
                    {"bytes", shared(sums.bytes, line)},
                    {"seconds", seconds(shared(sums.nanoseconds, line))},
                    {"plan", line.plan},
                    {"channels", joined(sums)},
                    {"reason", line.reason}});
  json object = {{"version", report.version}, {"mpi", job().mpi_library}, {"ranks", report.ranks}, {"rows", list}};
  object["saved_seconds"] = saved_by_a_rank(report);
  if (const std::string line = reproducible_line(report); !line.empty()) object["reproducible"] = line;
  object["node"] = node_report_json(report.node, config.shared);
  if (report.overlap.ranks > 0) object["overlap"] = overlap_report_json(report.overlap);
  if (report.schedule.ranks > 0) object["schedule"] = schedule_report_json(report.schedule);
  for (const auto& [name, bytes] : report.rails) object["rails"].push_back({{"name", name}, {"bytes", bytes}});
  object["placement"] = placement_json(placement);
  if (worth_asking(placement)) object["advice"] = placement_question(config.report_path);
  return object.dump(2) + "\n";
}

void write(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file != nullptr && std::fclose(file) != 0) || !written) warn("the report could not be written to " + path);
}

}  // namespace

void finish_report(Oob& world, const Config& config, const char* version, bool counts) {
  Report report;
  report.ranks = world.ranks();
  const Status begun = attempt([&]() -> Status {  // all others send theirs, whatever there is room for here
    report.version = version;
    if (world.rank() == 0) report.places = known_places();
    return {};
  });
  if (!begun.ok()) report.places.clear();
  world.gather_texts(counts ? text_or_nothing(serialise_rows) : std::string(),
                     [&](int rank, const std::string& text) { merge(report, rank, text); });
  if (world.rank() != 0) return;
  const std::string& path = config.report_path;
  if (path.ends_with(".html")) return write(path, report_page(content_of(report, config.shared)));
  if (!path.empty()) return write(path, tools_text(report, config));
  const std::string text = report_text(content_of(report, config.shared));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace plait::runtime

#include "tuner/text/report_reader.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "plan/model/json_members.h"

namespace plait::tuner {
namespace {

constexpr int deepest_report = 8;
constexpr int most_ranks = 1 << 22;
constexpr std::size_t most_rows = std::size_t{1} << 20;
constexpr double most_amount = 1e18;  // calls, bytes, seconds: beyond it, products lose their meaning

std::string indexed(const std::string& list, std::size_t index) { return list + "[" + std::to_string(index) + "]"; }

// `found`: nullptr where the member is missing.
Status read_amount(const Json* found, const std::string& where, double& value) {
  const bool amount =
      found != nullptr && found->is_number() && found->get<double>() >= 0 && found->get<double>() <= most_amount;
  if (!amount) return unexpected(where, "a number from 0 to 1e18");
  value = found->get<double>();
  return {};
}

const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() ? &*found : nullptr;
}

// -1 or more.
bool read_index(const Json& found, int& value) {
  if (found.is_number_unsigned()) {
    if (found.get<std::uint64_t>() > std::numeric_limits<int>::max()) return false;
  } else if (!found.is_number_integer() || found.get<std::int64_t>() != -1) {
    return false;
  }
  value = found.get<int>();
  return true;
}

Status read_ranks(const Json* list, ReportedJob& job) {
  const std::string where = "placement.ranks";
  if (list == nullptr || !list->is_array() || (!list->empty() && list->size() != static_cast<std::size_t>(job.ranks)))
    return unexpected(where, "a list, of nothing or of as many entries as ranks: " + std::to_string(job.ranks));
  for (const Json& entry : *list) {
    std::array<int, 6> numbers{};
    bool good = entry.is_array() && entry.size() == numbers.size();
    for (std::size_t i = 0; good && i < numbers.size(); ++i) good = read_index(entry[i], numbers[i]);
    if (!good || numbers[0] < 0 || numbers[5] < 0)
      return unexpected(indexed(where, job.places.size()),
                        "six whole numbers: node (0 or more), package, NUMA domain, L3 cache, core, processing units");
    job.places.push_back({numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]});
  }
  return {};
}

// No communicator has more members than the job.
bool within(const std::vector<GridAxis>& axes, std::int64_t ranks) {
  for (const GridAxis& axis : axes) {
    if (axis.size > ranks || axis.stride > ranks) return false;
    ranks /= axis.size;
  }
  return true;
}

Status read_row(const Json& row, const std::string& where, ReportedJob& job) {
  GridTraffic traffic;
  std::string axes, collective;
  JsonMembers members(row, where + ".");
  members.text("axes", axes).text("collective", collective);
  if (!members.status().ok()) return members.status();
  const auto parsed = parse_grid_axes(axes);
  if (!parsed.has_value() || !within(*parsed, job.ranks))
    return unexpected(where + ".axes",
                      "size@stride, such as 4@2,2@1, of at most " + std::to_string(job.ranks) + " ranks");
  const auto named = collective_named(collective);
  if (!named.has_value()) return unexpected(where + ".collective", "a collective, such as allreduce");
  traffic.axes = *parsed;
  traffic.collective = *named;
  if (Status read = read_amount(member(row, "calls"), where + ".calls", traffic.calls); !read.ok()) return read;
  if (Status read = read_amount(member(row, "bytes"), where + ".bytes", traffic.bytes); !read.ok()) return read;
  job.traffic.push_back(std::move(traffic));
  return {};
}

Status read_placement(const Json* placement, ReportedJob& job) {
  if (placement == nullptr || !placement->is_object())
    return unexpected("placement", "an object, as PLAIT_REPORT=FILE.json writes it");
  if (Status read = read_amount(member(*placement, "network_seconds_per_byte"), "placement.network_seconds_per_byte",
                                job.network_seconds_per_byte);
      !read.ok())
    return read;
  if (Status read = read_amount(member(*placement, "ranks_per_core"), "placement.ranks_per_core", job.ranks_per_core);
      !read.ok())
    return read;
  if (job.ranks_per_core <= 0) return unexpected("placement.ranks_per_core", "more than 0");
  if (Status read = read_ranks(member(*placement, "ranks"), job); !read.ok()) return read;
  const Json* rows = member(*placement, "rows");
  if (rows == nullptr || !rows->is_array() || rows->size() > most_rows)
    return unexpected("placement.rows", "a list of at most " + std::to_string(most_rows) + " entries");
  for (std::size_t index = 0; index < rows->size(); ++index)
    if (Status read = read_row((*rows)[index], indexed("placement.rows", index), job); !read.ok()) return read;
  return {};
}

// Whether any call ran by a plan.
Status read_plans(const Json* rows, bool& accelerated) {
  if (rows == nullptr || !rows->is_array()) return unexpected("rows", "a list");
  for (std::size_t index = 0; index < rows->size(); ++index) {
    const Json& row = (*rows)[index];
    const Json* plan = row.is_object() ? member(row, "plan") : nullptr;
    if (plan == nullptr || !plan->is_string()) return unexpected(indexed("rows", index) + ".plan", "a plan's name");
    accelerated |= plan->get_ref<const std::string&>() != "host";
  }
  return {};
}

}  // namespace

Result<ReportedJob> read_report(std::string_view text) {
  const Result<Json> document = parse_json(text, deepest_report);
  if (!document.ok()) return document.status();
  ReportedJob job;
  JsonMembers members(*document, "");
  members.text("mpi", job.mpi);
  if (!members.status().ok()) return members.status();
  members.count("ranks", job.ranks, most_ranks);
  if (!members.status().ok()) return members.status();
  if (job.ranks < 1) return unexpected("ranks", "a whole number from 1 to " + std::to_string(most_ranks));
  if (Status read = read_plans(member(*document, "rows"), job.accelerated); !read.ok()) return read;
  if (Status read = read_placement(member(*document, "placement"), job); !read.ok()) return read;
  return job;
}

}  // namespace plait::tuner

#include "plan/choose/table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/file.h"
#include "plan/model/json_members.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

constexpr int version = 1;
constexpr int deepest = 10;
constexpr std::size_t most_shapes = 1024, most_ranges = 1024;
constexpr std::size_t longest_plan = 1024;

std::string indexed(const std::string& where, const char* member, std::size_t index) {
  return where + member + '[' + std::to_string(index) + "].";
}

// `end`: of the range before.
Status read_range(const Json& json, const std::string& where, std::size_t end, TunedRange& range) {
  JsonMembers members(json, where);
  members.bytes("from", range.from)
      .bytes("to", range.to)
      .text("plan", range.plan)
      .seconds("seconds_from", range.seconds_from)
      .seconds("seconds_to", range.seconds_to)
      .seconds("host_seconds_from", range.host_seconds_from)
      .seconds("host_seconds_to", range.host_seconds_to);
  if (Status status = members.finish(); !status.ok()) return status;
  if (range.to <= range.from) return unexpected(where + "to", "more than " + std::to_string(range.from));
  if (range.from < end)
    return unexpected(where + "from", "at least " + std::to_string(end) + ", where the range before it ends");
  if (range.plan.size() > longest_plan)
    return unexpected(where + "plan", "at most " + std::to_string(longest_plan) + " characters");
  return {};
}

Status read_collective(const Json& json, const std::string& where, TunedCollective& tuned) {
  std::string named;
  JsonMembers members(json, where);
  members.text("collective", named);
  const Json* ranges = members.list("ranges", most_ranges, "ranges");
  if (Status status = members.finish(); !status.ok()) return status;
  const auto collective = collective_named(named);
  if (!collective || !planned(*collective)) return unexpected(where + "collective", "a collective that plans are for");
  tuned.collective = *collective;
  std::size_t end = 0;
  for (std::size_t i = 0; i < ranges->size(); ++i) {
    TunedRange& range = tuned.ranges.emplace_back();
    if (Status status = read_range((*ranges)[i], indexed(where, "ranges", i), end, range); !status.ok()) return status;
    end = range.to;
  }
  return {};
}

Status read_shape(const Json& json, const std::string& where, TunedShape& tuned) {
  JsonMembers members(json, where);
  members.text("shape", tuned.shape);
  const Json* collectives = members.list("collectives", planned_collectives, "collectives");
  if (Status status = members.finish(); !status.ok()) return status;
  const Result<std::string> usual = usual_shape(tuned.shape);
  if (!usual.ok() || *usual != tuned.shape)
    return unexpected(where + "shape", usual.ok() ? *usual : std::string("a shape such as 4x2x8"));
  for (std::size_t i = 0; i < collectives->size(); ++i) {
    TunedCollective& entry = tuned.collectives.emplace_back();
    const std::string place = indexed(where, "collectives", i);
    if (Status status = read_collective((*collectives)[i], place, entry); !status.ok()) return status;
    const auto same = [&](const TunedCollective& other) { return other.collective == entry.collective; };
    if (std::any_of(tuned.collectives.begin(), tuned.collectives.end() - 1, same))
      return unexpected(place + "collective", "each collective once");
  }
  return {};
}

Status read_document(const Json& json, TuningTable& table) {
  JsonMembers members(json, "");
  members.version("plait_table", version).text("machine", table.machine).fingerprint("fingerprint", table.fingerprint);
  const Json* shapes = members.list("shapes", most_shapes, "shapes");
  if (Status status = members.finish(); !status.ok()) return status;
  for (std::size_t i = 0; i < shapes->size(); ++i) {
    TunedShape tuned;
    const std::string place = indexed("", "shapes", i);
    if (Status status = read_shape((*shapes)[i], place, tuned); !status.ok()) return status;
    if (table.shape(tuned.shape) != nullptr) return unexpected(place + "shape", "each shape once");
    table.shapes.push_back(std::move(tuned));
  }
  return {};
}

const TunedRange* range_of(const TunedShape& shape, Collective collective, std::size_t bytes) {
  for (const TunedCollective& tuned : shape.collectives) {
    if (tuned.collective != collective) continue;
    const auto after = std::upper_bound(tuned.ranges.begin(), tuned.ranges.end(), bytes,
                                        [](std::size_t size, const TunedRange& range) { return size < range.to; });
    return after != tuned.ranges.end() && after->from <= bytes ? &*after : nullptr;
  }
  return nullptr;
}

struct Found {
  const TunedRange* range = nullptr;
  std::size_t bytes = 0;  // by which it was found
};

Found look_up(const TunedShape& shape, const Call& call, int ranks) {
  if (!call.commutative && reduces(call.collective)) return {};
  const std::size_t bytes = payload_bytes(call, ranks), mean = bytes / static_cast<std::size_t>(ranks);
  if (const TunedRange* own = range_of(shape, call.collective, bytes); own != nullptr) return {own, bytes};
  if (call.collective == Collective::allgatherv) return {range_of(shape, Collective::allgather, mean), mean};
  if (call.collective == Collective::reduce_scatter)
    return {range_of(shape, Collective::reduce_scatter_block, mean), mean};
  return {};
}

Json range_json(const TunedRange& range) {
  Json json = {{"from", range.from},
               {"to", range.to},
               {"plan", range.plan},
               {"seconds_from", range.seconds_from},
               {"seconds_to", range.seconds_to}};
  if (range.host_seconds_from > 0) json["host_seconds_from"] = range.host_seconds_from;
  if (range.host_seconds_to > 0) json["host_seconds_to"] = range.host_seconds_to;
  return json;
}

double between(double first, double last, double share) { return first * std::pow(last / first, share); }

Json shape_json(const TunedShape& shape) {
  Json collectives = Json::array();
  for (const TunedCollective& tuned : shape.collectives) {
    Json ranges = Json::array();
    for (const TunedRange& range : tuned.ranges) ranges.push_back(range_json(range));
    collectives.push_back({{"collective", name(tuned.collective)}, {"ranges", std::move(ranges)}});
  }
  return {{"shape", shape.shape}, {"collectives", std::move(collectives)}};
}

}  // namespace

const TunedShape* TuningTable::shape(std::string_view text) const {
  const auto found = std::find_if(shapes.begin(), shapes.end(), [&](const auto& one) { return one.shape == text; });
  return found != shapes.end() ? &*found : nullptr;
}

const TunedRange* tuned_range(const TunedShape& shape, const Call& call, int ranks) {
  return look_up(shape, call, ranks).range;
}

double saved_seconds(const TunedShape& shape, const Call& call, int ranks) {
  const Found found = look_up(shape, call, ranks);
  if (found.range == nullptr) return 0;
  const TunedRange& range = *found.range;
  const bool measured = range.seconds_from > 0 && range.seconds_to > 0;
  const bool compared = range.host_seconds_from > 0 && range.host_seconds_to > 0;
  if (!measured || !compared || range.plan == host_plan) return 0;
  const double first = static_cast<double>(std::max<std::size_t>(range.from, 1));
  const double last = std::max(static_cast<double>(range.to) - 1, first);
  const double place = std::clamp(static_cast<double>(found.bytes), first, last);
  const double share = last > first ? std::log(place / first) / std::log(last / first) : 0;
  const double host = between(range.host_seconds_from, range.host_seconds_to, share);
  return std::max(host - between(range.seconds_from, range.seconds_to, share), 0.0);
}

Fingerprint system_fingerprint(const std::string& mpi, const std::string& hardware,
                               const std::vector<std::string>& channels) {
  std::string joined;
  for (const std::string& channel : channels) joined += (joined.empty() ? "" : ",") + channel;
  return {{"mpi", mpi}, {"hardware", hardware}, {"channels", joined}};
}

std::string mismatch(const Fingerprint& table, const Fingerprint& job) {
  for (const auto& [name, value] : table) {
    const auto found = job.find(name);
    if (name != "shape" && found != job.end() && found->second != value) return name;
  }
  return {};
}

Result<TuningTable> parse_table(std::string_view text) {
  const Result<Json> json = parse_json(text, deepest);
  if (!json.ok()) return json.status();
  TuningTable table;
  if (Status status = read_document(*json, table); !status.ok()) return status;
  return table;
}

std::string table_json(const TuningTable& table) {
  Json json = {{"plait_table", version}, {"machine", table.machine}};
  if (!table.fingerprint.empty()) json["fingerprint"] = table.fingerprint;
  json["shapes"] = Json::array();
  for (const TunedShape& shape : table.shapes) json["shapes"].push_back(shape_json(shape));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<TuningTable> read_table(const std::string& path) {
  const Result<std::string> text = read_file(path, largest_table_file);
  if (!text.ok()) return text.status();
  Result<TuningTable> table = parse_table(*text);
  if (!table.ok()) return {Code::invalid, "\"" + path + "\": " + table.status().message()};
  return table;
}

}  // namespace plait::plan

#include "plan/choose/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "core/channel_kind.h"
#include "core/file.h"
#include "plan/model/json_members.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

constexpr int version = 1;
constexpr int deepest = 10;
constexpr std::size_t most_shapes = 1024, most_ranges = 1024;
constexpr std::size_t longest_plan = 1024;
constexpr std::size_t most_host_rows = 64;  // of a collective

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

// ---- What is the host's by its size

constexpr std::string_view any_form = "any", form_words[] = {"blocking", "nonblocking", "persistent"};
constexpr std::string_view place_words[] = {"anywhere", "within a node", "between nodes"};
constexpr std::string_view size_words[] = {"call", "all ranks", "message"};
static_assert(std::size(form_words) == form_count);

// The index of a word, which may be absent: then `index` stays as it is.
Status read_word(const Json* json, const std::string& where, std::span<const std::string_view> words, int& index) {
  if (json == nullptr) return {};
  const auto* text = json->is_string() ? &json->get_ref<const std::string&>() : nullptr;
  const auto found = text != nullptr ? std::ranges::find(words, *text) : words.end();
  index = static_cast<int>(found - words.begin());
  if (found != words.end()) return {};
  std::string expected;
  for (const std::string_view word : words) expected.append(expected.empty() ? "one of " : ", ").append(word);
  return unexpected(where, expected);
}

struct HostWords {
  int form = form_count, place = 0, size = 0;  // indices of the words; of all forms: form_count
};

Status read_host_words(JsonMembers& members, const std::string& where, HostWords& words) {
  std::array<std::string_view, form_count + 1> forms{};
  std::ranges::copy(form_words, forms.begin());
  forms.back() = any_form;
  if (Status status = read_word(members.any("form"), where + "form", forms, words.form); !status.ok()) return status;
  if (Status status = read_word(members.any("where"), where + "where", place_words, words.place); !status.ok())
    return status;
  return read_word(members.any("of"), where + "of", size_words, words.size);
}

// Ranks know no lengths of data in pieces: of exchanges by pairs but from earlier blocking calls, whose messages they
// have seen.
Status check_host_row(const HostRow& row, const std::string& where, Collective collective) {
  if (row.most_ranks < row.least_ranks)
    return unexpected(where + "most_ranks", "at least " + std::to_string(row.least_ranks));
  if (row.to <= row.from) return unexpected(where + "to", "more than " + std::to_string(row.from));
  const bool of_message = row.of == HostRow::Of::message;
  if (of_message && (!by_pairs(collective) || row.forms != set_of(Form::blocking)))
    return unexpected(where + "of", "no \"message\" but for blocking alltoallv, alltoallw, gatherv and scatterv");
  if (on_neighbors(collective) && (row.from != 0 || row.to != HostRow::no_limit))
    return unexpected(where + "to", "no limit: ranks do not know how long others' edges are");
  if (!of_message && by_pairs(collective) && (row.from != 0 || row.to != HostRow::no_limit))
    return unexpected(where + "of", "\"message\", where there is a limit");
  return {};
}

Status read_host_row(const Json& json, const std::string& where, Collective collective, HostRow& row) {
  JsonMembers members(json, where);
  HostWords words;
  if (Status status = read_host_words(members, where, words); !status.ok()) return status;
  members.count("least_ranks", row.least_ranks, HostRow::any_number)
      .count("most_ranks", row.most_ranks, HostRow::any_number);
  if (json.is_object() && json.contains("from")) members.bytes("from", row.from);
  if (json.is_object() && json.contains("to")) members.bytes("to", row.to);
  if (Status status = members.finish(); !status.ok()) return status;
  row.collectives = set_of(collective);
  if (words.form != form_count) row.forms = set_of(static_cast<Form>(words.form));
  row.where = static_cast<HostRow::Where>(words.place);
  row.of = static_cast<HostRow::Of>(words.size);
  if (row.of == HostRow::Of::message) row.reason = reasons::host_has_lengths;
  return check_host_row(row, where, collective);
}

Status read_host_entry(const Json& json, const std::string& where, HostEntry& entry) {
  std::string named;
  JsonMembers members(json, where);
  members.text("collective", named);
  const Json* rows = members.any("rows");
  if (Status status = members.finish(); !status.ok()) return status;
  const auto collective = collective_named(named);
  if (!collective || *collective == Collective::reshard)
    return unexpected(where + "collective", "a collective of MPI's");
  if (rows == nullptr || !rows->is_array() || rows->size() > most_host_rows)
    return unexpected(where + "rows", "a list of at most " + std::to_string(most_host_rows) + " rows");
  entry.collective = *collective;
  for (std::size_t i = 0; i < rows->size(); ++i)
    if (Status status =
            read_host_row((*rows)[i], indexed(where, "rows", i), entry.collective, entry.rows.emplace_back());
        !status.ok())
      return status;
  return {};
}

Status read_host(const Json& json, HostEntries& host) {
  if (!json.is_array() || json.size() > collective_count)
    return unexpected("host", "a list, with each collective once");
  for (std::size_t i = 0; i < json.size(); ++i) {
    HostEntry entry;
    const std::string place = indexed("", "host", i);
    if (Status status = read_host_entry(json[i], place, entry); !status.ok()) return status;
    if (std::ranges::find(host, entry.collective, &HostEntry::collective) != host.end())
      return unexpected(place + "collective", "each collective once");
    host.push_back(std::move(entry));
  }
  return {};
}

// A table says something of plans, of the host, or of both.
Status read_document(const Json& json, TuningTable& table) {
  JsonMembers members(json, "");
  members.version("plait_table", version).text("machine", table.machine).fingerprint("fingerprint", table.fingerprint);
  const Json* host = members.any("host");
  const bool plans = host == nullptr || json.contains("shapes");
  const Json* shapes = plans ? members.list("shapes", most_shapes, "shapes") : nullptr;
  if (Status status = members.finish(); !status.ok()) return status;
  if (host != nullptr)
    if (Status status = read_host(*host, table.host); !status.ok()) return status;
  for (std::size_t i = 0; shapes != nullptr && i < shapes->size(); ++i) {
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

Json host_row_json(const HostRow& row) {
  Json json = Json::object();
  for (int form = 0; form < form_count && row.forms != every_form; ++form)
    if (has(row.forms, static_cast<Form>(form))) json["form"] = form_words[form];
  json["where"] = place_words[static_cast<std::size_t>(row.where)];
  json["of"] = size_words[static_cast<std::size_t>(row.of)];
  json["least_ranks"] = row.least_ranks;
  if (row.most_ranks != HostRow::any_number) json["most_ranks"] = row.most_ranks;
  json["from"] = row.from;
  if (row.to != HostRow::no_limit) json["to"] = row.to;
  return json;
}

Json host_json(const HostEntries& host) {
  Json entries = Json::array();
  for (const HostEntry& entry : host) {
    Json rows = Json::array();
    for (const HostRow& row : entry.rows) rows.push_back(host_row_json(row));
    entries.push_back({{"collective", name(entry.collective)}, {"rows", std::move(rows)}});
  }
  return entries;
}

}  // namespace

const HostEntries& host_entries(const TuningTable* table) {
  static const HostEntries none;
  return table != nullptr ? table->host : none;
}

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
  // What carries no messages changes nothing of what plans take.
  for (const std::string& channel : channels)
    if (const auto kind = channel_named(channel); !kind || traits(*kind).messages)
      joined += (joined.empty() ? "" : ",") + channel;
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
  if (!table.host.empty()) json["host"] = host_json(table.host);
  if (table.shapes.empty() && !table.host.empty())
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
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

#include "plan/choose/plan_file.h"

#include "core/file.h"
#include "core/json.h"

namespace plait::plan {

namespace {

Status bad(const std::string& what) { return {Code::invalid, "plan file: " + what}; }

constexpr std::size_t most_bytes = std::size_t{1} << 16;
constexpr int most_chunks = 4096;
constexpr int most_cardinality = 1 << 20;

// Without the name that stands before it.
std::string reason_of(const Status& unread, const std::string& path) {
  const std::string named = "\"" + path + "\": ";
  return unread.message().starts_with(named) ? unread.message().substr(named.size()) : unread.message();
}

Status read_hierarchy(const Json& json, std::vector<int>& cardinalities) {
  const std::string expected = "'hierarchy': expected an array of 1 to 8 cardinalities of at least 2";
  if (!json.is_array() || json.empty() || json.size() > most_levels) return bad(expected);
  for (const Json& cardinality : json) {
    if (!cardinality.is_number_integer() || cardinality < 2 || cardinality > most_cardinality) return bad(expected);
    cardinalities.push_back(cardinality.get<int>());
  }
  return {};
}

Status read(const Json& json, PlanFile& plan) {
  if (!json.is_object()) return bad("expected a JSON object");
  if (json.value("plait_plan", Json()) != 1) return bad("'plait_plan': expected 1");
  for (const char* member : {"collective", "program"})
    if (!json.contains(member) || !json[member].is_string())
      return bad("'" + std::string(member) + "': expected a string");
  const auto collective = collective_named(json["collective"].get<std::string>());
  if (!collective) return bad("'collective': no collective is named '" + json["collective"].get<std::string>() + "'");
  if (*collective == Collective::alltoall || !planned(*collective))
    return bad("'collective': " + std::string(name(*collective)) + " has no programs");
  plan.collective = *collective;
  Result<Program> program = parse_program(json["program"].get<std::string>());
  if (!program.ok()) return bad("'program': " + program.status().message());
  plan.program = std::move(*program);
  const Json chunks = json.value("chunks", Json(1));
  if (!chunks.is_number_integer() || chunks < 1 || chunks > most_chunks)
    return bad("'chunks': expected a number between 1 and " + std::to_string(most_chunks));
  plan.chunks = chunks.get<int>();
  return read_hierarchy(json.value("hierarchy", Json()), plan.hierarchy);
}

}  // namespace

Result<PlanFile> parse_plan_file(std::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded()) return bad("not JSON");
  PlanFile plan;
  if (Status status = read(json, plan); !status.ok()) return status;
  return plan;
}

std::string plan_file_json(const PlanFile& plan) {
  const Json json = {{"plait_plan", 1},
                     {"collective", name(plan.collective)},
                     {"hierarchy", plan.hierarchy},
                     {"program", text(plan.program)},
                     {"chunks", plan.chunks}};
  return json.dump(2) + '\n';
}

Result<std::string> read_plan(const std::string& value) {
  if (!value.ends_with(".json")) return value;
  const Result<std::string> file = read_file(value, most_bytes);
  const std::string named = "'" + value + "'";
  if (!file.ok()) return bad(named + " cannot be read: " + reason_of(file.status(), value));
  const std::size_t begin = file->find_first_not_of(" \t\r\n");
  if (begin == file->npos) return bad(named + " is empty");
  if ((*file)[begin] != '{') return bad(named + ": expected a JSON object");
  return file->substr(begin);
}

}  // namespace plait::plan

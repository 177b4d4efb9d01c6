#include "plan/overlap/overlap_plan.h"

#include <cstdint>
#include <cstdio>
#include <utility>

#include "core/file.h"
#include "plan/model/json_members.h"

namespace plait::plan {
namespace {

constexpr int version = 1;
constexpr int deepest = 6;
constexpr std::size_t longest_layer = 256;
constexpr std::size_t most_bytes = std::size_t{1} << 62;  // of a step, so that no group overflows

std::string indexed(const char* member, std::size_t index) {
  return std::string(member) + '[' + std::to_string(index) + "].";
}

Status read_call(const Json& json, const std::string& where, OverlapCall& call) {
  JsonMembers members(json, where);
  members.bytes("bytes", call.bytes).text("layer", call.layer);
  if (Status status = members.finish(); !status.ok()) return status;
  if (call.bytes == 0) return unexpected(where + "bytes", "at least 1");
  if (call.layer.size() > longest_layer)
    return unexpected(where + "layer", "at most " + std::to_string(longest_layer) + " bytes");
  return {};
}

// `left`: calls that no group before this one has.
Status read_group(const Json& json, const std::string& where, std::size_t left, OverlapGroup& group) {
  int calls = 0;
  JsonMembers members(json, where);
  members.count("calls", calls, static_cast<int>(most_overlap_calls))
      .count("threads", group.share.threads, most_helper_threads)
      .positive("duty", group.share.duty);
  if (Status status = members.finish(); !status.ok()) return status;
  group.calls = static_cast<std::size_t>(calls);
  if (group.calls == 0 || group.calls > left)
    return unexpected(where + "calls", left == 0 ? "no more groups: the ones before it have all calls"
                                                 : "a whole number from 1 to " + std::to_string(left));
  if (group.share.duty < least_duty || group.share.duty > 1)
    return unexpected(where + "duty", "a share of a core from 0.01 to 1");
  return {};
}

Status read_calls(const Json& list, OverlapPlan& plan) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    OverlapCall& call = plan.calls.emplace_back();
    if (Status status = read_call(list[i], indexed("calls", i), call); !status.ok()) return status;
    if (call.bytes > most_bytes - bytes)
      return unexpected(indexed("calls", i) + "bytes", "less: a step has at most 2^62");
    bytes += call.bytes;
  }
  return {};
}

Status read_groups(const Json& list, OverlapPlan& plan) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    OverlapGroup& group = plan.groups.emplace_back();
    group.first_call = next;
    if (Status status = read_group(list[i], indexed("groups", i), plan.calls.size() - next, group); !status.ok())
      return status;
    next += group.calls;
  }
  if (next < plan.calls.size())
    return unexpected("groups",
                      "groups of all " + std::to_string(plan.calls.size()) + " calls, not of " + std::to_string(next));
  return {};
}

Status read_prediction(const Json& json, OverlapPlan& plan) {
  JsonMembers members(json, "predicted.");
  return members.seconds("backward_seconds", plan.backward_seconds)
      .seconds("computation_seconds", plan.computation_seconds)
      .seconds("exposed_seconds", plan.exposed_seconds)
      .finish();
}

Status read_document(const Json& json, OverlapPlan& plan) {
  JsonMembers members(json, "");
  members.version("plait_overlap", version).text("model", plan.model).fingerprint("fingerprint", plan.fingerprint);
  const Json* calls = members.list("calls", most_overlap_calls, "calls");
  const Json* groups = members.list("groups", most_overlap_calls, "groups");
  const Json* predicted = members.any("predicted");
  if (Status status = members.finish(); !status.ok()) return status;
  if (Status status = read_calls(*calls, plan); !status.ok()) return status;
  if (Status status = read_groups(*groups, plan); !status.ok()) return status;
  return predicted != nullptr ? read_prediction(*predicted, plan) : Status();
}

}  // namespace

std::string share_text(const CommunicationShare& share) {
  char text[64];
  std::snprintf(text, sizeof text, "%d x %.4g", share.threads, share.duty);
  return text;
}

std::size_t group_bytes(const OverlapPlan& plan, const OverlapGroup& group) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < group.calls; ++i) bytes += plan.calls[group.first_call + i].bytes;
  return bytes;
}

Result<OverlapPlan> parse_overlap_plan(std::string_view text) {
  const Result<Json> json = parse_json(text, deepest);
  if (!json.ok()) return json.status();
  OverlapPlan plan;
  if (Status status = read_document(*json, plan); !status.ok()) return status;
  return plan;
}

std::string overlap_plan_json(const OverlapPlan& plan) {
  Json json = {{"plait_overlap", version}, {"model", plan.model}};
  if (!plan.fingerprint.empty()) json["fingerprint"] = plan.fingerprint;
  json["calls"] = Json::array();
  for (const OverlapCall& call : plan.calls) json["calls"].push_back({{"bytes", call.bytes}, {"layer", call.layer}});
  json["groups"] = Json::array();
  for (const OverlapGroup& group : plan.groups)
    json["groups"].push_back({{"calls", group.calls}, {"threads", group.share.threads}, {"duty", group.share.duty}});
  json["predicted"] = {{"backward_seconds", plan.backward_seconds},
                       {"computation_seconds", plan.computation_seconds},
                       {"exposed_seconds", plan.exposed_seconds}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<OverlapPlan> read_overlap_plan(const std::string& path) {
  const Result<std::string> text = read_file(path, largest_overlap_file);
  if (!text.ok()) return text.status();
  Result<OverlapPlan> plan = parse_overlap_plan(*text);
  if (!plan.ok()) return {Code::invalid, "\"" + path + "\": " + plan.status().message()};
  return plan;
}

}  // namespace plait::plan

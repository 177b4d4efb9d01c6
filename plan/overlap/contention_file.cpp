// Contention files, read strictly and written.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/file.h"
#include "plan/model/json_members.h"
#include "plan/overlap/contention.h"

namespace plait::plan {
namespace {

constexpr int version = 1;
constexpr int deepest = 6;
constexpr int most_ranks = 1 << 24;
constexpr std::size_t most_entries = 4096, largest_file = std::size_t{4} << 20;

std::string indexed(const char* member, std::size_t index) {
  return std::string(member) + '[' + std::to_string(index) + "].";
}

Status check_share(const std::string& where, const CommunicationShare& share) {
  if (share.duty < least_duty || share.duty > 1) return unexpected(where + "duty", "a share of a core from 0.01 to 1");
  return {};
}

// A member that must be there: `value` was 0 before.
Status need(const std::string& where, const char* member, double value) {
  return value > 0 ? Status() : unexpected(where + member, "a positive number; it is missing");
}

Status read_sample(const Json& json, const std::string& where, ContentionSample& sample) {
  JsonMembers members(json, where);
  members.count("threads", sample.share.threads, most_helper_threads)
      .positive("duty", sample.share.duty)
      .bytes("bytes", sample.bytes)
      .positive("computation_seconds", sample.computation)
      .positive("overlapped_computation_seconds", sample.overlapped_computation)
      .positive("overlapped_seconds", sample.overlapped)
      .positive("alone_seconds", sample.alone);
  if (Status status = members.finish(); !status.ok()) return status;
  if (Status status = check_share(where, sample.share); !status.ok()) return status;
  const std::pair<const char*, double> needed[] = {{"bytes", static_cast<double>(sample.bytes)},
                                                   {"computation_seconds", sample.computation},
                                                   {"overlapped_computation_seconds", sample.overlapped_computation},
                                                   {"overlapped_seconds", sample.overlapped},
                                                   {"alone_seconds", sample.alone}};
  for (const auto& [member, value] : needed)
    if (Status status = need(where, member, value); !status.ok()) return status;
  return {};
}

Status read_row(const Json& json, const std::string& where, ContentionRow& row) {
  JsonMembers members(json, where);
  members.count("threads", row.share.threads, most_helper_threads)
      .positive("duty", row.share.duty)
      .positive("slowdown", row.slowdown)
      .positive("overlapped_rate", row.overlapped_rate)
      .positive("alone_rate", row.alone_rate);
  if (Status status = members.finish(); !status.ok()) return status;
  if (Status status = check_share(where, row.share); !status.ok()) return status;
  if (Status status = need(where, "overlapped_rate", row.overlapped_rate); !status.ok()) return status;
  return need(where, "alone_rate", row.alone_rate);
}

Status read_reduction(const Json& json, const std::string& where, std::size_t after, ReductionCost& reduction) {
  JsonMembers members(json, where);
  members.bytes("bytes", reduction.bytes)
      .seconds("startup_seconds", reduction.startup)
      .positive("moved_bytes", reduction.moved)
      .text("plan", reduction.plan);
  if (Status status = members.finish(); !status.ok()) return status;
  if (reduction.bytes <= after) return unexpected(where + "bytes", "more than " + std::to_string(after));
  return need(where, "moved_bytes", reduction.moved);
}

// A number of either sign; the parameters of a fit may be negative.
Status read_number(const Json& json, const std::string& where, const char* member, double& value) {
  const auto found = json.find(member);
  if (found == json.end() || !found->is_number() || !std::isfinite(found->get<double>()))
    return unexpected(where + member, "a number");
  value = found->get<double>();
  return {};
}

struct Parameter {
  const char* name;
  double* value;
};

Status read_curve(const Json* json, const std::string& where, const std::vector<Parameter>& parameters) {
  if (json == nullptr || !json->is_object()) return unexpected(where.substr(0, where.size() - 1), "an object");
  JsonMembers members(*json, where);
  for (const Parameter& parameter : parameters) members.any(parameter.name);
  if (Status status = members.finish(); !status.ok()) return status;
  for (const Parameter& parameter : parameters)
    if (Status status = read_number(*json, where, parameter.name, *parameter.value); !status.ok()) return status;
  return {};
}

std::vector<Parameter> parameters(SlowdownCurve& curve) {
  return {{"a1", &curve.a1}, {"a2", &curve.a2}, {"error", &curve.error}};
}
std::vector<Parameter> parameters(RateCurve& curve) {
  return {{"g1", &curve.g1}, {"g2", &curve.g2}, {"g3", &curve.g3}, {"g4", &curve.g4}, {"error", &curve.error}};
}

Status read_fit(const Json& json, ContentionFit& fit) {
  JsonMembers members(json, "fit.");
  const Json *g = members.any("computation"), *p = members.any("overlapped"), *q = members.any("alone");
  if (Status status = members.finish(); !status.ok()) return status;
  if (Status status = read_curve(g, "fit.computation.", parameters(fit.computation)); !status.ok()) return status;
  if (Status status = read_curve(p, "fit.overlapped.", parameters(fit.overlapped)); !status.ok()) return status;
  return read_curve(q, "fit.alone.", parameters(fit.alone));
}

// An optional list. `read` takes an entry and where it stands.
template <class Read>
Status read_list(const Json* list, const char* member, const Read& read) {
  if (list == nullptr) return {};
  if (!list->is_array() || list->size() > most_entries)
    return unexpected(member, "a list of at most " + std::to_string(most_entries));
  for (std::size_t i = 0; i < list->size(); ++i)
    if (Status status = read((*list)[i], indexed(member, i)); !status.ok()) return status;
  return {};
}

Status read_lists(JsonMembers& members, Contention& contention) {
  const Json *samples = members.any("samples"), *fit = members.any("fit"), *table = members.any("table"),
             *reductions = members.any("reductions");
  if (Status status = members.finish(); !status.ok()) return status;
  Status status = read_list(samples, "samples", [&](const Json& json, const std::string& where) {
    return read_sample(json, where, contention.samples.emplace_back());
  });
  if (status.ok() && fit != nullptr) status = read_fit(*fit, contention.fit.emplace());
  if (status.ok())
    status = read_list(table, "table", [&](const Json& json, const std::string& where) {
      return read_row(json, where, contention.table.emplace_back());
    });
  if (!status.ok()) return status;
  return read_list(reductions, "reductions", [&](const Json& json, const std::string& where) {
    const std::size_t after = contention.reductions.empty() ? 0 : contention.reductions.back().bytes;
    return read_reduction(json, where, after, contention.reductions.emplace_back());
  });
}

Json share_json(const CommunicationShare& share) { return {{"threads", share.threads}, {"duty", share.duty}}; }

Json curve_json(const std::vector<Parameter>& parameters) {
  Json json = Json::object();
  for (const Parameter& parameter : parameters) json[parameter.name] = *parameter.value;
  return json;
}

Json sample_json(const ContentionSample& sample) {
  Json json = share_json(sample.share);
  json.update({{"bytes", sample.bytes},
               {"computation_seconds", sample.computation},
               {"overlapped_computation_seconds", sample.overlapped_computation},
               {"overlapped_seconds", sample.overlapped},
               {"alone_seconds", sample.alone}});
  return json;
}

Json row_json(const ContentionRow& row) {
  Json json = share_json(row.share);
  json.update({{"slowdown", row.slowdown}, {"overlapped_rate", row.overlapped_rate}, {"alone_rate", row.alone_rate}});
  return json;
}

}  // namespace

Result<Contention> parse_contention(std::string_view text) {
  const Result<Json> json = parse_json(text, deepest);
  if (!json.ok()) return json.status();
  Contention contention;
  JsonMembers members(*json, "");
  members.version("plait_contention", version)
      .text("machine", contention.system)
      .fingerprint("fingerprint", contention.fingerprint)
      .text("kernel", contention.kernel)
      .count("nodes", contention.nodes, most_ranks)
      .count("ranks", contention.ranks, most_ranks)
      .seconds("latency_seconds", contention.latency);
  if (json->is_object() && json->contains("shape")) members.text("shape", contention.shape);
  if (json->is_object() && json->contains("agreement_seconds"))
    members.seconds("agreement_seconds", contention.agreement);
  if (Status status = read_lists(members, contention); !status.ok()) return status;
  if (contention.table.empty() && !contention.fit) return unexpected("the document", "a table, or a fit");
  if (known_shares(contention).empty()) return unexpected("the document", "samples, or a table, which say the shares");
  return contention;
}

std::string contention_json(const Contention& contention) {
  Json json = {{"plait_contention", version}, {"machine", contention.system}};
  if (!contention.fingerprint.empty()) json["fingerprint"] = contention.fingerprint;
  json["kernel"] = contention.kernel;
  if (!contention.shape.empty()) json["shape"] = contention.shape;
  json["nodes"] = contention.nodes;
  json["ranks"] = contention.ranks;
  json["latency_seconds"] = contention.latency;
  if (contention.agreement > 0) json["agreement_seconds"] = contention.agreement;
  if (contention.fit) {
    ContentionFit fit = *contention.fit;
    json["fit"] = {{"computation", curve_json(parameters(fit.computation))},
                   {"overlapped", curve_json(parameters(fit.overlapped))},
                   {"alone", curve_json(parameters(fit.alone))}};
  }
  for (const ContentionRow& row : contention.table) json["table"].push_back(row_json(row));
  for (const ContentionSample& sample : contention.samples) json["samples"].push_back(sample_json(sample));
  for (const ReductionCost& reduction : contention.reductions)
    json["reductions"].push_back({{"bytes", reduction.bytes},
                                  {"startup_seconds", reduction.startup},
                                  {"moved_bytes", reduction.moved},
                                  {"plan", reduction.plan}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<Contention> read_contention(const std::string& path) {
  const Result<std::string> text = read_file(path, largest_file);
  if (!text.ok()) return text.status();
  Result<Contention> contention = parse_contention(*text);
  if (!contention.ok()) return {Code::invalid, "\"" + path + "\": " + contention.status().message()};
  return contention;
}

}  // namespace plait::plan

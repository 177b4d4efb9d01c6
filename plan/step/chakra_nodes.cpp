#include "plan/step/chakra_nodes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "core/json.h"
#include "plan/model/json_members.h"

namespace plait::plan::step {
namespace {

constexpr std::size_t most_nodes = std::size_t{1} << 16, most_entries = 4096;
constexpr int deepest_message = 10;  // {"nodes": [{"attr": [{"stringList": {"values": []}}]}]}, and what others add

constexpr std::array<std::string_view, 11> type_names = {
    "INVALID_NODE",   "METADATA_NODE",  "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",      "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE",  "BATCH_NODE",     "CHECKPOINT_NODE"};
constexpr std::array<std::string_view, 10> collective_names = {
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};

// ---- Protobuf's JSON ----

std::string camel_case(std::string_view words) {
  std::string camel;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool begins = words[i] == '_' && i + 1 < words.size();
    if (begins) ++i;
    camel += begins && words[i] >= 'a' && words[i] <= 'z' ? static_cast<char>(words[i] - 'a' + 'A') : words[i];
  }
  return camel;
}

const Json* member_of(const Json& object, std::string_view name) {
  for (const std::string& spelt : {std::string(name), camel_case(name)})
    if (const auto found = object.find(spelt); found != object.end()) return &*found;
  return nullptr;
}

// The text's value, if all of it is one.
template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> whole_number(const Json& json) {
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  if (json.is_string()) return number_in<std::uint64_t>(json.get_ref<const std::string&>());
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (!json.is_number_float()) return std::nullopt;
  const auto value = json.get<double>();
  if (!(value >= 0 && value <= exact) || std::floor(value) != value) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::optional<double> amount_of(const Json& json) {
  std::optional<double> value;
  if (json.is_number()) value = json.get<double>();
  if (json.is_string()) value = number_in<double>(json.get_ref<const std::string&>());
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

std::optional<bool> flag_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  const auto number = whole_number(json);
  return number && *number <= 1 ? std::optional<bool>(*number == 1) : std::nullopt;
}

// An enum's value: its name or its number.
template <std::size_t count>
std::optional<std::size_t> place_in(const std::array<std::string_view, count>& names, const Json& json) {
  if (json.is_string()) {
    const auto found = std::find(names.begin(), names.end(), json.get_ref<const std::string&>());
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  const auto number = whole_number(json);
  return number && *number < count ? std::optional<std::size_t>(*number) : std::nullopt;
}

template <std::size_t count>
std::string all_of(const std::array<std::string_view, count>& names) {
  std::string text;
  for (const std::string_view one : names) text += (text.empty() ? "" : ", ") + std::string(one);
  return text;
}

// ---- Reading ----

// Sets what an attribute is for; false: its value is no such thing.
using AttributeReader = std::function<bool(const Json&)>;
struct KnownAttribute {
  const char* name;
  const char* expected;
  AttributeReader read;
};

template <class Value, class Read>
AttributeReader into(Value& variable, Read read) {
  return [&variable, read](const Json& json) {
    const auto value = read(json);
    if (value) variable = *value;
    return value.has_value();
  };
}

AttributeReader into_text(std::string& variable) {
  return [&variable](const Json& json) {
    if (json.is_string()) variable = json.get<std::string>();
    return json.is_string();
  };
}

AttributeReader into_texts(std::vector<std::string>& variable) {
  return [&variable](const Json& json) {
    const Json* values = json.is_object() ? member_of(json, "values") : nullptr;
    if (values == nullptr) return json.is_object();  // an empty list
    if (!values->is_array() || values->size() > most_entries) return false;
    for (const Json& value : *values) {
      if (!value.is_string()) return false;
      variable.push_back(value.get<std::string>());
    }
    return true;
  };
}

AttributeReader into_collective(std::optional<ChakraCollective>& variable) {
  return [&variable](const Json& json) {
    const auto place = place_in(collective_names, json);
    if (place) variable = static_cast<ChakraCollective>(*place);
    return place.has_value();
  };
}

const Json* value_of(const Json& attribute) {
  const Json* value = nullptr;
  for (const auto& [member, content] : attribute.items()) {
    if (member == "name" || member == "docString" || member == "doc_string") continue;
    if (value != nullptr) return nullptr;
    value = &content;
  }
  return value;
}

Status read_attributes(const Json* list, const std::string& where, const std::vector<KnownAttribute>& known) {
  if (list == nullptr) return {};
  if (!list->is_array() || list->size() > most_entries) return unexpected(where + "attr", "a list of attributes");
  for (const Json& attribute : *list) {
    const Json* called = attribute.is_object() ? member_of(attribute, "name") : nullptr;
    if (called == nullptr || !called->is_string()) return unexpected(where + "attr", "attributes with a name");
    const auto& text = called->get_ref<const std::string&>();
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) { return text == one.name; });
    if (found == known.end()) continue;
    const Json* value = value_of(attribute);
    if (value == nullptr || !found->read(*value)) return unexpected(where + text, found->expected);
  }
  return {};
}

Status read_ids(const Json* list, const std::string& where, std::vector<std::uint64_t>& ids) {
  constexpr const char* expected = "a list of ids of nodes";
  if (list == nullptr) return {};
  if (!list->is_array() || list->size() > most_nodes) return unexpected(where, expected);
  for (const Json& entry : *list) {
    const auto id = whole_number(entry);
    if (!id) return unexpected(where, expected);
    ids.push_back(*id);
  }
  return {};
}

std::vector<KnownAttribute> attributes_of(ChakraNode& node) {
  static const std::string collectives = all_of(collective_names) + ", or its number";
  constexpr const char *whole = "a whole number, 0 or more", *seconds = "a number of seconds, 0 or more";
  return {{"is_cpu_op", "true or false", into(node.is_cpu_op, flag_of)},
          {"comm_type", collectives.c_str(), into_collective(node.comm_type)},
          {"comm_size", whole, into(node.comm_size, whole_number)},
          {"pg_name", "a text", into_text(node.pg_name)},
          {"plait_seconds", seconds, into(node.seconds, amount_of)},
          {"plait_submit", seconds, into(node.submit, amount_of)},
          {"plait_bytes", whole, into(node.bytes, whole_number)},
          {"plait_ranks", whole, into(node.ranks, whole_number)},
          {"plait_program_order", "true or false", into(node.program_order, flag_of)},
          {"plait_blocking", "true or false", into(node.blocking, flag_of)},
          {"plait_persistent", "true or false", into(node.persistent, flag_of)},
          {"plait_after_previous", "a list of texts", into_texts(node.after_previous)},
          {"plait_site", "a text", into_text(node.site)},
          {"plait_type", "a text", into_text(node.data_type)},
          {"plait_op", "a text", into_text(node.op)}};
}

// A message leaves out what is 0 or empty.
Result<ChakraNode> read_node(const Json& json, std::size_t index) {
  std::string where = "nodes[" + std::to_string(index) + "]";
  if (!json.is_object()) return unexpected(where, "an object");
  ChakraNode node;
  const Json *id = member_of(json, "id"), *called = member_of(json, "name"), *type = member_of(json, "type");
  if (id != nullptr && !whole_number(*id)) return unexpected(where + ".id", "a whole number, 0 or more");
  if (id != nullptr) node.id = *whole_number(*id);
  where = "node " + std::to_string(node.id) + ": ";
  if (called != nullptr && !called->is_string()) return unexpected(where + "name", "a text");
  if (called != nullptr) node.name = called->get<std::string>();
  const auto kind = type == nullptr ? std::nullopt : place_in(type_names, *type);
  if (!kind) return unexpected(where + "type", "one of " + all_of(type_names) + ", or its number");
  node.type = static_cast<ChakraType>(*kind);
  for (const auto& [member, variable] :
       {std::pair("start_time_micros", &node.start_micros), std::pair("duration_micros", &node.duration_micros)}) {
    const Json* found = member_of(json, member);
    if (found != nullptr && !whole_number(*found)) return unexpected(where + member, "a whole number, 0 or more");
    if (found != nullptr) *variable = *whole_number(*found);
  }
  for (const auto& [member, ids] : {std::pair("ctrl_deps", &node.ctrl_deps), std::pair("data_deps", &node.data_deps)})
    if (Status status = read_ids(member_of(json, member), where + member, *ids); !status.ok()) return status;
  if (Status status = read_attributes(member_of(json, "attr"), where, attributes_of(node)); !status.ok()) return status;
  return node;
}

Status read_metadata(const Json& json, ChakraTrace& trace) {
  if (!json.is_object()) return unexpected("the metadata", "an object");
  const Json* version = member_of(json, "version");
  if (version != nullptr && !version->is_string()) return unexpected("the metadata: version", "a text");
  if (version != nullptr) trace.version = version->get<std::string>();
  return read_attributes(
      member_of(json, "attr"),
      "the metadata: ", {{"plait_step", "a text", into_text(trace.step)}, {"plait_of", "a text", into_text(trace.of)}});
}

Status add_node(const Json& json, ChakraTrace& trace) {
  if (trace.nodes.size() == most_nodes) return unexpected("nodes", "at most " + std::to_string(most_nodes));
  Result<ChakraNode> node = read_node(json, trace.nodes.size());
  if (node.ok()) trace.nodes.push_back(std::move(*node));
  return node.status();
}

// The first message is the metadata where it is no node.
Status read_message(const Json& json, bool first, ChakraTrace& trace) {
  return first && json.is_object() && member_of(json, "type") == nullptr ? read_metadata(json, trace)
                                                                         : add_node(json, trace);
}

Status read_list(const Json& list, bool first, ChakraTrace& trace) {
  if (!list.is_array()) return unexpected("nodes", "a list");
  for (const Json& message : list) {
    if (Status status = read_message(message, first, trace); !status.ok()) return status;
    first = false;
  }
  return {};
}

// What Chakra's feeder reads as JSON has names of its own, and no attributes.
Json message_of(const Json& entry) {
  Json message = Json::object(), attributes = Json::array();
  for (const auto& [theirs, member] : {std::pair("Id", "id"), std::pair("Name", "name"), std::pair("NodeType", "type"),
                                       std::pair("runtime", "duration_micros"), std::pair("data_deps", "data_deps")})
    if (const auto found = entry.find(theirs); found != entry.end()) message[member] = *found;
  for (const char* attribute : {"is_cpu_op", "comm_type", "comm_size"})
    if (const auto found = entry.find(attribute); found != entry.end())
      attributes.push_back({{"name", attribute}, {"value", *found}});
  message["attr"] = std::move(attributes);
  return message;
}

Status read_workload(const Json& graph, ChakraTrace& trace) {
  if (!graph.is_array()) return unexpected("workload_graph", "a list");
  for (const Json& entry : graph) {
    if (!entry.is_object()) return unexpected("workload_graph", "a list of objects");
    if (Status status = add_node(message_of(entry), trace); !status.ok()) return status;
  }
  return {};
}

Status read_object(const Json& json, ChakraTrace& trace) {
  if (const auto graph = json.find("workload_graph"); graph != json.end()) return read_workload(*graph, trace);
  if (json.contains("schema"))
    return {Code::invalid, "a PyTorch host trace: expected what chakra_converter and chakra_jsonizer make of it"};
  for (const char* member : {"metadata", "global_metadata"})
    if (const Json* metadata = member_of(json, member); metadata != nullptr)
      if (Status status = read_metadata(*metadata, trace); !status.ok()) return status;
  return read_list(json["nodes"], false, trace);
}

// The values that stand one behind the other in the text, of which each is an object or a list.
Result<std::vector<std::string_view>> messages_in(std::string_view text) {
  std::vector<std::string_view> messages;
  std::size_t begin = 0, depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char one = text[i];
    if (quoted) {
      if (one == '\\') ++i;
      quoted = one != '"';
    } else if (one == '{' || one == '[') {
      if (depth++ == 0) begin = i;
    } else if ((one == '}' || one == ']') && depth > 0) {
      if (--depth == 0) messages.push_back(text.substr(begin, i + 1 - begin));
    } else if (depth > 0) {
      quoted = one == '"';
    } else if (one != ' ' && one != '\n' && one != '\r' && one != '\t') {
      return unexpected("byte " + std::to_string(i), "JSON objects, one after the other");
    }
  }
  if (depth > 0 && !messages.empty())
    return unexpected("the text ends within an object", "JSON objects, one after the other");
  return messages;
}

// ---- Writing ----

Json attribute(const char* name, const char* kind, Json value) { return {{"name", name}, {kind, std::move(value)}}; }
Json whole_attribute(const char* name, const char* kind, std::uint64_t value) {
  return attribute(name, kind, std::to_string(value));
}

Json ids_json(const std::vector<std::uint64_t>& ids) {
  Json list = Json::array();
  for (const std::uint64_t id : ids) list.push_back(std::to_string(id));
  return list;
}

void add_own_attributes(const ChakraNode& node, Json& list) {
  if (node.seconds) list.push_back(attribute("plait_seconds", "doubleVal", *node.seconds));
  if (node.submit) list.push_back(attribute("plait_submit", "doubleVal", *node.submit));
  if (node.bytes) list.push_back(whole_attribute("plait_bytes", "uint64Val", *node.bytes));
  if (node.ranks > 0) list.push_back(whole_attribute("plait_ranks", "uint64Val", node.ranks));
  if (node.program_order) list.push_back(attribute("plait_program_order", "boolVal", true));
  if (node.blocking) list.push_back(attribute("plait_blocking", "boolVal", true));
  if (node.persistent) list.push_back(attribute("plait_persistent", "boolVal", true));
  if (!node.after_previous.empty())
    list.push_back(attribute("plait_after_previous", "stringList", {{"values", node.after_previous}}));
  for (const auto& [name, text] :
       {std::pair("plait_site", &node.site), std::pair("plait_type", &node.data_type), std::pair("plait_op", &node.op)})
    if (!text->empty()) list.push_back(attribute(name, "stringVal", *text));
}

Json node_json(const ChakraNode& node) {
  Json json = {{"id", std::to_string(node.id)}, {"name", node.name}, {"type", name(node.type)}};
  if (!node.ctrl_deps.empty()) json["ctrlDeps"] = ids_json(node.ctrl_deps);
  if (!node.data_deps.empty()) json["dataDeps"] = ids_json(node.data_deps);
  if (node.start_micros > 0) json["startTimeMicros"] = std::to_string(node.start_micros);
  if (node.duration_micros > 0) json["durationMicros"] = std::to_string(node.duration_micros);
  Json list = Json::array();
  list.push_back(attribute("is_cpu_op", "boolVal", node.is_cpu_op));
  // Signed, as Chakra's feeder looks for them.
  if (node.comm_type)
    list.push_back(whole_attribute("comm_type", "int64Val", static_cast<std::uint64_t>(*node.comm_type)));
  if (node.comm_size) list.push_back(whole_attribute("comm_size", "int64Val", *node.comm_size));
  if (!node.pg_name.empty()) list.push_back(attribute("pg_name", "stringVal", node.pg_name));
  add_own_attributes(node, list);
  json["attr"] = std::move(list);
  return json;
}

Json metadata_json(const ChakraTrace& trace) {
  Json json = {{"version", trace.version}};
  for (const auto& [name, text] : {std::pair("plait_step", &trace.step), std::pair("plait_of", &trace.of)})
    if (!text->empty()) json["attr"].push_back(attribute(name, "stringVal", *text));
  return json;
}

}  // namespace

std::string_view name(ChakraType type) { return type_names[static_cast<std::size_t>(type)]; }
std::string_view name(ChakraCollective collective) { return collective_names[static_cast<std::size_t>(collective)]; }

Result<ChakraTrace> parse_chakra_nodes(std::string_view text) {
  const Result<std::vector<std::string_view>> messages = messages_in(text);
  if (!messages.ok()) return messages.status();
  if (messages->empty()) {  // JSON's parser knows why
    const Result<Json> json = parse_json(text, deepest_message);
    if (!json.ok()) return json.status();
  }
  ChakraTrace trace;
  for (std::size_t index = 0; index < messages->size(); ++index) {
    const Result<Json> json = parse_json((*messages)[index], deepest_message);
    if (!json.ok()) return {json.status().code(), "message " + std::to_string(index) + ": " + json.status().message()};
    Status status;
    if (index == 0 && json->is_array())
      status = read_list(*json, true, trace);
    else if (index == 0 && json->is_object() && (json->contains("nodes") || json->contains("workload_graph")))
      status = read_object(*json, trace);
    else
      status = read_message(*json, index == 0, trace);
    if (!status.ok()) return status;
  }
  if (trace.nodes.empty()) return unexpected("the trace has no nodes", "Chakra's, with \"id\" and \"type\"");
  return trace;
}

std::string chakra_json(const ChakraTrace& trace) {
  std::string text = metadata_json(trace).dump() + "\n";
  for (const ChakraNode& node : trace.nodes) text += node_json(node).dump() + "\n";
  return text;
}

}  // namespace plait::plan::step

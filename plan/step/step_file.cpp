#include "plan/step/step_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/json.h"
#include "plan/model/json_members.h"
#include "plan/motif/motif.h"

namespace plait::plan::step {
namespace {

constexpr std::size_t most_tasks = 4096, most_names = 4096;
constexpr int deepest = 6;

Status parse_names(const Json* json, const std::string& where, std::vector<std::string>& names) {
  if (json == nullptr) return {};
  if (!json->is_array() || json->size() > most_names) return unexpected(where, "a list of names of tasks");
  for (const Json& name : *json) {
    if (!name.is_string()) return unexpected(where, "a list of names of tasks");
    names.push_back(name.get<std::string>());
  }
  return {};
}

Status parse_kind(const Json* collective, const Json* bytes, const std::string& where, Task& task) {
  if (collective == nullptr) {
    if (bytes != nullptr) return unexpected(where + "bytes", "a collective beside it");
    return task.seconds > 0 ? Status() : unexpected(where + "seconds", "a time, or a collective with bytes");
  }
  if (task.seconds > 0) return unexpected(where + "seconds", "none beside a collective");
  if (!collective->is_string()) return unexpected(where + "collective", "the name of a collective");
  task.collective = collective_named(collective->get<std::string>());
  const bool known = task.collective && in_steps(*task.collective);
  if (!known)
    return unexpected(where + "collective",
                      "allreduce, reduce, bcast, allgather, reduce_scatter_block, gather, scatter or alltoall");
  if (bytes == nullptr || !bytes->is_number_unsigned() || bytes->get<std::size_t>() == 0)
    return unexpected(where + "bytes", "a number of bytes");
  task.bytes = bytes->get<std::size_t>();
  return {};
}

Status parse_flag(const Json* json, const std::string& where, bool& value) {
  if (json == nullptr) return {};
  if (!json->is_boolean()) return unexpected(where, "true or false");
  value = json->get<bool>();
  return {};
}

Status parse_call(const Json* communicator, const std::string& where, Task& task) {
  constexpr unsigned most_communicators = 1u << 20;
  if (communicator != nullptr &&
      (!communicator->is_number_unsigned() || communicator->get<std::size_t>() > most_communicators))
    return unexpected(where + "communicator", "its number in the recording");
  if (communicator != nullptr) task.communicator = communicator->get<int>();
  if (task.blocking && task.persistent) return unexpected(where + "persistent", "none beside blocking");
  return {};
}

Result<Task> parse_task(const Json& json, std::size_t index) {
  Task task;
  const std::string where = "tasks[" + std::to_string(index) + "].";
  JsonMembers members(json, where);
  members.text("name", task.name).seconds("seconds", task.seconds);
  const Json *collective = members.any("collective"), *bytes = members.any("bytes");
  const Json *after = members.any("after"), *previous = members.any("after_previous");
  const Json *communicator = members.any("communicator"), *blocking = members.any("blocking"),
             *persistent = members.any("persistent");
  const Json *site = members.any("site"), *type = members.any("type"), *op = members.any("op");
  if (Status status = members.finish(); !status.ok()) return status;
  if (Status status = parse_flag(blocking, where + "blocking", task.blocking); !status.ok()) return status;
  if (Status status = parse_flag(persistent, where + "persistent", task.persistent); !status.ok()) return status;
  if (Status status = parse_call(communicator, where, task); !status.ok()) return status;
  for (const auto& [text, field] :
       {std::pair(site, &task.site), std::pair(type, &task.type), std::pair(op, &task.op)}) {
    if (text != nullptr && !text->is_string()) return unexpected(where + "site, type, op", "a text");
    if (text != nullptr) *field = text->get<std::string>();
  }
  if (Status status = parse_kind(collective, bytes, where, task); !status.ok()) return status;
  if (Status status = parse_names(after, where + "after", task.after); !status.ok()) return status;
  if (Status status = parse_names(previous, where + "after_previous", task.after_previous); !status.ok()) return status;
  return task;
}

Status check_names(const Step& step) {
  std::set<std::string> all, before;
  for (const Task& task : step.tasks)
    if (!all.insert(task.name).second) return {Code::invalid, "task \"" + task.name + "\" stands twice"};
  for (const Task& task : step.tasks) {
    for (const std::string& name : task.after)
      if (!before.contains(name))
        return {Code::invalid, "task \"" + task.name + "\": after \"" + name + "\": expected an earlier task"};
    for (const std::string& name : task.after_previous)
      if (!all.contains(name))
        return {Code::invalid, "task \"" + task.name + "\": after_previous \"" + name + "\": no task has that name"};
    before.insert(task.name);
  }
  return {};
}

Result<Step> step_of(const Json& json) {
  Step step;
  JsonMembers members(json, "");
  members.version("plait_step", 1).text("name", step.name);
  const Json* of = members.any("of");
  const Json* tasks = members.list("tasks", most_tasks, "tasks");
  if (Status status = members.finish(); !status.ok()) return status;
  if (of != nullptr && !of->is_string()) return unexpected("of", "a text");
  if (of != nullptr) step.of = of->get<std::string>();
  for (std::size_t index = 0; index < tasks->size(); ++index) {
    Result<Task> task = parse_task((*tasks)[index], index);
    if (!task.ok()) return task.status();
    step.tasks.push_back(std::move(*task));
  }
  if (Status status = check_names(step); !status.ok()) return status;
  return step;
}

}  // namespace

bool in_steps(Collective collective) { return motif::is_motif(collective); }

Result<Step> parse_step(std::string_view text) {
  const Result<Json> json = parse_json(text, deepest);
  if (!json.ok()) return json.status();
  if (!json->is_object() || !json->contains("plait_recording")) return step_of(*json);
  if ((*json)["plait_recording"] != 1) return unexpected("plait_recording", "1");
  if (!json->contains("step")) return {Code::invalid, "the recording has no step: the program repeats none"};
  return step_of((*json)["step"]);
}

std::string step_json(const Step& step) {
  Json json = {{"plait_step", 1}, {"name", step.name}};
  if (!step.of.empty()) json["of"] = step.of;
  json["tasks"] = Json::array();
  for (const Task& task : step.tasks) {
    Json one = {{"name", task.name}};
    if (task.collective) {
      one["collective"] = name(*task.collective);
      one["bytes"] = task.bytes;
    } else {
      one["seconds"] = task.seconds;
    }
    if (!task.after.empty()) one["after"] = task.after;
    if (!task.after_previous.empty()) one["after_previous"] = task.after_previous;
    if (task.communicator != 0) one["communicator"] = task.communicator;
    if (task.blocking) one["blocking"] = true;
    if (task.persistent) one["persistent"] = true;
    if (!task.site.empty()) one["site"] = task.site;
    if (!task.type.empty()) one["type"] = task.type;
    if (!task.op.empty()) one["op"] = task.op;
    json["tasks"].push_back(std::move(one));
  }
  return json.dump(1) + "\n";
}

}  // namespace plait::plan::step

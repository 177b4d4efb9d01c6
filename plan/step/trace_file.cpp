#include "plan/step/trace_file.h"

#include <map>
#include <string>
#include <utility>

#include "core/json.h"
#include "plan/model/json_members.h"
#include "plan/step/chakra_file.h"

namespace plait::plan::step {
namespace {

constexpr std::size_t most_calls = 4096, most_groups = std::size_t{1} << 20;
constexpr int deepest_recording = 8;

// A member, or a member's "mean"; without the former none.
Status read_seconds(const Json& call, const char* member, const std::string& where, std::optional<double>& seconds) {
  const auto found = call.find(member);
  if (found == call.end()) return {};
  double value = 0;
  Json one = {{member, found->is_object() && found->contains("mean") ? (*found)["mean"] : *found}};
  if (Status status = JsonMembers(one, where).seconds(member, value).status(); !status.ok()) return status;
  seconds = value;
  return {};
}

Status read_call(const Json& call, const std::string& where, std::map<std::string, TaskTimes>& times) {
  if (!call.is_object()) return unexpected(where, "an object");
  std::string name;
  if (Status status = JsonMembers(call, where + ".").text("name", name).status(); !status.ok()) return status;
  TaskTimes known;
  std::optional<double> inside, complete;
  if (Status status = read_seconds(call, "submit", where + ".", known.submit); !status.ok()) return status;
  if (Status status = read_seconds(call, "call", where + ".", inside); !status.ok()) return status;
  if (Status status = read_seconds(call, "complete", where + ".", complete); !status.ok()) return status;
  const bool blocking = !call.contains("complete");
  known.seconds = blocking ? inside : complete;
  if (!blocking && known.seconds == 0.0) known.seconds = {};  // nobody waited for it
  times[name] = known;
  return {};
}

Status read_groups(const Json& json, std::vector<int>& ranks) {
  constexpr int most_ranks = 1 << 24;
  if (!json.is_array() || json.size() > most_groups) return unexpected("communicators", "a list");
  for (std::size_t index = 0; index < json.size(); ++index) {
    int count = 0;
    const std::string where = "communicators[" + std::to_string(index) + "].";
    if (Status status = JsonMembers(json[index], where).count("ranks", count, most_ranks).status(); !status.ok())
      return status;
    ranks.push_back(count);
  }
  return {};
}

Result<Trace> recorded(const Json& json, Step step) {
  Trace trace{.step = std::move(step)};
  if (const auto groups = json.find("communicators"); groups != json.end())
    if (Status status = read_groups(*groups, trace.ranks); !status.ok()) return status;
  std::map<std::string, TaskTimes> times;
  if (const auto calls = json.find("calls_of_step"); calls != json.end()) {
    if (!calls->is_array() || calls->size() > most_calls) return unexpected("calls_of_step", "a list");
    for (std::size_t index = 0; index < calls->size(); ++index)
      if (Status status = read_call((*calls)[index], "calls_of_step[" + std::to_string(index) + "]", times);
          !status.ok())
        return status;
  }
  for (const Task& task : trace.step.tasks) trace.times.push_back(times[task.name]);
  return trace;
}

// What is drawn needs an end.
Result<Trace> ending(Result<Trace> trace) {
  constexpr double longest_step = 1e9;  // seconds
  if (!trace.ok() || seconds_of(spans_of(*trace)) <= longest_step) return trace;
  return unexpected("the step's times", "a step of at most 1e9 seconds");
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, int ranks) {
  // Chakra's file is many values, which is no JSON.
  const Result<Json> json = parse_json(text, deepest_recording);
  const bool is_object = json.ok() && json->is_object();
  const bool is_recording = is_object && json->contains("plait_recording");
  if (!is_recording && !(is_object && json->contains("plait_step"))) {
    Result<Trace> trace = ending(parse_chakra(text, ranks));
    if (trace.ok()) return trace;
    return {trace.status().code(),
            "as a Chakra trace, for it is neither a recording nor a plait_step: " + trace.status().message()};
  }
  Result<Step> step = parse_step(text);
  if (!step.ok()) return step.status();
  return ending(is_recording ? recorded(*json, std::move(*step)) : Result<Trace>(Trace{.step = std::move(*step)}));
}

}  // namespace plait::plan::step

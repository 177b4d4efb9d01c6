#include "plan/step/chrome_file.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace plait::plan::step {
namespace {

constexpr double microseconds = 1e6;

// Events of a row must not overlap.
class Rows {
 public:
  explicit Rows(const Trace& trace, const std::vector<TaskSpan>& spans) : rows_(spans.size()) {
    std::map<int, std::vector<std::size_t>> lanes;  // -1: computation
    for (std::size_t task = 0; task < spans.size(); ++task) {
      const Task& one = trace.step.tasks[task];
      lanes[one.collective ? one.communicator : -1].push_back(task);
    }
    for (auto& [communicator, tasks] : lanes) {
      std::stable_sort(tasks.begin(), tasks.end(),
                       [&](std::size_t a, std::size_t b) { return spans[a].begin < spans[b].begin; });
      fill(communicator < 0 ? "computation" : "communicator " + std::to_string(communicator), tasks, spans);
    }
  }

  std::size_t of(std::size_t task) const { return rows_[task]; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void fill(const std::string& name, const std::vector<std::size_t>& tasks, const std::vector<TaskSpan>& spans) {
    const std::size_t first = names_.size();
    std::vector<double> ends;
    for (const std::size_t task : tasks) {
      std::size_t row = 0;
      while (row < ends.size() && ends[row] > spans[task].begin) ++row;
      if (row == ends.size()) {
        ends.push_back(0);
        names_.push_back(row == 0 ? name : name + " (" + std::to_string(row + 1) + ")");
      }
      ends[row] = spans[task].end;
      rows_[task] = first + row;
    }
  }

  std::vector<std::size_t> rows_;  // by task
  std::vector<std::string> names_;
};

Json event(const char* phase, std::string_view name, std::size_t row) {
  return {{"ph", phase}, {"name", name}, {"pid", 0}, {"tid", row}};
}

Json arguments_of(const Trace& trace, const Task& task, bool ends_by_wait) {
  Json json = Json::object();
  if (task.collective) {
    json["collective"] = name(*task.collective);
    json["bytes"] = task.bytes;
    json["communicator"] = task.communicator;
    if (const int ranks = ranks_of(trace, task.communicator, 0); ranks > 0) json["ranks"] = ranks;
    json["blocking"] = task.blocking;
    if (ends_by_wait) json["end"] = "not known: where it is waited for";
  }
  if (!task.after.empty()) json["after"] = task.after;
  if (!task.after_previous.empty()) json["after_previous"] = task.after_previous;
  for (const auto& [member, text] :
       {std::pair("site", &task.site), std::pair("type", &task.type), std::pair("op", &task.op)})
    if (!text->empty()) json[member] = *text;
  return json;
}

Json span_event(const Trace& trace, std::size_t index, const TaskSpan& span, std::size_t row) {
  const Task& task = trace.step.tasks[index];
  Json json = event("X", task.name, row);
  json["cat"] = task.collective ? "operation" : "computation";
  json["ts"] = microseconds * span.begin;
  json["dur"] = microseconds * (span.end - span.begin);
  json["args"] = arguments_of(trace, task, span.ends_by_wait);
  return json;
}

void add_names(const Trace& trace, const std::vector<std::string>& rows, Json& events) {
  Json process = event("M", "process_name", 0);
  process["args"]["name"] = trace.step.name;
  events.push_back(std::move(process));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Json name = event("M", "thread_name", row), place = event("M", "thread_sort_index", row);
    name["args"]["name"] = rows[row];
    place["args"]["sort_index"] = row;
    events.push_back(std::move(name));
    events.push_back(std::move(place));
  }
}

void add_arrows(const Trace& trace, const std::vector<TaskSpan>& spans, const Rows& rows, Json& events) {
  std::map<std::string_view, std::size_t> operations;
  std::size_t arrows = 0;
  for (std::size_t task = 0; task < spans.size(); ++task) {
    for (const std::string& name : trace.step.tasks[task].after) {
      const auto found = operations.find(name);
      if (found == operations.end()) continue;
      Json from = event("s", "wait", rows.of(found->second)), to = event("f", "wait", rows.of(task));
      from["ts"] = microseconds * spans[found->second].begin;
      to["ts"] = microseconds * spans[task].begin;
      to["bp"] = "e";
      from["cat"] = to["cat"] = "wait";
      from["id"] = to["id"] = arrows++;
      events.push_back(std::move(from));
      events.push_back(std::move(to));
    }
    if (trace.step.tasks[task].collective) operations.emplace(trace.step.tasks[task].name, task);
  }
}

}  // namespace

std::string chrome_text(const Trace& trace, const std::vector<TaskSpan>& spans) {
  const Rows rows(trace, spans);
  Json events = Json::array();
  add_names(trace, rows.names(), events);
  for (std::size_t task = 0; task < spans.size(); ++task)
    events.push_back(span_event(trace, task, spans[task], rows.of(task)));
  add_arrows(trace, spans, rows, events);
  Json json = {{"displayTimeUnit", "ms"}};
  if (!trace.step.of.empty()) json["otherData"]["of"] = trace.step.of;
  json["traceEvents"] = std::move(events);
  return json.dump(1) + "\n";
}

}  // namespace plait::plan::step

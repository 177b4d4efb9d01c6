// plait trace: a program's step, recorded or written by another tool: shown, and written in other formats
// (docs/record.md).
#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/step/chakra_file.h"
#include "plan/step/chrome_file.h"
#include "plan/step/predicted_spans.h"
#include "plan/step/trace_file.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/picture/trace_picture.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;
using plan::step::Task;
using plan::step::TaskSpan;
using plan::step::Trace;

constexpr std::size_t longest_trace_file = std::size_t{64} << 20;
constexpr int most_trace_ranks = 1 << 20, most_predicted_ranks = 256;

struct TraceOptions {
  std::string file, svg, output, to, system, machine = "default";
  int ranks = 0;
  bool json = false;
};

Result<Trace> read_trace(const TraceOptions& options) {
  if (options.ranks < 0 || options.ranks > most_trace_ranks)
    return Status(Code::invalid,
                  "--ranks " + std::to_string(options.ranks) + ": expected 1 to " + std::to_string(most_trace_ranks));
  const auto text = read_file(options.file, longest_trace_file);
  if (!text.ok()) return text.status();
  Result<Trace> trace = plan::step::parse_trace(*text, options.ranks);
  if (!trace.ok()) return Status(Code::invalid, "\"" + options.file + "\": " + trace.status().message());
  return trace;
}

// As the file has them, or as a system would.
Result<std::vector<TaskSpan>> spans_for(const Trace& trace, const TraceOptions& options) {
  if (options.system.empty()) return plan::step::spans_of(trace);
  const Result<Hierarchy> hierarchy = parse_system(options.system, most_predicted_ranks);
  if (!hierarchy.ok()) return hierarchy.status();
  const Result<Machine> machine = load_machine(options.machine);
  if (!machine.ok()) return machine.status();
  return plan::step::predicted_spans(trace.step, *hierarchy, *machine);
}

// ---- What is shown ----

std::string joined(const std::vector<std::string>& names, const char* before) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + std::string(before) + name;
  return text;
}

std::string waits_of(const Task& task) {
  const std::string now = joined(task.after, ""), previous = joined(task.after_previous, "previous ");
  return now + (now.empty() || previous.empty() ? "" : ", ") + previous;
}

constexpr std::size_t columns = 8;
using Cells = std::array<std::string, columns>;

Cells cells_of(const Task& task, const TaskSpan& span) {
  const std::string seconds = span.ends_by_wait ? "-" : format_seconds(span.end - span.begin);
  if (!task.collective)
    return {task.name, "computation", "", "", "", format_seconds(span.begin), seconds, waits_of(task)};
  return {task.name,
          std::string(name(*task.collective)),
          format_bytes(task.bytes),
          std::to_string(task.communicator),
          task.blocking ? "yes" : "no",
          format_seconds(span.begin),
          seconds,
          waits_of(task)};
}

void print_table(const std::vector<Cells>& rows) {
  constexpr std::size_t last = columns - 1;  // of any width
  std::array<std::size_t, last> widths{};
  for (const Cells& row : rows)
    for (std::size_t column = 0; column < last; ++column) widths[column] = std::max(widths[column], row[column].size());
  for (const Cells& row : rows) {
    std::string line = "  ";
    for (std::size_t column = 0; column < last; ++column) {
      const bool number = column >= 2;
      std::string cell = number ? padded(row[column], widths[column]) : row[column];
      cell.resize(widths[column] + 2, ' ');
      line += cell;
    }
    line += row[last];
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  }
}

double computation_of(const Trace& trace) {
  double seconds = 0;
  for (const Task& task : trace.step.tasks) seconds += task.seconds;
  return seconds;
}

void print_trace(const Trace& trace, const std::vector<TaskSpan>& spans) {
  std::cout << trace.step.name << (trace.step.of.empty() ? "" : " (" + trace.step.of + ")") << ": "
            << plural(spans.size(), "task") << " a step, computation " << format_seconds(computation_of(trace)) << '\n';
  std::vector<Cells> rows = {{"task", "is", "bytes", "comm", "blocks", "begin", "takes", "waits for"}};
  for (std::size_t index = 0; index < spans.size(); ++index)
    rows.push_back(cells_of(trace.step.tasks[index], spans[index]));
  print_table(rows);
  if (!trace.left_out.empty()) std::cout << "left out: " << trace.left_out << '\n';
}

Json task_json(const Trace& trace, std::size_t index, const TaskSpan& span) {
  const Task& task = trace.step.tasks[index];
  Json json = {{"name", task.name}, {"begin", span.begin}};
  if (span.ends_by_wait)
    json["waited_for"] = span.end;
  else
    json["end"] = span.end;
  if (task.collective) {
    json["collective"] = name(*task.collective);
    json["bytes"] = task.bytes;
  } else {
    json["seconds"] = task.seconds;
  }
  json["communicator"] = task.communicator;
  if (const int ranks = plan::step::ranks_of(trace, task.communicator, 0); ranks > 0) json["ranks"] = ranks;
  json["blocking"] = task.blocking;
  json["after"] = task.after;
  json["after_previous"] = task.after_previous;
  for (const auto& [member, text] :
       {std::pair("site", &task.site), std::pair("type", &task.type), std::pair("op", &task.op)})
    if (!text->empty()) json[member] = *text;
  return json;
}

Json trace_json(const Trace& trace, const std::vector<TaskSpan>& spans) {
  Json json = {{"plait_trace", 1}, {"name", trace.step.name}, {"of", trace.step.of}};
  json["computation_seconds"] = computation_of(trace);
  json["seconds"] = plan::step::seconds_of(spans);
  json["left_out"] = trace.left_out;
  json["tasks"] = Json::array();
  for (std::size_t index = 0; index < spans.size(); ++index)
    json["tasks"].push_back(task_json(trace, index, spans[index]));
  return json;
}

Result<int> show_trace(const TraceOptions& options) {
  const Result<Trace> trace = read_trace(options);
  if (!trace.ok()) return trace.status();
  const Result<std::vector<TaskSpan>> spans = spans_for(*trace, options);
  if (!spans.ok()) return spans.status();
  if (!options.svg.empty())
    if (Status written = replace_file(options.svg, timeline_svg(trace_picture(*trace, *spans))); !written.ok())
      return Status(written.code(), "--svg " + written.message());
  if (options.json)
    std::cout << trace_json(*trace, *spans).dump(2) << '\n';
  else
    print_trace(*trace, *spans);
  return 0;
}

// ---- What is written ----

Result<std::string> converted(const Trace& trace, const TraceOptions& options) {
  if (options.to == "chrome") {
    const Result<std::vector<TaskSpan>> spans = spans_for(trace, options);
    return spans.ok() ? Result<std::string>(plan::step::chrome_text(trace, *spans)) : spans.status();
  }
  if (options.to == "chakra") return plan::step::chakra_text(trace, options.ranks);
  if (options.to == "step") return plan::step::step_json(trace.step);
  return Status(Code::invalid, "--to \"" + options.to + "\": expected chrome, chakra or step");
}

Result<int> convert_trace(const TraceOptions& options) {
  const Result<Trace> trace = read_trace(options);
  if (!trace.ok()) return trace.status();
  const Result<std::string> text = converted(*trace, options);
  if (!text.ok()) return text.status();
  if (Status written = replace_file(options.output, *text); !written.ok())
    return Status(written.code(), "--output " + written.message());
  std::cout << options.output << ": " << plural(trace->step.tasks.size(), "task");
  if (!trace->left_out.empty()) std::cout << "; left out: " << trace->left_out;
  std::cout << '\n';
  return 0;
}

class TraceCommand : public Command {
 public:
  std::string_view name() const override { return "trace"; }
  std::string_view summary() const override {
    return "shows a program's step, as recorded or as a Chakra trace, and converts it (Chrome's format, Chakra's)";
  }

  void add_options(CommandLine line) override {
    line.require_subcommand();
    show_ = line.subcommand("show", "its tasks as a table, or as a picture");
    add_input(*show_);
    show_->option("--svg", options_.svg, "draw the step into this file");
    show_->flag("--json", options_.json, "print JSON");
    convert_ = line.subcommand("convert", "write it in another format");
    add_input(*convert_);
    convert_->option("-o,--output", options_.output, "the file to write").required();
    convert_->option("--to", options_.to, "chrome, chakra, or step (what plait schedule reads)").required();
  }

  Result<int> run() override { return show_->was_given() ? show_trace(options_) : convert_trace(options_); }

 private:
  void add_input(CommandLine line) {
    line.option("file", options_.file, "a recording (PLAIT_RECORD), a step, or a Chakra execution trace (JSON)")
        .required();
    line.option("--ranks", options_.ranks, "of communicators of which the file does not say it (Chakra needs it)");
    line.option("--system", options_.system,
                "children at each level, outermost first: times as issued there, predicted");
    line.option("--machine", options_.machine, "of that system: default, a100, v100 or a machine file").shows_default();
  }

  std::optional<CommandLine> show_, convert_;
  TraceOptions options_;
};

}  // namespace

std::unique_ptr<Command> trace_command() { return std::make_unique<TraceCommand>(); }

}  // namespace plait::tuner

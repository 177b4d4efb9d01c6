#include "runtime/report/trace_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/log.h"
#include "runtime/job/job.h"
#include "runtime/oob/oob.h"
#include "runtime/record/call_trace.h"
#include "runtime/record/worker_trace.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

constexpr int rows_a_communicator = 256;  // of the picture: thread ids are communicator * this + row

std::string quoted(const std::string& text) {
  return SortedJson(text).dump(-1, ' ', false, SortedJson::error_handler_t::replace);
}

// Appends events as text; a trace has too many for a tree of values.
class Events {
 public:
  Events(int rank, std::int64_t shift_ns) : rank_(rank), shift_ns_(shift_ns) {}

  // Of the events that follow; nothing: none.
  void category(std::string_view category) { category_ = category; }

  void name(const char* what, int thread, const std::string& text) {
    open(what, "M", thread);
    text_.append(",\"args\":{\"name\":").append(quoted(text)).append("}}");
  }
  struct Span {
    std::uint64_t begin_ns, end_ns;
    int thread;
  };
  void span(std::string_view title, const Span& span, const std::string& arguments) {
    open(title, "X", span.thread);
    std::array<char, 96> times{};
    std::snprintf(times.data(), times.size(), ",\"ts\":%.3f,\"dur\":%.3f",
                  static_cast<double>(static_cast<std::int64_t>(span.begin_ns) + shift_ns_) * 1e-3,
                  static_cast<double>(span.end_ns - span.begin_ns) * 1e-3);
    text_.append(times.data()).append(",\"args\":{").append(arguments).append("}}");
  }
  std::string take() { return std::move(text_); }

 private:
  void open(std::string_view title, const char* kind, int thread) {
    if (!text_.empty()) text_ += ",\n";
    text_.append("{\"name\":\"").append(title).append("\",\"ph\":\"").append(kind);
    text_.append("\",\"pid\":").append(std::to_string(rank_)).append(",\"tid\":").append(std::to_string(thread));
    if (!category_.empty()) text_.append(",\"cat\":\"").append(category_).append("\"");
  }

  int rank_;
  std::int64_t shift_ns_;
  std::string_view category_;
  std::string text_;
};

std::string field(const char* key, std::uint64_t value) {
  std::string text("\"");
  return text.append(key).append("\":").append(std::to_string(value));
}

std::string step_arguments(const StepRecord& step) {
  std::string text = field("call", step.call);
  text.append(",").append(field("step", step.step)).append(",").append(field("bytes", step.bytes));
  if (step.peer < 0 || step.kind == StepKind::copy || step.kind == StepKind::reduce) return text;
  text.append(",").append(field("peer", static_cast<std::uint64_t>(step.peer)));
  return text.append(",\"channel\":\"").append(name(step.channel)).append("\"");
}

// Spans that overlap in time stand in different rows: the viewers cannot draw them in one.
class Rows {
 public:
  // That of the next span, in the order of their begins.
  int row_of(std::uint64_t begin_ns, std::uint64_t end_ns) {
    const auto free = std::ranges::find_if(end_ns_, [&](std::uint64_t end) { return end <= begin_ns; });
    const auto row = static_cast<std::size_t>(free - end_ns_.begin());
    if (free == end_ns_.end())
      end_ns_.push_back(end_ns);
    else
      *free = end_ns;
    return static_cast<int>(row);
  }

 private:
  std::vector<std::uint64_t> end_ns_;
};

void add_steps(Events& events, const CommunicatorTrace& trace, int first_thread) {
  std::vector<StepRecord> steps = trace.steps.records();
  std::ranges::stable_sort(steps, {}, &StepRecord::begin_ns);
  Rows rows;
  for (const StepRecord& step : steps) {
    const int thread = first_thread + 1 + std::min(rows.row_of(step.begin_ns, step.end_ns), rows_a_communicator - 2);
    events.span(name(step.kind), {step.begin_ns, step.end_ns, thread}, step_arguments(step));
  }
}

void add_communicator(Events& events, const CommunicatorTrace& trace, int first_thread) {
  events.name("thread_name", first_thread, trace.label);
  for (const CallRecord& call : trace.calls)
    events.span(name(call.collective), {call.begin_ns, call.end_ns, first_thread},
                field("bytes", call.bytes) + ",\"plan\":" + quoted(call.plan));
  add_steps(events, trace, first_thread);
}

// ---- Fused operators ----

void add_act(Events& events, const WorkerRecord& act, int thread) {
  std::string arguments = field("run", act.run);
  if (act.bytes > 0) arguments.append(",").append(field("bytes", act.bytes));
  if (act.peer >= 0) arguments.append(",").append(field("peer", static_cast<std::uint64_t>(act.peer)));
  events.span(name(act.act), {act.begin_ns, act.end_ns, thread}, arguments);
}

// Rows: the runs, the workers one by one, and the messages under way, as many as there were at once.
void add_workers(Events& events, const WorkersTrace& trace, int first_thread) {
  events.category("fused");
  events.name("thread_name", first_thread, "fused " + trace.plan + ", " + std::to_string(trace.ranks) + " ranks");
  for (const WorkerRecord& run : trace.runs.records())
    events.span("run", {run.begin_ns, run.end_ns, first_thread}, field("run", run.run));
  int thread = first_thread;
  for (std::size_t worker = 0; worker < trace.workers.size(); ++worker) {
    if (thread < first_thread + rows_a_communicator / 2) ++thread;
    events.name("thread_name", thread, "worker " + std::to_string(worker));
    for (const WorkerRecord& act : trace.workers[worker].records()) add_act(events, act, thread);
  }
  std::vector<WorkerRecord> messages = trace.messages.records();
  std::ranges::stable_sort(messages, {}, &WorkerRecord::begin_ns);
  Rows rows;
  const int most = first_thread + rows_a_communicator - 2 - thread;
  for (const WorkerRecord& message : messages)
    add_act(events, message, thread + 1 + std::min(rows.row_of(message.begin_ns, message.end_ns), most));
  if (!messages.empty()) events.name("thread_name", thread + 1, "messages");
  events.category("");
}

std::uint64_t dropped_of(const WorkersTrace& trace) {
  std::uint64_t dropped = trace.messages.dropped() + trace.runs.dropped();
  for (const WorkerLane& lane : trace.workers) dropped += lane.dropped();
  return dropped;
}

// Nanoseconds to add to this rank's clock to get rank 0's.
std::int64_t clock_shift(Oob& world) {
  struct Stamp {
    std::uint64_t machine, now_ns;
  };
  constexpr std::string_view what = "compare their clocks";
  if (!world.meet(what).ok()) return 0;
  const Stamp mine{.machine = job().machine, .now_ns = monotonic_ns()};
  Stamp reference = mine;
  const Status told = world.tell_all(&reference, sizeof reference, what);
  if (!told.ok() || reference.machine == mine.machine) return 0;
  return static_cast<std::int64_t>(reference.now_ns) - static_cast<std::int64_t>(mine.now_ns);
}

std::string my_events(int rank, std::int64_t shift_ns) {
  Events events(rank, shift_ns);
  events.name("process_name", 0, "rank " + std::to_string(rank));
  std::uint64_t dropped = dropped_records() + dropped_worker_records();
  int first_thread = rows_a_communicator;
  for_each_trace([&](const CommunicatorTrace& trace) {
    add_communicator(events, trace, first_thread);
    first_thread += rows_a_communicator;
    dropped += trace.dropped_calls + trace.steps.dropped();
  });
  for_each_workers_trace([&](const WorkersTrace& trace) {
    add_workers(events, trace, first_thread);
    first_thread += rows_a_communicator;
    dropped += dropped_of(trace);
  });
  if (dropped > 0) events.name("process_labels", 0, std::to_string(dropped) + " records dropped");
  return events.take();
}

}  // namespace

void finish_trace(Oob& world, const Config& config) {
  const int rank = world.rank();
  const std::int64_t shift_ns = clock_shift(world);
  const std::string mine = text_or_nothing([&] { return my_events(rank, shift_ns); });
  std::FILE* file = rank == 0 && !config.trace_path.empty() ? std::fopen(config.trace_path.c_str(), "w") : nullptr;
  bool written = file != nullptr && std::fputs("{\"traceEvents\":[\n", file) >= 0;
  world.gather_texts(mine, [&](int from, const std::string& events) {
    if (file == nullptr) return;
    if (from > 0) written &= std::fputs(",\n", file) >= 0;
    written &= std::fwrite(events.data(), 1, events.size(), file) == events.size();
  });
  if (file != nullptr) {
    written &= std::fputs("\n]}\n", file) >= 0;
    written &= std::fclose(file) == 0;
  }
  if (rank == 0 && !written) warn("the trace could not be written to " + config.trace_path);
}

}  // namespace plait::runtime

#include "tuner/text/trace_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/channel_kind.h"
#include "core/units.h"
#include "tuner/text/trace_events.h"

namespace plait::tuner {
namespace {

constexpr std::size_t most_named = 5;  // calls that a refusal lists
using Event = TraceEvent;

// A rank's record of one communicator.
struct Thread {
  std::int64_t rank, number;
  auto operator<=>(const Thread&) const = default;
};

struct Span {
  std::string title;  // a collective, or a kind of steps ("reduce" is both)
  std::uint64_t bytes;
  std::string plan;
  double begin, end;  // microseconds
};

Span span_of(const Event& event, const std::string& title) {
  const double begin = event.microseconds("ts", -most_microseconds), length = event.microseconds("dur", 0);
  return {title, event.argument_bytes("bytes"), "", begin, begin + length};
}

// Calls stand in the threads that have a communicator's name, its steps in those that follow.
struct Run {
  std::map<Thread, std::string> names;
  std::map<Thread, std::vector<Span>> calls;
};

Result<Run> read_calls(std::string_view trace) {
  Run run;
  const Status status = each_event(trace, [&](const Event& event) {
    if (event.is_fused()) return;
    const std::string kind = event.text("ph"), title = event.text("name");
    const Thread thread{event.whole("pid"), event.whole("tid")};
    if (kind == "M" && title == "thread_name") run.names[thread] = event.argument_text("name");
    if (kind != "X" || !run.names.contains(thread)) return;
    Span call = span_of(event, title);
    call.plan = event.argument_text("plan");
    run.calls[thread].push_back(std::move(call));
  });
  if (!status.ok()) return status;
  return run;
}

std::string text_of(const std::string& collective, std::uint64_t bytes, std::size_t ranks) {
  return collective + (bytes > 0 ? " of " + format_bytes(bytes) : "") + " on " + std::to_string(ranks) + " ranks";
}

// A communicator's threads, by its name; where a rank has several communicators of one name, by their order on it.
std::map<std::pair<std::string, int>, std::vector<Thread>> communicators(const Run& run) {
  std::map<std::pair<std::string, int>, std::vector<Thread>> all;
  std::map<std::pair<std::string, std::int64_t>, int> of_rank;
  for (const auto& [thread, name] : run.names) all[{name, of_rank[{name, thread.rank}]++}].push_back(thread);
  return all;
}

class Choice {
 public:
  Choice(const Run& run, const TraceQuestion& question) : run_(run), question_(question) {}

  // The threads of the communicator and, for each of them, the call's span.
  struct Chosen {
    std::string communicator, plan;
    std::size_t calls;
    std::vector<Thread> threads;
    std::vector<Span> spans;
  };

  Result<Chosen> run() const {
    std::vector<Chosen> found;
    for (const auto& [name, threads] : communicators(run_)) add(name.first, threads, found);
    if (found.empty()) return refusal();
    const auto by_plan =
        std::find_if(found.begin(), found.end(), [&](const Chosen& one) { return one.plan == question_.plan; });
    if (by_plan != found.end()) return *by_plan;
    return *std::max_element(found.begin(), found.end(),
                             [](const Chosen& a, const Chosen& b) { return a.calls < b.calls; });
  }

 private:
  // A communicator's calls in question, for each of its plans.
  void add(const std::string& name, const std::vector<Thread>& threads, std::vector<Chosen>& found) const {
    if (static_cast<int>(threads.size()) != question_.ranks) return;
    std::vector<std::vector<Span>> calls;
    std::size_t common = SIZE_MAX;  // the first so many are known of all ranks
    for (const Thread& thread : threads) {
      calls.push_back(matching(thread));
      common = std::min(common, calls.back().size());
    }
    std::map<std::string, std::vector<std::size_t>> by_plan;
    for (std::size_t call = 0; call < common; ++call) by_plan[calls.front()[call].plan].push_back(call);
    for (auto& [plan, numbers] : by_plan) {
      const auto seconds = [&](std::size_t call) {
        double longest = 0;
        for (const auto& of_rank : calls) longest = std::max(longest, of_rank[call].end - of_rank[call].begin);
        return longest;
      };
      const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>((numbers.size() - 1) / 2);
      std::nth_element(numbers.begin(), middle, numbers.end(),
                       [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
      Chosen chosen{name, plan, numbers.size(), threads, {}};
      for (const auto& of_rank : calls) chosen.spans.push_back(of_rank[*middle]);
      found.push_back(std::move(chosen));
    }
  }

  std::vector<Span> matching(const Thread& thread) const {
    std::vector<Span> spans;
    const auto calls = run_.calls.find(thread);
    if (calls == run_.calls.end()) return spans;
    for (const Span& call : calls->second)
      if (call.title == name(question_.collective) && call.bytes == question_.bytes) spans.push_back(call);
    return spans;
  }

  Status refusal() const {
    std::set<std::string> others;
    for (const auto& [unused, threads] : communicators(run_))
      for (const Thread& thread : threads)
        if (const auto calls = run_.calls.find(thread); calls != run_.calls.end())
          for (const Span& call : calls->second)
            if (others.size() <= most_named) others.insert(text_of(call.title, call.bytes, threads.size()));
    std::string list;
    std::size_t listed = 0;
    for (const std::string& other : others)
      if (listed++ < most_named) list += (list.empty() ? "; it has " : ", ") + other;
    if (others.size() > most_named) list += " and others";
    return {Code::invalid, "no " +
                               text_of(std::string(name(question_.collective)), question_.bytes,
                                       static_cast<std::size_t>(question_.ranks)) +
                               (list.empty() ? "; it has no calls at all" : list)};
  }

  const Run& run_;
  const TraceQuestion& question_;
};

// Steps stand in the threads behind their communicator's, up to the next communicator's; those within the call are its.
Status read_steps(std::string_view trace, const Run& run, const Choice::Chosen& chosen, MeasuredCall& call) {
  double first = HUGE_VAL;
  for (const Span& span : chosen.spans) first = std::min(first, span.begin);
  std::map<Thread, std::size_t> number;
  for (std::size_t i = 0; i < chosen.threads.size(); ++i) {
    const Span& span = chosen.spans[i];
    number[chosen.threads[i]] = i;
    call.ranks.push_back(
        {static_cast<int>(chosen.threads[i].rank), (span.begin - first) * 1e-6, (span.end - first) * 1e-6, {}});
    call.seconds = std::max(call.seconds, (span.end - span.begin) * 1e-6);
  }
  return each_event(trace, [&](const Event& event) {
    if (event.is_fused()) return;
    const std::string title = event.text("name");
    const Thread thread{event.whole("pid"), event.whole("tid")};
    if (event.text("ph") != "X" || run.names.contains(thread)) return;
    const auto next = run.names.upper_bound(thread);
    if (next == run.names.begin()) return;
    const auto found = number.find(std::prev(next)->first);
    if (found == number.end() || found->first.rank != thread.rank) return;
    const Span step = span_of(event, title), &whole = chosen.spans[found->second];
    constexpr double rounding = 0.002;  // microseconds; the file has three decimals
    if (step.begin < whole.begin - rounding || step.end > whole.end + rounding) return;
    MeasuredStep measured{(step.begin - first) * 1e-6, (step.end - first) * 1e-6, title, "", step.bytes, -1};
    if (event.has_argument("channel")) measured.channel = event.argument_text("channel");
    if (event.has_argument("peer")) measured.peer = static_cast<int>(event.argument_whole("peer"));
    call.ranks[found->second].steps.push_back(std::move(measured));
  });
}

}  // namespace

Result<MeasuredCall> measured_call(std::string_view trace, const TraceQuestion& question) {
  const Result<Run> run = read_calls(trace);
  if (!run.ok()) return run.status();
  const Result<Choice::Chosen> chosen = Choice(*run, question).run();
  if (!chosen.ok()) return chosen.status();
  MeasuredCall call{chosen->communicator, chosen->plan, 0, chosen->calls, {}};
  if (Status status = read_steps(trace, *run, *chosen, call); !status.ok()) return status;
  return call;
}

StepPlace place_of(const MeasuredStep& step) {
  if (step.kind == "copy" || step.kind == "reduce") return StepPlace::own;
  if (step.kind == "shm_collective") return StepPlace::node;
  const std::optional<ChannelKind> channel = channel_named(step.channel);
  return channel && !traits(*channel).crosses_nodes ? StepPlace::node : StepPlace::network;
}

std::string_view text(StepPlace place) {
  switch (place) {
    case StepPlace::network:
      return "between nodes";
    case StepPlace::node:
      return "within nodes";
    case StepPlace::own:
      return "copies and sums";
  }
  return "";
}

}  // namespace plait::tuner

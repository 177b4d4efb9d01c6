#include "runtime/recorder/recording_json.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/json.h"

namespace plait::runtime {
namespace {

using plan::step::Step;
using plan::step::Task;

constexpr double shortest_computation = 1e-6;  // seconds: waits with less between them are one
constexpr std::size_t most_tasks = 4000;       // then all waits before a call are one
constexpr double nanosecond = 1e-9;

std::string readable(const char* symbol) {
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr), std::free);
  return text != nullptr ? text.get() : symbol;
}

// "symbol+0x12", or "program+0x1234" where the symbol is not exported.
std::string name_of_site(const void* site) {
  Dl_info found{};
  if (site == nullptr || dladdr(site, &found) == 0 || found.dli_fname == nullptr) return {};
  const bool known = found.dli_sname != nullptr;
  const std::string_view path = found.dli_fname;
  const std::string base = known ? readable(found.dli_sname) : std::string(path.substr(path.rfind('/') + 1));
  const auto* begin = static_cast<const char*>(known ? found.dli_saddr : found.dli_fbase);
  std::array<char, 32> offset{};
  std::snprintf(offset.data(), offset.size(), "+0x%tx", static_cast<const char*>(site) - begin);
  return base + offset.data();
}

std::string name_of_call(std::size_t index, const CallKind& kind) {
  return std::string(plan::name(kind.collective)) + "." + std::to_string(index);
}

class StepMaker {
 public:
  StepMaker(const FoldedStep& folded, std::span<const CallKind> kinds) : folded_(folded), kinds_(kinds) {}

  void make(Step& step) {
    step_ = &step;
    for (std::size_t i = 0; i < folded_.calls.size(); ++i) add(i);
    close();
  }

 private:
  const CallKind& kind(std::size_t call) const { return kinds_[folded_.calls[call].kind]; }

  // What the next computation waits for, beside the one before.
  std::vector<std::string> pending_, pending_previous_;
  std::string program_;  // the program's last task; empty: of the step before
  double computed_ = 0;  // seconds since then

  void compute(std::string name) {
    Task task{.name = std::move(name), .seconds = std::max(computed_, nanosecond)};
    task.after = std::exchange(pending_, {});
    task.after_previous = std::exchange(pending_previous_, {});
    if (!program_.empty()) task.after.push_back(program_);
    program_ = task.name;
    computed_ = 0;
    step_->tasks.push_back(std::move(task));
  }

  // A wait that came in fewer than half of the steps is no dependency.
  bool usual(const FoldedWait& wait) const { return 2 * wait.computed.count >= folded_.times; }

  void add(std::size_t index) {
    const FoldedCall& call = folded_.calls[index];
    const auto share = [&](const Measured& measured) {  // of a step, also where it was not in each
      return nanosecond * static_cast<double>(measured.sum) / static_cast<double>(folded_.times);
    };
    std::size_t parts = 0;
    for (const FoldedWait& wait : call.waits) {
      computed_ += share(wait.computed);
      if (!is_operation(wait.call)) computed_ += share(wait.waited);
      if (!usual(wait)) continue;
      if (computed_ > shortest_computation && step_->tasks.size() < most_tasks)
        compute("before." + std::to_string(index) + "." + std::to_string(parts++));
      (wait.of_previous ? pending_previous_ : pending_).push_back(name_of_call(wait.call, kind(wait.call)));
    }
    computed_ += share(call.computed);
    compute("before." + std::to_string(index));
    operate(index, call);
  }

  std::size_t bytes_of(std::size_t call) const {
    return static_cast<std::size_t>(std::llround(folded_.calls[call].bytes.mean()));
  }

  // Others are computation: as long as the program was in the call, and waited for it.
  bool is_operation(std::size_t call) const {
    return plan::step::in_steps(kind(call).collective) && bytes_of(call) > 0;
  }

  // Operations of a communicator run in the order in which they were issued, but for persistent ones.
  bool in_order_of(std::size_t call, int communicator) const {
    return kind(call).communicator == communicator && kind(call).form != Form::persistent;
  }

  void operate(std::size_t index, const FoldedCall& call) {
    const CallKind& what = kind(index);
    const bool blocking = what.form == Form::blocking;
    Task task{.name = name_of_call(index, what)};
    task.after.push_back(program_);
    task.communicator = what.communicator;
    task.blocking = blocking;
    task.persistent = what.form == Form::persistent;
    task.site = name_of_site(what.site);
    task.type = what.type;
    task.op = what.op;
    if (is_operation(index))
      task.collective = what.collective, task.bytes = bytes_of(index);
    else
      task.seconds = std::max(nanosecond * call.inside.mean(), nanosecond);
    if (blocking) {
      const auto last = last_blocking_.find(what.communicator);
      const bool first = last == last_blocking_.end();
      for (std::size_t before = first ? 0 : last->second; before < index; ++before)
        if (in_order_of(before, what.communicator)) task.after.push_back(name_of_call(before, kind(before)));
      if (first) task.after_previous = left_of_previous(index);
      last_blocking_[what.communicator] = index;
      pending_.push_back(task.name);
    }
    step_->tasks.push_back(std::move(task));
  }

  // What the step before issued on the call's communicator behind its last call that blocks, if that is this one.
  std::vector<std::string> left_of_previous(std::size_t index) const {
    std::vector<std::string> left;
    for (std::size_t call = folded_.calls.size(); call-- > index + 1;) {
      if (!in_order_of(call, kind(index).communicator)) continue;
      if (kind(call).form == Form::blocking) break;
      left.push_back(name_of_call(call, kind(call)));
    }
    return left;
  }

  // The first task follows the last one of the step before.
  void close() {
    if (step_->tasks.empty()) return;
    Task& first = step_->tasks.front();
    first.after_previous.push_back(program_);
    for (const std::string& name : pending_) first.after_previous.push_back(name);
  }

  const FoldedStep& folded_;
  std::span<const CallKind> kinds_;
  Step* step_ = nullptr;
  std::map<int, std::size_t> last_blocking_;  // by communicator
};

Json measured_json(const Measured& measured) {
  return {{"mean", nanosecond * measured.mean()},
          {"least", measured.count > 0 ? nanosecond * static_cast<double>(measured.least) : 0},
          {"most", nanosecond * static_cast<double>(measured.most)}};
}

Json calls_json(const FoldedStep& step, std::span<const CallKind> kinds) {
  Json calls = Json::array();
  double begin = 0;  // seconds since the step's begin, on average
  for (std::size_t i = 0; i < step.calls.size(); ++i) {
    const FoldedCall& call = step.calls[i];
    const CallKind& kind = kinds[call.kind];
    for (const FoldedWait& wait : call.waits)
      begin += nanosecond * static_cast<double>(wait.computed.sum + wait.waited.sum) / static_cast<double>(step.times);
    begin += nanosecond * call.computed.mean();
    Json one = {{"name", name_of_call(i, kind)},
                {"collective", plan::name(kind.collective)},
                {"blocking", kind.form == Form::blocking},
                {"persistent", kind.form == Form::persistent},
                {"communicator", kind.communicator},
                {"type", kind.type},
                {"op", kind.op},
                {"site", name_of_site(kind.site)},
                {"bytes", {{"mean", call.bytes.mean()}, {"least", call.bytes.least}, {"most", call.bytes.most}}},
                {"submit", begin},
                {"call", measured_json(call.inside)}};
    if (kind.form != Form::blocking) {
      one["waited_for"] = call.took.count;
      one["complete"] = measured_json(call.took);
    }
    begin += nanosecond * call.inside.mean();
    calls.push_back(std::move(one));
  }
  return calls;
}

std::string_view name_of(Likeness likeness) {
  constexpr std::array<std::string_view, likeness_count> names = {"sizes and waits", "waits", "kinds"};
  return names[static_cast<std::size_t>(likeness)];
}

}  // namespace

Step step_of(const FoldedStep& folded, std::span<const CallKind> kinds, const std::string& name) {
  Step step;
  step.name = name;
  step.of = "recorded: " + std::to_string(folded.times) + " steps";
  StepMaker(folded, kinds).make(step);
  return step;
}

std::string recording_json(const Recording& recording) {
  const StepFolder& folder = *recording.folder;
  Json json = {{"plait_recording", 1}, {"program", recording.program}, {"rank", recording.world_rank}};
  json["communicators"] = Json::array();
  for (const std::vector<int>& ranks : recording.communicators)
    json["communicators"].push_back({{"ranks", ranks.size()}, {"world_ranks", ranks}});
  json["calls"] = folder.calls();
  json["calls_in_steps"] = folder.folded_calls();
  json["lost"] = recording.lost + folder.lost_waits();
  json["unwaited"] = recording.unwaited;
  json["marked"] = folder.marked();
  const FoldedStep* folded = folder.step();
  if (folded != nullptr) {
    json["steps"] = folded->times;
    json["same_by"] = name_of(folded->likeness);
    json["step_seconds"] = nanosecond * static_cast<double>(folded->ns) / static_cast<double>(folded->times);
    json["calls_of_step"] = calls_json(*folded, recording.kinds);
    const Step step = step_of(*folded, recording.kinds, recording.program);
    json["step"] = Json::parse(plan::step::step_json(step));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace plait::runtime

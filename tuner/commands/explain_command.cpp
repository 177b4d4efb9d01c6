// plait explain: the plans that one call could run by, what they are predicted to take and where the time goes, which
// of them is chosen, and why. Output: docs/tuning.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/channel_kind.h"
#include "core/file.h"
#include "core/units.h"
#include "plan/choose/breakdown.h"
#include "plan/choose/call_synthesis.h"
#include "plan/choose/device_cost.h"
#include "plan/choose/table.h"
#include "plan/choose/timeline.h"
#include "plan/model/machine_levels.h"
#include "topo/shape.h"
#include "tuner/commands/command.h"
#include "tuner/commands/explain_fused.h"
#include "tuner/commands/grid_options.h"
#include "tuner/picture/plan_picture.h"
#include "tuner/text/plan_limit.h"
#include "tuner/text/trace_comparison.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_plans = 50;
// Of the cheapest, to find so many that differ: one plan has dozens of spellings that take the same time.
constexpr int most_spellings = 1000;

// The call, as it is understood.
struct Question {
  Machine machine;
  std::optional<TuningTable> table;
  std::string shape;  // in its usual form
  CommunicatorShape communicator;
  Call call;
  std::size_t bytes = 0;
};

struct Explained {
  std::string plan;
  Breakdown breakdown;
  bool from_table = false;
  int same_time = 0;  // others whose time has the same parts
};

struct Answer {
  std::vector<Explained> plans;        // the cheapest first
  std::optional<double> host_seconds;  // measured; only where the machine was measured on this shape
  std::string choice, reason;
  PlanLimit limit;
  std::optional<DeviceCost> on_devices;  // the same call where the data are in memory of GPUs
  // Where a timeline is asked for: of the plan that the measured call ran by, else of the choice or, where that is the
  // host's, of the cheapest plan.
  std::string drawn_plan;
  std::optional<PlanTimeline> timeline;
  std::optional<MeasuredCall> measured;
  std::optional<TraceComparison> comparison;
};

std::string join_collectives() {
  std::string names;
  for (int index = 0; index < planned_collectives; ++index)
    names += (names.empty() ? "" : ", ") + std::string(name(static_cast<Collective>(index)));
  return names;
}

// Between two points the logarithm of the time is taken to be linear in that of the size.
std::optional<double> seconds_at(const std::vector<HostPoint>& curve, double bytes) {
  const auto above = std::find_if(curve.begin(), curve.end(),
                                  [&](const HostPoint& point) { return static_cast<double>(point.bytes) >= bytes; });
  if (above == curve.end()) return std::nullopt;
  if (above == curve.begin() || static_cast<double>(above->bytes) == bytes) return above->seconds;
  const HostPoint &low = *(above - 1), &high = *above;
  if (low.bytes == 0 || low.seconds <= 0 || high.seconds <= 0) return std::nullopt;
  const double share = std::log(bytes / static_cast<double>(low.bytes)) /
                       std::log(static_cast<double>(high.bytes) / static_cast<double>(low.bytes));
  return low.seconds * std::pow(high.seconds / low.seconds, share);
}

std::optional<double> host_seconds(const Question& question) {
  const auto shape = question.machine.fingerprint.find("shape");
  const auto curve = question.machine.host.find(std::string(name(question.call.collective)));
  if (shape == question.machine.fingerprint.end() || shape->second != question.shape) return std::nullopt;
  if (curve == question.machine.host.end()) return std::nullopt;
  // The curve counts a rank's whole vector.
  const bool whole = question.call.collective == Collective::reduce_scatter_block;
  const double factor = whole ? question.communicator.hierarchy.ranks() : 1;
  return seconds_at(curve->second, factor * static_cast<double>(question.bytes));
}

const TunedRange* range_of(const Question& question) {
  if (!question.table) return nullptr;
  const TunedShape* shape = question.table->shape(question.shape);
  return shape == nullptr ? nullptr : tuned_range(*shape, question.call, question.communicator.hierarchy.ranks());
}

CandidateContext context_of(const Question& question) {
  int rails = 0;
  for (const LinkLevel& level : question.machine.levels)
    if (level.network) rails = std::max(rails, level.rails);
  return {.hierarchy = question.communicator.hierarchy,
          .machine = question.machine,
          .siblings = question.communicator.siblings,
          .rails = rails};
}

std::string sizes_text(const TunedRange& range) {
  return range.from == 0 ? "" : " for " + format_bytes(range.from) + " to " + format_bytes(range.to - 1);
}

void choose(const Question& question, const TunedRange* range, Answer& answer) {
  if (range != nullptr) {
    answer.choice = range->plan;
    answer.reason = "the table has it" + sizes_text(*range);
    return;
  }
  const Explained& best = answer.plans.front();
  if (answer.host_seconds && *answer.host_seconds < best.breakdown.seconds) {
    answer.choice = host_plan;
    answer.reason = "it was measured to be faster than any plan is predicted to be";
    return;
  }
  answer.choice = best.plan;
  answer.reason = "the cheapest by the model";
  if (question.table) answer.reason += "; the table says nothing of this call";
}

// The same time out of the same parts, to a thousandth of it.
bool take_the_same(const Breakdown& a, const Breakdown& b) {
  const double little = 1e-3 * a.seconds;
  const auto near = [&](double x, double y) { return std::abs(x - y) <= little; };
  return near(a.seconds, b.seconds) && near(a.rest, b.rest) &&
         std::ranges::equal(a.shares, b.shares, [&](const TimeShare& x, const TimeShare& y) {
           return x.level == y.level && x.figure == y.figure && near(x.seconds, y.seconds);
         });
}

Explained* known_plan(const std::string& plan, Answer& answer) {
  const auto known = std::ranges::find(answer.plans, plan, &Explained::plan);
  return known == answer.plans.end() ? nullptr : &*known;
}

// A plan that the call cannot use is left out.
void add_plan(const Question& question, const std::string& plan, Answer& answer) {
  if (known_plan(plan, answer) != nullptr) return;
  Result<Breakdown> breakdown = break_down(plan, question.call, context_of(question));
  if (breakdown.ok()) answer.plans.push_back({.plan = plan, .breakdown = std::move(*breakdown)});
}

// The cheapest plans, as many as asked for, each with the number of those that differ from it in their spelling only.
void add_cheapest(const Question& question, int count, Answer& answer) {
  const CandidateContext context = context_of(question);
  for (const Candidate& candidate : candidates(question.call, context, most_spellings)) {
    Result<Breakdown> breakdown = break_down(candidate.name, question.call, context);
    if (!breakdown.ok()) continue;
    const auto same = std::ranges::find_if(
        answer.plans, [&](const Explained& other) { return take_the_same(other.breakdown, *breakdown); });
    if (same != answer.plans.end()) {
      ++same->same_time;
      continue;
    }
    if (answer.plans.size() == static_cast<std::size_t>(count)) return;
    answer.plans.push_back({.plan = candidate.name, .breakdown = std::move(*breakdown)});
  }
}

void sort_plans(Answer& answer) {
  std::ranges::stable_sort(answer.plans, {},
                           [](const Explained& one) { return order_seconds(one.plan, one.breakdown.seconds); });
}

// Fails where the machine's figures leave no plan a time.
Result<Answer> explain(const Question& question, int count) {
  Answer answer;
  add_cheapest(question, count, answer);
  const TunedRange* range = range_of(question);
  if (range != nullptr && range->plan != host_plan) {
    add_plan(question, range->plan, answer);
    if (Explained* tuned = known_plan(range->plan, answer)) tuned->from_table = true;
  }
  if (answer.plans.empty()) return Status(Code::invalid, "no plan of this collective has a time on this machine");
  sort_plans(answer);
  answer.host_seconds = host_seconds(question);
  choose(question, range, answer);
  answer.limit = plan_limit(question.call, context_of(question));
  answer.on_devices = device_cost(question.call, question.communicator.hierarchy, question.machine,
                                  answer.plans.front().breakdown.seconds);
  return answer;
}

// ---- The timeline ----

Status measure(const Question& question, const std::string& path, Answer& answer) {
  const auto text = read_file(path, longest_trace_file);
  if (!text.ok()) return {Code::invalid, "--trace " + text.status().message()};
  const int ranks = question.communicator.hierarchy.ranks();
  auto call = measured_call(*text, {.collective = question.call.collective,
                                    .bytes = payload_bytes(question.call, ranks),
                                    .ranks = ranks,
                                    .plan = answer.choice});
  if (!call.ok()) return {Code::invalid, "--trace \"" + path + "\": " + call.status().message()};
  answer.measured = std::move(*call);
  return {};
}

// Takes the trace, where one is given.
Status add_timeline(const Question& question, const std::string& trace, Answer& answer) {
  answer.drawn_plan = answer.choice == host_plan ? answer.plans.front().plan : answer.choice;
  if (!trace.empty()) {
    if (Status read = measure(question, trace, answer); !read.ok()) return read;
    answer.drawn_plan = answer.measured->plan;
    add_plan(question, answer.drawn_plan, answer);
    sort_plans(answer);
  }
  auto timeline = plan_timeline(answer.drawn_plan, question.call, context_of(question));
  const std::string which = (trace.empty() ? "" : "--trace \"" + trace + "\": ") + "plan " + answer.drawn_plan;
  if (!timeline.ok()) return {Code::invalid, which + " has no timeline on this shape: " + timeline.status().message()};
  if (timeline->chunks > most_drawn_chunks)
    return {Code::invalid, which + ": expected at most " + std::to_string(most_drawn_chunks) + " chunks to draw"};
  answer.timeline = std::move(*timeline);
  if (answer.measured) answer.comparison = compare(*answer.timeline, *answer.measured);
  return {};
}

std::string limit_text(const PlanLimit& limit) { return format_seconds(limit.seconds) + ": " + limit.because; }

std::string call_text(const Question& question) {
  const std::string sized = question.bytes > 0 ? " of " + format_bytes(question.bytes) : "";
  return std::string(name(question.call.collective)) + sized + " on " + question.shape;
}

// Precondition: add_timeline() is ok.
TimelinePicture picture(const Question& question, const Answer& answer) {
  const Hierarchy& hierarchy = question.communicator.hierarchy;
  const PlanTimeline& timeline = *answer.timeline;
  const MeasuredCall* call = answer.measured ? &*answer.measured : nullptr;
  TimelinePicture picture{call_text(question),
                          answer.drawn_plan,
                          "machine " + question.machine.name + ", " +
                              plural(static_cast<std::uint64_t>(hierarchy.ranks()), "rank") + "; predicted " +
                              format_seconds(timeline.seconds),
                          timeline_legend(timeline, call),
                          answer.limit.seconds,
                          "limit " + limit_text(answer.limit),
                          {predicted_panel(timeline, hierarchy)}};
  if (call != nullptr) {
    picture.subtitle += ", measured " + format_seconds(call->seconds);
    picture.panels.push_back(measured_panel(*call, hierarchy, std::max(call->seconds, timeline.seconds)));
  }
  if (answer.choice == host_plan) picture.subtitle += "; the choice is the host's own collective";
  return picture;
}

// ---- What is printed ----

std::string share_name(const TimeShare& share) {
  return (share.level.empty() ? "" : share.level + " ") + std::string(name(share.figure));
}

std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", whole > 0 ? 100 * part / whole : 0);
  return text;
}

// The columns that any plan has something in, in the machine's order.
std::vector<std::string> columns(const Answer& answer, const Machine& machine) {
  std::vector<std::string> possible;
  for (const LinkLevel& level : machine.levels)
    for (const Figure figure : {Figure::alpha, Figure::beta}) possible.push_back(share_name({level.name, figure, 0}));
  for (const Figure figure : {Figure::gamma, Figure::start}) possible.push_back(share_name({"", figure, 0}));
  const auto unused = [&](const std::string& column) {
    return std::none_of(answer.plans.begin(), answer.plans.end(), [&](const Explained& plan) {
      const auto& shares = plan.breakdown.shares;
      return std::any_of(shares.begin(), shares.end(), [&](const TimeShare& one) { return share_name(one) == column; });
    });
  };
  std::erase_if(possible, unused);
  return possible;
}

double seconds_of(const Breakdown& breakdown, const std::string& column) {
  double seconds = 0;
  for (const TimeShare& share : breakdown.shares)
    if (share_name(share) == column) seconds += share.seconds;
  return seconds;
}

void print(const TraceComparison& comparison, const MeasuredCall& call) {
  std::cout << "\nmeasured: " << format_seconds(comparison.measured) << ", the middle one of "
            << plural(call.calls, "such call") << " in " << call.communicator << "; predicted "
            << format_seconds(comparison.predicted) << " for its plan " << call.plan << '\n';
  std::cout << std::string(16, ' ') << padded("predicted", 11) << padded("measured", 11) << "  of which\n";
  for (const ComparedPart& part : comparison.parts) {
    std::string title = part.name;
    title.resize(16, ' ');
    std::cout << title << padded(format_seconds(part.predicted), 11) << padded(format_seconds(part.measured), 11);
    for (const ComparedPart::Kind& kind : part.kinds)
      std::cout << (&kind == &part.kinds.front() ? "  " : ", ") << kind.name << ' ' << format_seconds(kind.seconds);
    std::cout << '\n';
  }
  std::cout << "they differ most: " << comparison.parts[comparison.most].name << '\n';
}

std::string devices_text(const DeviceCost& cost) {
  const std::string cuda(plait::name(ChannelKind::cuda));
  return "data on devices: " + (cost.between_s ? "over " + cuda + " " + format_seconds(*cost.between_s) + ", " : "") +
         "by the processor's memory " + format_seconds(cost.staged_s);
}

void print(const Question& question, const Answer& answer) {
  const std::vector<std::string> shares = columns(answer, question.machine);
  const bool waits = std::any_of(answer.plans.begin(), answer.plans.end(),
                                 [](const Explained& plan) { return plan.breakdown.rest > 0; });
  std::size_t widest = 4;
  for (const Explained& plan : answer.plans) widest = std::max(widest, plan.plan.size());
  std::cout << call_text(question) << ", "
            << plural(static_cast<std::uint64_t>(question.communicator.hierarchy.ranks()), "rank") << ", machine "
            << question.machine.name << "\n\n";
  const auto left = [&](std::string text) {
    text.resize(std::max(text.size(), widest), ' ');
    return text;
  };
  const double least = answer.plans.front().breakdown.seconds;
  std::cout << left("plan") << padded("predicted", 11) << padded("loses", 8);
  for (const std::string& share : shares) std::cout << padded(share, std::max<std::size_t>(share.size() + 2, 8));
  if (waits) std::cout << "  waiting";
  std::cout << '\n';
  for (const Explained& plan : answer.plans) {
    std::cout << left(plan.plan) << padded(format_seconds(plan.breakdown.seconds), 11)
              << padded(percent(plan.breakdown.seconds - least, least), 8);
    for (const std::string& share : shares)
      std::cout << padded(percent(seconds_of(plan.breakdown, share), plan.breakdown.seconds),
                          std::max<std::size_t>(share.size() + 2, 8));
    if (waits) std::cout << padded(percent(plan.breakdown.rest, plan.breakdown.seconds), 9);
    std::cout << (plan.from_table ? "  in the table" : "")
              << (plan.same_time > 0 ? "  and " + std::to_string(plan.same_time) + " like it" : "") << '\n';
  }
  if (answer.host_seconds)
    std::cout << left("host") << padded(format_seconds(*answer.host_seconds), 11)
              << padded(percent(*answer.host_seconds - least, least), 8) << "  measured\n";
  std::cout << "\nchoice: " << answer.choice << ": " << answer.reason << "\nlimit: " << limit_text(answer.limit)
            << '\n';
  if (answer.on_devices) std::cout << devices_text(*answer.on_devices) << '\n';
  if (answer.comparison) print(*answer.comparison, *answer.measured);
}

Json to_json(const TraceComparison& comparison, const MeasuredCall& call) {
  Json parts = Json::array();
  for (const ComparedPart& part : comparison.parts) {
    Json kinds = Json::object();
    for (const ComparedPart::Kind& kind : part.kinds) kinds[kind.name] = kind.seconds;
    parts.push_back({{"part", part.name},
                     {"predicted_seconds", part.predicted},
                     {"measured_seconds", part.measured},
                     {"measured_kinds", std::move(kinds)}});
  }
  return {{"communicator", call.communicator},
          {"plan", call.plan},
          {"calls", call.calls},
          {"predicted_seconds", comparison.predicted},
          {"measured_seconds", comparison.measured},
          {"parts", std::move(parts)},
          {"differ_most", comparison.parts[comparison.most].name}};
}

Json to_json(const Question& question, const Answer& answer) {
  Json plans = Json::array();
  for (const Explained& plan : answer.plans) {
    Json shares = Json::array();
    for (const TimeShare& share : plan.breakdown.shares)
      shares.push_back({{"level", share.level.empty() ? Json(nullptr) : Json(share.level)},
                        {"figure", name(share.figure)},
                        {"seconds", share.seconds}});
    plans.push_back({{"plan", plan.plan},
                     {"seconds", plan.breakdown.seconds},
                     {"loses", plan.breakdown.seconds / answer.plans.front().breakdown.seconds - 1},
                     {"same_time", plan.same_time},
                     {"shares", std::move(shares)},
                     {"waiting_seconds", plan.breakdown.rest},
                     {"in_table", plan.from_table}});
  }
  Json json = {{"collective", name(question.call.collective)},
               {"bytes", question.bytes},
               {"shape", question.shape},
               {"machine", question.machine.name},
               {"plans", std::move(plans)},
               {"host_seconds", answer.host_seconds ? Json(*answer.host_seconds) : Json(nullptr)},
               {"choice", answer.choice},
               {"reason", answer.reason},
               {"limit_seconds", answer.limit.seconds},
               {"limit_reason", answer.limit.because}};
  if (const auto& cost = answer.on_devices)
    json["on_devices"] = {{"channel", cost->between_s ? Json(plait::name(ChannelKind::cuda)) : Json(nullptr)},
                          {"between_seconds", cost->between_s ? Json(*cost->between_s) : Json(nullptr)},
                          {"staged_seconds", cost->staged_s}};
  if (answer.comparison) json["measured"] = to_json(*answer.comparison, *answer.measured);
  return json;
}

class ExplainCommand : public Command {
 public:
  std::string_view name() const override { return "explain"; }
  std::string_view summary() const override { return "show the plans that a call could run by, and why one is chosen"; }

  void add_options(CommandLine line) override {
    line.option("collective", collective_, "such as allreduce; or fused: a run of a fused operator, in --trace")
        .required();
    line.option("size", size_,
                "such as 4M: of the vector, of one rank's part, or of one pair's message; of fused: the operator, such "
                "as embedding");
    line.option("--machine", machine_, "default, a100, v100, or a machine file (docs/p2.md)").shows_default();
    line.option("--table", table_, "a tuning table (docs/tuning.md)");
    line.option("--shape", shape_, "of the communicator: nodes, then what each is split into, such as 4x2");
    line.option("--plans", plans_, "to show").shows_default();
    line.option("--svg", svg_, "draw the predicted timeline of the chosen plan into this file");
    line.option("--trace", trace_, "a file of PLAIT_TRACE: compare such a call of a measured run with its prediction");
    line.flag("--json", json_, "print JSON");
  }

  Result<int> run() override {
    if (collective_ == "fused") return explain_fused({.plan = size_, .trace = trace_, .svg = svg_, .json = json_});
    const auto question = understand();
    if (!question.ok()) return question.status();
    auto answer = explain(*question, plans_);
    if (!answer.ok()) return answer.status();
    if (!svg_.empty() || !trace_.empty())
      if (Status added = add_timeline(*question, trace_, *answer); !added.ok()) return added;
    if (!svg_.empty())
      if (Status written = replace_file(svg_, timeline_svg(picture(*question, *answer))); !written.ok())
        return Status(written.code(), "--svg " + written.message());
    if (json_)
      std::cout << to_json(*question, *answer).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    else
      print(*question, *answer);
    return 0;
  }

 private:
  Result<Question> understand() const {
    const auto collective = collective_named(collective_);
    if (!collective || static_cast<int>(*collective) >= planned_collectives)
      return {Code::invalid, "\"" + collective_ + "\": expected one of " + join_collectives()};
    if (plans_ < 1 || plans_ > most_plans)
      return {Code::invalid, "--plans: expected 1 to " + std::to_string(most_plans)};
    if (shape_.empty()) return {Code::invalid, "--shape: expected the communicator's, such as 4x2"};
    auto shape = parse_shape(shape_);
    if (!shape.ok()) return {Code::invalid, "--shape: " + shape.status().message()};
    if (shape->hierarchy.ranks() < 2) return {Code::invalid, "--shape \"" + shape_ + "\": expected two ranks or more"};
    auto machine = load_machine(machine_);
    if (!machine.ok()) return machine.status();
    shape->hierarchy = hierarchy_on(*machine, shape->hierarchy);
    Question question{.machine = std::move(*machine),
                      .table = std::nullopt,
                      .shape = shape_text(shape->hierarchy, shape->siblings),
                      .communicator = std::move(*shape),
                      .call = {.collective = *collective}};
    if (Status sized = take_size(question); !sized.ok()) return sized;
    if (!table_.empty()) {
      auto table = read_table(table_);
      if (!table.ok()) return {Code::invalid, "--table: " + table.status().message()};
      question.table = std::move(*table);
    }
    return question;
  }

  Status take_size(Question& question) const {
    if (question.call.collective == Collective::barrier) {
      if (!size_.empty()) return {Code::invalid, "\"" + size_ + "\": a barrier has no size"};
      question.call.element_bytes = 0;
      return {};
    }
    if (size_.empty()) return {Code::invalid, "expected a size behind the collective, such as 4M"};
    const auto bytes = parse_bytes(size_);
    if (!bytes.ok()) return bytes.status();
    constexpr std::size_t largest = std::size_t{1} << 40;
    if (*bytes == 0 || *bytes > largest) return {Code::invalid, "\"" + size_ + "\": expected 1 B to 1024 GiB"};
    question.bytes = question.call.count = *bytes;
    question.call.element_bytes = 1;
    return {};
  }

  std::string collective_, size_, machine_ = "default", table_, shape_, svg_, trace_;
  int plans_ = 5;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> explain_command() { return std::make_unique<ExplainCommand>(); }

}  // namespace plait::tuner

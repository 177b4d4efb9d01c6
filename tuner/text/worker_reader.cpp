#include "tuner/text/worker_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tuner/text/trace_events.h"

namespace plait::tuner {
namespace {

constexpr std::string_view fused_prefix = "fused ";
constexpr std::size_t most_fused_named = 5;  // plans that a refusal lists

// A row of a rank; the first row of a plan has its name.
struct RowPlace {
  std::int64_t rank, number;
  auto operator<=>(const RowPlace&) const = default;
};

struct RunSpan {
  std::int64_t number;
  double begin, end;  // microseconds
};

struct Plans {
  std::map<RowPlace, std::string> names;  // of all rows that have one
  std::map<RowPlace, std::vector<RunSpan>> runs;

  bool is_first_row(const RowPlace& row) const {
    const auto found = names.find(row);
    return found != names.end() && found->second.starts_with(fused_prefix);
  }
  // The plan that a row is of.
  std::optional<RowPlace> plan_of(const RowPlace& row) const {
    for (auto next = names.upper_bound(row); next != names.begin();) {
      --next;
      if (next->first.rank != row.rank) break;
      if (is_first_row(next->first)) return next->first;
    }
    return std::nullopt;
  }
};

RowPlace place_of(const TraceEvent& event) { return {event.whole("pid"), event.whole("tid")}; }

Result<Plans> read_plans(std::string_view trace) {
  Plans plans;
  const Status status = each_event(trace, [&](const TraceEvent& event) {
    if (!event.is_fused()) return;
    const std::string kind = event.text("ph"), title = event.text("name");
    const RowPlace row = place_of(event);
    if (kind == "M" && title == "thread_name") plans.names[row] = event.argument_text("name");
    if (kind != "X" || title != "run") return;
    const double begin = event.microseconds("ts", -most_microseconds), length = event.microseconds("dur", 0);
    plans.runs[row].push_back({event.argument_whole("run"), begin, begin + length});
  });
  if (!status.ok()) return status;
  return plans;
}

std::string operator_of(const std::string& name) {
  return name.substr(fused_prefix.size(), name.find(',') - fused_prefix.size());
}

// One run on all ranks of a plan.
struct Chosen {
  std::string plan;
  std::size_t runs = 0;
  std::vector<RowPlace> rows;
  std::vector<RunSpan> spans;
};

// Of one plan the run of the middle; nothing where some rank has none.
std::optional<Chosen> middle_run(const Plans& plans, const std::string& name, const std::vector<RowPlace>& rows) {
  std::size_t common = SIZE_MAX;  // the first so many are known of all ranks
  for (const RowPlace& row : rows) {
    const auto found = plans.runs.find(row);
    common = std::min(common, found != plans.runs.end() ? found->second.size() : 0);
  }
  if (common == 0 || rows.empty()) return std::nullopt;
  std::vector<std::size_t> numbers(common);
  for (std::size_t at = 0; at < common; ++at) numbers[at] = at;
  const auto seconds = [&](std::size_t run) {
    double longest = 0;
    for (const RowPlace& row : rows)
      longest = std::max(longest, plans.runs.at(row)[run].end - plans.runs.at(row)[run].begin);
    return longest;
  };
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>((common - 1) / 2);
  std::nth_element(numbers.begin(), middle, numbers.end(),
                   [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
  Chosen chosen{name, common, rows, {}};
  for (const RowPlace& row : rows) chosen.spans.push_back(plans.runs.at(row)[*middle]);
  return chosen;
}

// Plans of one name are told apart by their order on each rank.
std::map<std::pair<std::string, int>, std::vector<RowPlace>> plans_by_name(const Plans& plans) {
  std::map<std::pair<std::string, int>, std::vector<RowPlace>> all;
  std::map<std::pair<std::string, std::int64_t>, int> of_rank;
  for (const auto& [row, name] : plans.names)
    if (name.starts_with(fused_prefix)) all[{name, of_rank[{name, row.rank}]++}].push_back(row);
  return all;
}

Result<Chosen> choose_run(const Plans& plans, std::string_view plan) {
  std::optional<Chosen> best;
  std::set<std::string> others;
  for (const auto& [name, rows] : plans_by_name(plans)) {
    if (others.size() <= most_fused_named) others.insert(operator_of(name.first));
    if (!plan.empty() && operator_of(name.first) != plan) continue;
    std::optional<Chosen> one = middle_run(plans, name.first, rows);
    if (one && (!best || one->runs > best->runs)) best = std::move(one);
  }
  if (best) return *best;
  std::string list;
  for (const std::string& other : others) list += (list.empty() ? "; it has " : ", ") + other;
  return Status(Code::invalid, "no run of a fused " + (plan.empty() ? "operator" : std::string(plan)) +
                                   (list.empty() ? "; it has none at all" : list));
}

void add_span(const TraceEvent& event, const std::string& row, double first, FusedRank& rank) {
  const double begin = event.microseconds("ts", -most_microseconds), length = event.microseconds("dur", 0);
  WorkerSpan span{(begin - first) * 1e-6, (begin + length - first) * 1e-6, event.text("name"), 0, -1};
  if (event.has_argument("bytes")) span.bytes = event.argument_bytes("bytes");
  if (event.has_argument("peer")) span.peer = static_cast<int>(event.argument_whole("peer"));
  const auto found =
      std::find_if(rank.rows.begin(), rank.rows.end(), [&](const WorkerRow& one) { return one.name == row; });
  WorkerRow& to = found != rank.rows.end() ? *found : rank.rows.emplace_back(WorkerRow{row, {}});
  to.spans.push_back(std::move(span));
}

// ---- Shares ----

using Spans = std::vector<std::pair<double, double>>;

// Apart from each other, ascending.
Spans joined(Spans spans) {
  std::sort(spans.begin(), spans.end());
  Spans apart;
  for (const auto& [begin, end] : spans)
    if (!apart.empty() && begin <= apart.back().second)
      apart.back().second = std::max(apart.back().second, end);
    else
      apart.emplace_back(begin, end);
  return apart;
}

double length_of(const Spans& spans) {
  double length = 0;
  for (const auto& [begin, end] : spans) length += end - begin;
  return length;
}

// Of two lists that are joined().
double common_length(const Spans& one, const Spans& other) {
  double length = 0;
  for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end();) {
    length += std::max(0.0, std::min(a->second, b->second) - std::max(a->first, b->first));
    if (a->second < b->second)
      ++a;
    else
      ++b;
  }
  return length;
}

}  // namespace

Result<FusedRun> fused_run(std::string_view trace, std::string_view plan) {
  const Result<Plans> plans = read_plans(trace);
  if (!plans.ok()) return plans.status();
  const Result<Chosen> chosen = choose_run(*plans, plan);
  if (!chosen.ok()) return chosen.status();
  FusedRun run{chosen->plan, 0, chosen->runs, {}};
  double first = HUGE_VAL;
  for (const RunSpan& span : chosen->spans) first = std::min(first, span.begin);
  std::map<RowPlace, std::size_t> number;
  for (std::size_t at = 0; at < chosen->rows.size(); ++at) {
    const RunSpan& span = chosen->spans[at];
    number[chosen->rows[at]] = at;
    run.ranks.push_back(
        {static_cast<int>(chosen->rows[at].rank), (span.begin - first) * 1e-6, (span.end - first) * 1e-6, {}});
    run.seconds = std::max(run.seconds, (span.end - span.begin) * 1e-6);
  }
  const Status status = each_event(trace, [&](const TraceEvent& event) {
    if (!event.is_fused() || event.text("ph") != "X" || event.text("name") == "run") return;
    const RowPlace row = place_of(event);
    const auto of = plans->plan_of(row);
    const auto found = of ? number.find(*of) : number.end();
    if (found == number.end() || event.argument_whole("run") != chosen->spans[found->second].number) return;
    const auto name = plans->names.find(row);
    add_span(event, name != plans->names.end() ? name->second : "messages", first, run.ranks[found->second]);
  });
  if (!status.ok()) return status;
  return run;
}

FusedShares shares_of(const FusedRank& rank) {
  FusedShares shares;
  Spans computing, messages;
  double all = 0;
  for (const WorkerRow& row : rank.rows) {
    if (row.name != "messages") all += rank.end - rank.begin;
    for (const WorkerSpan& span : row.spans) {
      const double length = span.end - span.begin;
      if (span.kind == "message") messages.emplace_back(span.begin, span.end);
      if (span.kind == "tile" || span.kind == "task") {
        shares.computes += length;
        computing.emplace_back(span.begin, span.end);
      }
      if (span.kind == "send") shares.tells += length;
      if (span.kind == "wait") shares.waits += length;
    }
  }
  computing = joined(std::move(computing));
  messages = joined(std::move(messages));
  shares.rest = std::max(0.0, all - shares.computes - shares.tells - shares.waits);
  shares.messages = length_of(messages);
  shares.hidden = common_length(messages, computing);
  return shares;
}

}  // namespace plait::tuner

#include "tuner/measure/measure_agenda.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plan/choose/shape_tuner.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

constexpr int most_octaves = 3;  // between two sizes

void add_once(std::string plan, std::vector<std::string>& plans) {
  if (plans.size() < most_measured_plans && std::find(plans.begin(), plans.end(), plan) == plans.end())
    plans.push_back(std::move(plan));
}

const TunedRange& range_of(const TunedRanges& tuned, std::size_t bytes) {
  const auto after =
      std::find_if(tuned.ranges.begin(), tuned.ranges.end(), [&](const TunedRange& range) { return bytes < range.to; });
  return after != tuned.ranges.end() ? *after : tuned.ranges.back();
}

AgendaItem item_of(Collective collective, std::size_t bytes, const TunedRanges& tuned,
                   const CandidateContext& context) {
  AgendaItem item{collective, bytes, {}};
  add_once(with_chunks(range_of(tuned, bytes).plan, collective), item.plans);
  const Call call{.collective = collective, .count = bytes, .element_bytes = bytes > 0 ? 1u : 0u};
  for (Candidate& candidate : candidates(call, context, most_measured_plans))
    add_once(with_chunks(std::move(candidate.name), collective), item.plans);
  return item;
}

}  // namespace

std::string with_chunks(std::string plan, Collective collective) {
  const bool told = collective == Collective::alltoall || plan.starts_with('[') || plan.find(" x") != plan.npos;
  return told ? plan : plan + " x1";
}

std::vector<std::size_t> measured_sizes(SizeSpan span) {
  std::vector<std::size_t> sizes = {span.least};
  const int first = static_cast<int>(std::bit_width(span.least)) - 1;
  const int octaves = static_cast<int>(std::bit_width(span.most)) - 1 - first;
  const int steps = (octaves + most_octaves - 1) / most_octaves;
  for (int step = 1; step < steps; ++step) sizes.push_back(std::size_t{1} << (first + step * octaves / steps));
  if (span.most > span.least) sizes.push_back(span.most);
  return sizes;
}

Result<std::vector<AgendaItem>> make_agenda(std::span<const Collective> collectives, SizeSpan span,
                                            const CandidateContext& context) {
  std::vector<AgendaItem> agenda;
  for (const Collective collective : collectives) {
    const Result<TunedRanges> tuned = tune_collective(collective, context);
    if (!tuned.ok()) return tuned.status();
    const bool sized = collective != Collective::barrier;
    for (const std::size_t bytes : sized ? measured_sizes(span) : std::vector<std::size_t>{0})
      agenda.push_back(item_of(collective, bytes, *tuned, context));
  }
  return agenda;
}

std::string agenda_text(std::span<const AgendaItem> agenda) {
  std::string text;
  for (const AgendaItem& item : agenda) {
    text += (text.empty() ? "" : "\n") + std::string(name(item.collective)) + '\t' + std::to_string(item.bytes);
    for (const std::string& plan : item.plans) text += '\t' + plan;
  }
  return text;
}

std::vector<AgendaItem> parse_agenda(std::string_view text) {
  std::vector<AgendaItem> agenda;
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> words = split(line, '\t');
    AgendaItem& item = agenda.emplace_back();
    item.collective = collective_named(words[0]).value_or(Collective::barrier);
    item.bytes = std::stoull(words[1]);
    item.plans.assign(words.begin() + 2, words.end());
  }
  return agenda;
}

}  // namespace plait::tuner

#include "tuner/picture/plan_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "core/units.h"

namespace plait::tuner {
namespace {

constexpr std::size_t most_rail_lanes = 8;
constexpr double seen = 1.0 / 2000;  // of the picture's span: shorter boxes cannot be told apart

// The same in every picture: of networks and of what lies within a node, outermost first.
constexpr std::array network_hues = {0, 3};
constexpr std::array node_hues = {1, 2, 4};

int hue_of(const PlanTimeline& timeline, int level) {
  std::size_t before = 0;  // levels of its kind
  const bool network = timeline.network[static_cast<std::size_t>(level)];
  for (int other = 0; other < level; ++other) before += timeline.network[static_cast<std::size_t>(other)] == network;
  return network ? network_hues[before % network_hues.size()] : node_hues[before % node_hues.size()];
}

// Steps of one level have one hue, and shades in their order.
std::vector<TimelineInk> inks_of(const PlanTimeline& timeline) {
  std::vector<int> used(timeline.levels.size(), 0);
  std::vector<TimelineInk> inks;
  for (const TimelineStep& step : timeline.steps)
    inks.push_back({hue_of(timeline, step.level), used[static_cast<std::size_t>(step.level)]++ % 3});
  return inks;
}

int hue_of(StepPlace place) {
  switch (place) {
    case StepPlace::network:
      return network_hues.front();
    case StepPlace::node:
      return node_hues.front();
    case StepPlace::own:
      return -1;
  }
  return -1;
}

// "AR.1" of "AR.1(rd)".
std::string short_name(const std::string& name) { return name.substr(0, name.find('(')); }

// A rail carries what two instructions give it at once in the order in which it comes.
std::vector<TimelineBox> one_after_the_other(std::vector<TimelineBox> boxes) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const TimelineBox& a, const TimelineBox& b) { return a.begin < b.begin; });
  double free = 0;
  for (TimelineBox& box : boxes) {
    const double length = box.end - box.begin;
    box.begin = std::max(box.begin, free);
    free = box.end = box.begin + length;
  }
  return boxes;
}

class Lanes {
 public:
  Lanes(const PlanTimeline& timeline, const Hierarchy& hierarchy)
      : timeline_(timeline), hierarchy_(hierarchy), inks_(inks_of(timeline)) {}

  TimelineLane of_rank(int rank) const {
    TimelineLane lane{"rank " + std::to_string(rank), {}};
    if (timeline_.start > 0) lane.boxes.push_back({0, timeline_.start, {-1, 0}, 0, "start", "start"});
    for (std::size_t step = 0; step < timeline_.steps.size(); ++step)
      if (timeline_.steps[step].takes_part[static_cast<std::size_t>(rank)])
        for (int chunk = 0; chunk < timeline_.chunks; ++chunk) add(lane, step, chunk, timeline_.steps[step].seconds);
    pack_rows(lane.boxes);
    return lane;
  }

  TimelineLane of_rail(int node, int rail) const {
    TimelineLane lane{
        "node " + std::to_string(node) + (timeline_.rails > 1 ? " rail " + std::to_string(rail) : " port"), {}};
    for (std::size_t step = 0; step < timeline_.steps.size(); ++step)
      if (timeline_.steps[step].port > 0 && uses(node, step))
        for (int chunk = 0; chunk < timeline_.chunks; ++chunk)
          if (goes_over(chunk, rail)) add(lane, step, chunk, timeline_.steps[step].port);
    double busy = 0;
    for (const TimelineBox& box : lane.boxes) busy += box.end - box.begin;
    lane.name += ", " + std::to_string(std::lround(100 * busy / timeline_.seconds)) + " %";
    if (auto in_turn = one_after_the_other(lane.boxes); in_turn.empty() || in_turn.back().end <= timeline_.seconds)
      lane.boxes = std::move(in_turn);
    pack_rows(lane.boxes);
    return lane;
  }

 private:
  void add(TimelineLane& lane, std::size_t index, int chunk, double seconds) const {
    const TimelineStep& step = timeline_.steps[index];
    const double begin = chunk * timeline_.period + step.begin;
    const std::string of_chunk = timeline_.chunks > 1 ? "chunk " + std::to_string(chunk) + ": " : "";
    lane.boxes.push_back({begin, begin + seconds, inks_[index], 0,
                          of_chunk + step.name + ", " + format_seconds(seconds), short_name(step.name)});
  }

  bool uses(int node, std::size_t step) const {
    const std::vector<int> ranks = hierarchy_.ranks_on_node(node);
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](int rank) { return timeline_.steps[step].takes_part[static_cast<std::size_t>(rank)]; });
  }

  bool goes_over(int chunk, int rail) const {
    const auto& rails = timeline_.chunk_rails;
    return rails.empty() || rails[static_cast<std::size_t>(chunk) % rails.size()] == rail;
  }

  const PlanTimeline& timeline_;
  const Hierarchy& hierarchy_;
  std::vector<TimelineInk> inks_;
};

std::string note_of(std::size_t shown, const Hierarchy& hierarchy) {
  if (static_cast<int>(shown) == hierarchy.ranks()) return "";
  std::string text =
      std::to_string(shown) + " of " + std::to_string(hierarchy.ranks()) + " ranks are shown: some of node 0";
  if (hierarchy.nodes() > 1) text += ", and the first of other nodes";
  return text + "; the others do the same as their like.";
}

std::string step_title(const MeasuredStep& step) {
  std::string title = step.kind + " of " + format_bytes(step.bytes);
  if (!step.channel.empty()) title += " over " + step.channel;
  if (step.peer >= 0) title += ", peer " + std::to_string(step.peer);
  return title + ", " + times_text(step.begin, step.end);
}

int shade_of(const MeasuredStep& step) {
  if (step.kind == "recv" || step.kind == "reduce") return 1;
  return step.kind == "recv_reduce" ? 2 : 0;
}

}  // namespace

std::vector<int> shown_ranks(const Hierarchy& hierarchy, std::size_t most) {
  std::set<int> shown;
  const auto take = [&](int rank, std::size_t until) {
    if (shown.size() < until) shown.insert(rank);
  };
  const std::vector<int> first = hierarchy.ranks_on_node(0);
  const std::size_t nodes = static_cast<std::size_t>(hierarchy.nodes());
  const std::size_t others = std::min(nodes - 1, std::max(most / 2, most - std::min(most, first.size())));
  const std::size_t of_first = most - others;
  take(first.front(), of_first);
  for (const Level& level : hierarchy.levels())
    for (const int place : level.group_first)
      if (hierarchy.node_of(hierarchy.rank_at(place)) == 0 && level.kind != LevelKind::rank)
        take(hierarchy.rank_at(place), of_first / 2);
  for (const int rank : first) take(rank, of_first);
  for (std::size_t node = 1; node <= others; ++node)
    take(hierarchy.ranks_on_node(static_cast<int>(node)).front(), most);
  // What is left, where the first node has few ranks.
  for (int rank = 0; rank < hierarchy.ranks() && shown.size() < most && hierarchy.ranks() <= static_cast<int>(most);
       ++rank)
    shown.insert(rank);
  return {shown.begin(), shown.end()};
}

TimelinePanel predicted_panel(const PlanTimeline& timeline, const Hierarchy& hierarchy) {
  const std::vector<int> shown = shown_ranks(hierarchy, most_shown_ranks);
  const Lanes lanes(timeline, hierarchy);
  TimelinePanel panel{"predicted: " + format_seconds(timeline.seconds), note_of(shown.size(), hierarchy), {}};
  std::size_t rail_lanes = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    panel.lanes.push_back(lanes.of_rank(shown[i]));
    const int node = hierarchy.node_of(shown[i]);
    const bool last = i + 1 == shown.size() || hierarchy.node_of(shown[i + 1]) != node;
    if (!last || rail_lanes + static_cast<std::size_t>(timeline.rails) > most_rail_lanes) continue;
    for (int rail = 0; rail < timeline.rails; ++rail) panel.lanes.push_back(lanes.of_rail(node, rail));
    rail_lanes += static_cast<std::size_t>(timeline.rails);
  }
  return panel;
}

TimelinePanel measured_panel(const MeasuredCall& call, const Hierarchy& hierarchy, double span) {
  const std::vector<int> shown = shown_ranks(hierarchy, most_shown_ranks);
  TimelinePanel panel{"measured: " + format_seconds(call.seconds) + " on the slowest rank", "", {}};
  panel.note = "The middle one, by its time, of " + std::to_string(call.calls) + " such calls in " + call.communicator +
               ". Steps begin when they are posted, so that receives include their waiting.";
  for (const int rank : shown) {
    const MeasuredRank& measured = call.ranks[static_cast<std::size_t>(rank)];
    TimelineLane lane{"rank " + std::to_string(measured.rank), {}};
    for (const MeasuredStep& step : measured.steps)
      lane.boxes.push_back(
          {step.begin, step.end, {hue_of(place_of(step)), shade_of(step)}, 0, step_title(step), step.kind});
    pack_rows(lane.boxes);
    merge_short(lane.boxes, seen * span);
    panel.lanes.push_back(std::move(lane));
  }
  return panel;
}

std::vector<TimelinePicture::Entry> timeline_legend(const PlanTimeline& timeline, const MeasuredCall* call) {
  std::vector<TimelinePicture::Entry> entries;
  const std::vector<TimelineInk> inks = inks_of(timeline);
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) {
    const auto level = static_cast<std::size_t>(timeline.steps[i].level);
    entries.push_back({inks[i], timeline.steps[i].name + " over " + timeline.levels[level] + "s"});
  }
  if (timeline.start > 0) entries.push_back({{-1, 0}, "start"});
  if (call == nullptr) return entries;
  std::set<std::pair<TimelineInk, std::string>> kinds;
  for (const MeasuredRank& rank : call->ranks)
    for (const MeasuredStep& step : rank.steps) {
      const std::string words = "measured " + step.kind + " " + std::string(text(place_of(step)));
      kinds.insert({{hue_of(place_of(step)), shade_of(step)}, words});
    }
  for (const auto& [ink, words] : kinds) entries.push_back({ink, words});
  return entries;
}

}  // namespace plait::tuner

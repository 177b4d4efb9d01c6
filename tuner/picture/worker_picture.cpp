#include "tuner/picture/worker_picture.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/units.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

constexpr double seen_share = 1.0 / 2000;  // of the picture's span: shorter boxes cannot be told apart

struct ActInk {
  std::string_view kind, words;
  TimelineInk ink;
};
constexpr std::array<ActInk, 5> act_inks = {{{"tile", "a tile is computed", {0, 0}},
                                             {"task", "what has come is worked on", {0, 1}},
                                             {"send", "a slice is told of", {1, 0}},
                                             {"message", "a message is under way", {1, 1}},
                                             {"wait", "nothing to do yet", {-1, 0}}}};

TimelineInk ink_of(std::string_view kind) {
  const auto found =
      std::find_if(act_inks.begin(), act_inks.end(), [&](const ActInk& one) { return one.kind == kind; });
  return found != act_inks.end() ? found->ink : TimelineInk{-1, 0};
}

std::string title_of(const WorkerSpan& span) {
  std::string title = span.kind;
  if (span.bytes > 0) title += " of " + format_bytes(span.bytes);
  if (span.peer >= 0) title += (span.kind == "tile" ? " for rank " : " to rank ") + std::to_string(span.peer);
  return title + ", " + times_text(span.begin, span.end);
}

TimelineLane lane_of(const FusedRank& rank, const WorkerRow& row, double shortest) {
  TimelineLane lane{"rank " + std::to_string(rank.rank) + " " + row.name, {}};
  for (const WorkerSpan& span : row.spans)
    lane.boxes.push_back({span.begin, span.end, ink_of(span.kind), 0, title_of(span), span.kind});
  std::stable_sort(lane.boxes.begin(), lane.boxes.end(),
                   [](const TimelineBox& a, const TimelineBox& b) { return a.begin < b.begin; });
  if (row.name == "messages") pack_rows(lane.boxes);
  merge_short(lane.boxes, shortest);
  return lane;
}

}  // namespace

TimelinePicture worker_picture(const FusedRun& run) {
  TimelinePicture picture{
      .title = run.plan,
      .plan = "",
      .subtitle = format_seconds(run.seconds) + " on the slowest rank, the middle one of " + plural(run.runs, "run"),
      .legend = {},
      .limit = 0,
      .limit_text = "",
      .panels = {}};
  for (const ActInk& one : act_inks) picture.legend.push_back({one.ink, std::string(one.words)});
  TimelinePanel panel{"a run", "", {}};
  std::size_t lanes = 0;
  for (const FusedRank& rank : run.ranks)
    for (const WorkerRow& row : rank.rows)
      if (++lanes <= most_worker_lanes) panel.lanes.push_back(lane_of(rank, row, seen_share * run.seconds));
  if (lanes > most_worker_lanes)
    panel.note = std::to_string(most_worker_lanes) + " of " + std::to_string(lanes) + " lanes are shown.";
  picture.panels.push_back(std::move(panel));
  return picture;
}

}  // namespace plait::tuner

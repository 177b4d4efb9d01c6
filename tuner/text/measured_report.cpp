#include "tuner/text/measured_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/units.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string times(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2fx", ratio);
  return text;
}

std::string share(int part, int whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", whole > 0 ? 100.0 * part / whole : 0);
  return text;
}

std::string call_name(Collective collective, std::size_t bytes) {
  return std::string(name(collective)) + (bytes > 0 ? " of " + format_bytes(bytes) : "");
}

// ---- Ranges ----

struct Against {
  double host = 0, model = 0;  // times as long as the range's plan, at its first size
};

Against compare_at(const TuneMeasurement& measured, Collective collective, const TunedRange& range) {
  for (const MeasuredSize& size : measured.sizes)
    if (size.collective == collective && (size.bytes == 0 || (size.bytes >= range.from && size.bytes < range.to)))
      return {size.host_seconds / range.seconds_from, size.plans.front().seconds / range.seconds_from};
  return {};
}

std::string range_text(const std::string& title, std::size_t widest, const TunedRange& range, const Against& against) {
  const bool sized = range.from > 0;
  return left(title, 22) + padded(sized ? format_bytes(range.from) : "", 9) +
         padded(sized ? format_bytes(range.to - 1) : "", 10) + "  " + left(range.plan, widest) +
         padded(format_seconds(range.seconds_from), 10) + padded(format_seconds(range.seconds_to), 10) +
         padded(times(against.host), 9) +
         padded(std::isfinite(against.model) ? times(against.model) : std::string("-"), 9) + '\n';
}

std::string ranges_text(const MeasuredReport& report) {
  std::size_t widest = 4;
  for (const TunedCollective& tuned : report.shape.collectives)
    for (const TunedRange& range : tuned.ranges) widest = std::max(widest, range.plan.size());
  std::string text = left("collective", 22) + padded("from", 9) + padded("to", 10) + "  " + left("plan", widest) +
                     padded("at from", 10) + padded("at to", 10) + padded("host", 9) + padded("model", 9) + '\n';
  for (const TunedCollective& tuned : report.shape.collectives)
    for (const TunedRange& range : tuned.ranges)
      text += range_text(&range == &tuned.ranges.front() ? std::string(name(tuned.collective)) : "", widest, range,
                         compare_at(report.measured, tuned.collective, range));
  return text;
}

// ---- The model ----

std::string score_text(const ModelScore& score) {
  std::string text =
      "model: at " + share(score.first, score.sizes) + " of " +
      plural(static_cast<std::uint64_t>(score.sizes), "size") +
      " its first choice was the best of its plans (within 5 % of it: " + share(score.first_nearly, score.sizes) +
      "), at " + share(score.three, score.sizes) + " one of its first three (" +
      share(score.three_nearly, score.sizes) + ")\n";
  text += "its first choice took " + times(score.mean_loss) + " as long as the best of its plans (geometric mean; " +
          times(score.usual_worst_loss) + " or less at 95 % of the sizes)";
  if (score.worst != nullptr)
    text +=
        ", at worst " + times(score.worst_loss) + " (" + call_name(score.worst->collective, score.worst->bytes) + ")";
  text += "\nthe host was faster than any plan at " + share(score.host, score.sizes) + "\n";
  return text;
}

std::string left_out_text(const std::vector<AgendaItem>& items) {
  std::string text;
  const AgendaItem* before = nullptr;
  for (const AgendaItem& item : items) {
    if (before == nullptr || before->collective != item.collective)
      text += (text.empty() ? "" : ", ") + call_name(item.collective, item.bytes) + " and more";
    before = &item;
  }
  return text.empty() ? "" : "left out, for want of time (--seconds) or as too large: " + text + "\n";
}

// ---- JSON ----

Json seconds_json(double seconds) { return std::isfinite(seconds) ? Json(seconds) : Json(nullptr); }

Json size_json(const MeasuredSize& size) {
  Json plans = Json::array();
  for (std::size_t plan = 0; plan < size.plans.size(); ++plan)
    plans.push_back({{"plan", size.plans[plan].plan},
                     {"seconds", seconds_json(size.plans[plan].seconds)},
                     {"of_model", plan < size.of_model}});
  return {{"collective", name(size.collective)},
          {"bytes", size.bytes},
          {"host_seconds", size.host_seconds},
          {"plans", std::move(plans)}};
}

Json score_json(const ModelScore& score) {
  return {{"sizes", score.sizes},
          {"first", score.first},
          {"first_within_5_percent", score.first_nearly},
          {"first_three", score.three},
          {"first_three_within_5_percent", score.three_nearly},
          {"host", score.host},
          {"mean_loss", score.mean_loss},
          {"loss_95", seconds_json(score.usual_worst_loss)},
          {"worst_loss", score.worst_loss}};
}

}  // namespace

std::string measured_text(const MeasuredReport& report) {
  return "machine " + report.machine + ", shape " + report.shape.shape + ", " +
         plural(static_cast<std::uint64_t>(report.ranks), "rank") + ", measured in " +
         format_seconds(report.elapsed_seconds) + "\n\n" + ranges_text(report) + '\n' +
         score_text(score_model(report.measured.sizes)) + left_out_text(report.measured.left_out);
}

nlohmann::ordered_json measured_json(const MeasuredReport& report) {
  Json sizes = Json::array(), left_out = Json::array();
  for (const MeasuredSize& size : report.measured.sizes) sizes.push_back(size_json(size));
  for (const AgendaItem& item : report.measured.left_out)
    left_out.push_back({{"collective", name(item.collective)}, {"bytes", item.bytes}});
  return {{"machine", report.machine},
          {"shape", report.shape.shape},
          {"ranks", report.ranks},
          {"sizes", std::move(sizes)},
          {"left_out", std::move(left_out)},
          {"model", score_json(score_model(report.measured.sizes))},
          {"elapsed_seconds", report.elapsed_seconds}};
}

}  // namespace plait::tuner

#include "tuner/picture/timeline_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <string_view>

#include "core/markup.h"
#include "core/units.h"

namespace plait::tuner {
namespace {

// Pixels.
constexpr double width = 1120, left = 140, right = 24, plot = width - left - right;
constexpr double row_height = 16, least_row_height = 4, lane_height = 26, lane_gap = 4;
constexpr double letter = 6.2;                     // of the small texts, at most
constexpr double least_gap = 0.6, seen_alone = 2;  // between boxes; a box from which on it may lose that much
constexpr std::size_t longest_line = 150;          // letters

// By hue, in shades: told apart by people who do not see red or green as well.
constexpr std::array<std::array<std::string_view, 3>, 5> colours = {{{"#1f5fa8", "#5b9bd9", "#123a6b"},
                                                                     {"#d9730d", "#f2a65a", "#9c4f05"},
                                                                     {"#2c8a6c", "#72c2a6", "#155542"},
                                                                     {"#7a4fa3", "#b08fd0", "#4b2a6b"},
                                                                     {"#a3843b", "#d2b877", "#6b5420"}}};
constexpr std::array<std::string_view, 3> greys = {"#8a8f98", "#b5b9c0", "#5c626c"};

std::string_view colour(const TimelineInk& ink) {
  const auto shade = static_cast<std::size_t>(std::max(ink.shade, 0)) % greys.size();
  return ink.hue < 0 ? greys[shade] : colours[static_cast<std::size_t>(ink.hue) % colours.size()][shade];
}

std::string class_of(const TimelineInk& ink) {
  return (ink.hue < 0 ? "g" : "h" + std::to_string(ink.hue)) + "s" + std::to_string(ink.shade);
}

// At most two decimals, and no zeros at the end.
std::string number(double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string trimmed = text.data();
  trimmed.erase(trimmed.find_last_not_of('0') + 1);
  if (trimmed.back() == '.') trimmed.pop_back();
  return trimmed == "-0" ? "0" : trimmed;
}

std::string shortened(const std::string& text, std::size_t letters) {
  if (text.size() <= letters) return text;
  std::size_t end = letters;  // not within a character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string element_text(const char* css, double x, double y, const std::string& text, const char* more = "") {
  return "<text class=\"" + std::string(css) + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + more + ">" +
         escape_markup(text) + "</text>\n";
}

int rows_of(const TimelineLane& lane) {
  int rows = 1;
  for (const TimelineBox& box : lane.boxes) rows = std::max(rows, box.row + 1);
  return rows;
}

double height_of_rows(int rows) { return rows == 1 ? row_height : std::max(least_row_height, lane_height / rows); }
double height_of(const TimelineLane& lane) { return rows_of(lane) * height_of_rows(rows_of(lane)); }

// The distance of the marks on the axis: 1, 2 or 5 times a power of ten, about eight of them.
double mark_distance(double span) {
  const double power = std::pow(10, std::floor(std::log10(span / 8)));
  for (const double times : {1.0, 2.0, 5.0})
    if (span / (times * power) <= 8) return times * power;
  return 10 * power;
}

struct Unit {
  double seconds;
  const char* name;
};
Unit unit_of(double span) {
  for (const Unit& unit : {Unit{1, "s"}, Unit{1e-3, "ms"}, Unit{1e-6, "us"}})
    if (span >= unit.seconds) return unit;
  return {1e-9, "ns"};
}

class Drawing {
 public:
  explicit Drawing(const TimelinePicture& picture) : picture_(picture) {
    for (const TimelinePanel& panel : picture.panels)
      for (const TimelineLane& lane : panel.lanes)
        for (const TimelineBox& box : lane.boxes) span_ = std::max(span_, box.end);
    span_ = std::max(span_, picture.limit) * 1.02;
    if (!(span_ > 0)) span_ = 1e-9;
  }

  std::string run() {
    heading();
    legend();
    y_ += 10;
    for (std::size_t index = 0; index < picture_.panels.size(); ++index) panel(picture_.panels[index], index);
    return head() + body_ + "</svg>\n";
  }

 private:
  double x_of(double seconds) const { return left + plot * seconds / span_; }

  std::string head() const {
    const std::string height = number(y_);
    std::string style =
        "text{font-family:system-ui,\"DejaVu Sans\",sans-serif;font-size:11px;fill:#333}"
        ".t{font-size:16px;font-weight:bold;fill:#111}.p{font-family:ui-monospace,\"DejaVu Sans Mono\",monospace;"
        "font-size:12px}.b{font-size:12px;font-weight:bold}.r{text-anchor:end}.m{text-anchor:middle}"
        ".n{fill:#666}.w{fill:#fff;font-size:10px;pointer-events:none}.k{stroke:#c4161c;stroke-width:1.5;"
        "stroke-dasharray:5 3}.kt{fill:#c4161c;font-weight:bold}.a{stroke:#ddd}.ln{fill:#f4f5f7}";
    for (const TimelineInk& ink : inks_) style += "." + class_of(ink) + "{fill:" + std::string(colour(ink)) + "}";
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
           number(width) + "\" height=\"" + height + "\" viewBox=\"0 0 " + number(width) + " " + height +
           "\">\n<title>" + escape_markup(picture_.title) + "</title>\n<style>" + style +
           "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  }

  void heading() {
    body_ += element_text("t", 16, 28, shortened(picture_.title, longest_line));
    body_ += element_text("p", 16, 48, shortened(picture_.plan, longest_line));
    body_ += element_text("n", 16, 66, picture_.subtitle);
    y_ = 78;
  }

  void legend() {
    double x = 16;
    for (const TimelinePicture::Entry& entry : picture_.legend) {
      const double wide = 18 + letter * static_cast<double>(entry.text.size()) + 18;
      if (x > 16 && x + wide > width - right) {
        x = 16;
        y_ += 18;
      }
      inks_.insert(entry.ink);
      body_ += "<rect class=\"" + class_of(entry.ink) + "\" x=\"" + number(x) + "\" y=\"" + number(y_) +
               "\" width=\"12\" height=\"12\" rx=\"2\"/>\n" + element_text("", x + 17, y_ + 10, entry.text);
      x += wide;
    }
    y_ += 18;
  }

  void panel(const TimelinePanel& panel, std::size_t index) {
    body_ += element_text("b", 16, y_ + 12, panel.title);
    y_ += index == 0 && picture_.limit > 0 ? 36 : 20;  // the limit's words stand in between
    const double top = y_;
    std::string lanes;
    for (std::size_t lane = 0; lane < panel.lanes.size(); ++lane) {
      lanes += drawn(panel, index, lane);
      y_ += height_of(panel.lanes[lane]) + lane_gap;
    }
    body_ += axis(top, y_) + lanes + limit(top, y_, index == 0);
    y_ += 24;
    if (!panel.note.empty()) {
      body_ += element_text("n", left, y_ + 12, panel.note);
      y_ += 20;
    }
    y_ += 14;
  }

  // Lanes of the same boxes are drawn once.
  std::string drawn(const TimelinePanel& panel, std::size_t panel_index, std::size_t index) {
    const TimelineLane& lane = panel.lanes[index];
    std::string text = element_text("r", left - 8, y_ + height_of(lane) / 2 + 4, shortened(lane.name, 20)) +
                       "<rect class=\"ln\" x=\"" + number(left) + "\" y=\"" + number(y_) + "\" width=\"" +
                       number(plot) + "\" height=\"" + number(height_of(lane)) + "\"/>\n";
    if (lane.boxes.empty()) return text;
    const auto id = [&](std::size_t of) { return std::to_string(panel_index) + "l" + std::to_string(of); };
    for (std::size_t before = 0; before < index; ++before)
      if (panel.lanes[before].boxes == lane.boxes)
        return text + "<use href=\"#p" + id(before) + "\" y=\"" + number(y_ - tops_[before]) + "\"/>\n";
    tops_.resize(panel.lanes.size());
    tops_[index] = y_;
    text += "<g id=\"p" + id(index) + "\">\n";
    const double high = height_of_rows(rows_of(lane));
    for (const TimelineBox& one : lane.boxes) text += box(one, y_ + one.row * high, high);
    return text + "</g>\n";
  }

  std::string box(const TimelineBox& one, double y, double high) {
    inks_.insert(one.ink);
    const double begin = x_of(one.begin), full = x_of(one.end) - begin;
    const double wide = full > seen_alone ? full - least_gap : std::max(full, 0.3);
    const double tall = high > 6 ? high - 1 : high - 0.5;
    std::string text = "<rect class=\"" + class_of(one.ink) + "\" x=\"" + number(begin) + "\" y=\"" + number(y) +
                       "\" width=\"" + number(wide) + "\" height=\"" + number(tall) + "\"";
    text += one.title.empty() ? "/>\n" : "><title>" + escape_markup(one.title) + "</title></rect>\n";
    const bool room = high >= 11 && wide > letter * static_cast<double>(one.label.size()) + 6;
    if (room && !one.label.empty()) text += element_text("w m", begin + wide / 2, y + high / 2 + 3.5, one.label);
    return text;
  }

  std::string axis(double top, double bottom) const {
    const double distance = mark_distance(span_);
    const Unit unit = unit_of(span_);
    std::string text;
    for (int mark = 0; mark * distance <= span_; ++mark) {
      const std::string x = number(x_of(mark * distance));
      text += "<path class=\"a\" d=\"M" + x + " " + number(top) + "V" + number(bottom + 4) + "\"/>\n" +
              element_text("m", x_of(mark * distance), bottom + 16, number(mark * distance / unit.seconds));
    }
    return text + element_text("r", left - 8, bottom + 16, std::string("time, ") + unit.name);
  }

  std::string limit(double top, double bottom, bool with_words) const {
    if (picture_.limit <= 0) return "";
    const double x = x_of(picture_.limit);
    std::string text = "<path class=\"k\" d=\"M" + number(x) + " " + number(with_words ? top - 16 : top - 3) + "V" +
                       number(bottom + 3) + "\"/>\n";
    if (!with_words) return text;
    const double wide = 1.15 * letter * static_cast<double>(picture_.limit_text.size());
    const bool on_the_left = x + wide + 6 > width - 8;
    return text + element_text(on_the_left ? "kt r" : "kt", on_the_left ? x - 6 : x + 6, top - 6, picture_.limit_text);
  }

  const TimelinePicture& picture_;
  double span_ = 0;  // seconds
  double y_ = 0;
  std::string body_;
  std::set<TimelineInk> inks_;
  std::vector<double> tops_;  // of the panel's lanes that were drawn
};

}  // namespace

void pack_rows(std::vector<TimelineBox>& boxes) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const TimelineBox& a, const TimelineBox& b) { return a.begin < b.begin; });
  struct Row {
    double end;
    TimelineInk ink;
  };
  std::vector<Row> rows;
  for (TimelineBox& box : boxes) {
    const double rounding = 1e-9 * box.end;
    const auto free = [&](const Row& row) { return row.end <= box.begin + rounding; };
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return free(one) && one.ink == box.ink; });
    if (row == rows.end()) row = std::find_if(rows.begin(), rows.end(), free);
    if (row == rows.end()) row = rows.insert(rows.end(), {0, box.ink});
    *row = {box.end, box.ink};
    box.row = static_cast<int>(row - rows.begin());
  }
}

std::string times_text(double begin, double end) { return format_seconds(begin) + " to " + format_seconds(end); }

void merge_short(std::vector<TimelineBox>& boxes, double shortest) {
  struct Last {
    std::size_t box = 0;
    int steps = 0;  // that it stands for; 0: it may not grow
  };
  std::vector<TimelineBox> kept;
  std::vector<Last> rows;
  for (TimelineBox& box : boxes) {
    if (rows.size() <= static_cast<std::size_t>(box.row)) rows.resize(static_cast<std::size_t>(box.row) + 1);
    Last& last = rows[static_cast<std::size_t>(box.row)];
    const bool is_short = box.end - box.begin < shortest;
    if (is_short && last.steps > 0 && kept[last.box].ink == box.ink && box.begin - kept[last.box].end < shortest) {
      TimelineBox& grown = kept[last.box];
      grown.end = std::max(grown.end, box.end);
      grown.title = std::to_string(++last.steps) + " steps, " + times_text(grown.begin, grown.end);
      continue;
    }
    last = {kept.size(), is_short ? 1 : 0};
    kept.push_back(std::move(box));
  }
  boxes = std::move(kept);
}

std::string timeline_svg(const TimelinePicture& picture) { return Drawing(picture).run(); }

}  // namespace plait::tuner

// A timeline as a picture: lanes of boxes over one time axis. Pure.
#pragma once

#include <string>
#include <vector>

namespace plait::tuner {

// A colour: a hue for each level, in shades. Hues and shades beyond those that there are begin again.
struct TimelineInk {
  int hue = 0;  // -1: grey
  int shade = 0;
  auto operator<=>(const TimelineInk&) const = default;
};

struct TimelineBox {
  double begin = 0, end = 0;  // seconds
  TimelineInk ink;
  int row = 0;        // within its lane; boxes of one row do not overlap
  std::string title;  // what a pointer that rests on it is told
  std::string label;  // within it, where there is room
  bool operator==(const TimelineBox&) const = default;
};

struct TimelineLane {
  std::string name;  // "rank 3"
  std::vector<TimelineBox> boxes;
};

struct TimelinePanel {
  std::string title, note;
  std::vector<TimelineLane> lanes;
};

struct TimelinePicture {
  std::string title, plan, subtitle;
  struct Entry {
    TimelineInk ink;
    std::string text;
  };
  std::vector<Entry> legend;
  double limit = 0;  // seconds; a line through all panels
  std::string limit_text;
  std::vector<TimelinePanel> panels;  // one below the other, over the same axis
};

// Gives each box a row: as few rows as there are boxes at once; a box stays in the row of its colour where it can.
void pack_rows(std::vector<TimelineBox>& boxes);

// "1 us to 3 us": seconds.
std::string times_text(double begin, double end);

// Boxes shorter than that, one soon after the other in a row and of one colour, become one.
void merge_short(std::vector<TimelineBox>& boxes, double shortest);

// An SVG document (XML 1.0, UTF-8) that needs nothing else. Texts are escaped.
std::string timeline_svg(const TimelinePicture& picture);

}  // namespace plait::tuner

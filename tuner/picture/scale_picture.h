// Curves over the number of nodes, or over another number that grows by factors, as a picture. Pure.
#pragma once

#include <string>
#include <vector>

namespace plait::tuner {

struct ScaleCurve {
  std::string name;
  std::vector<double> values = {};  // by number of nodes; 0 and more
};
struct ScalePanel {
  std::string title;
  std::vector<ScaleCurve> curves = {};  // the same names in every panel
};
struct ScalePicture {
  std::string title, subtitle, axis;    // what the values are
  std::string scale = "nodes";          // what the numbers below them are
  std::vector<int> nodes = {};          // ascending; the axis is logarithmic
  std::vector<std::string> marks = {};  // how they are written; none: as numbers
  std::vector<ScalePanel> panels = {};  // side by side, two a row
};

// An SVG document (XML 1.0, UTF-8) that needs nothing else. Texts are escaped.
std::string scale_svg(const ScalePicture& picture);

}  // namespace plait::tuner

#include "tuner/picture/scale_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "core/markup.h"

namespace plait::tuner {
namespace {

// Pixels.
constexpr double panel_width = 480, panel_height = 300, margin_left = 52, margin_right = 16, margin_top = 34,
                 margin_bottom = 40;
constexpr double top = 64, legend_height = 26;

// Told apart by people who do not see red or green as well, and by their dashes in print.
constexpr std::array<std::string_view, 8> colours = {"#c4161c", "#1f5fa8", "#5b9bd9", "#d9730d",
                                                     "#2c8a6c", "#72c2a6", "#7a4fa3", "#8a8f98"};
constexpr std::array<std::string_view, 4> dashes = {"none", "7 3", "2 3", "9 3 2 3"};

std::string number(double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string element_text(double x, double y, const std::string& text, const char* css, const char* anchor) {
  return "<text class=\"" + std::string(css) + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" +
         anchor + "\">" + escape_markup(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2) {
  return "<line class=\"a\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" +
         number(y2) + "\"/>\n";
}

std::string stroke_of(std::size_t curve) {
  return "stroke=\"" + std::string(colours[curve % colours.size()]) + "\" stroke-dasharray=\"" +
         std::string(dashes[curve / 2 % dashes.size()]) + "\"";
}

class PanelDrawing {
 public:
  PanelDrawing(const ScalePicture& picture, const ScalePanel& panel, double x, double y)
      : picture_(picture), panel_(panel), left_(x + margin_left), top_(y + margin_top) {
    double most = 0;
    for (const ScaleCurve& curve : panel.curves)
      for (const double value : curve.values) most = std::max(most, value);
    most_ = most > 0 ? most * 1.05 : 1;
  }

  std::string run() const {
    std::string text = element_text(left_ + wide / 2, top_ - 12, panel_.title, "b", "middle");
    for (int mark = 0; mark <= 4; ++mark) {
      const double value = most_ * mark / 4, y = y_of(value);
      text += line(left_, y, left_ + wide, y) + element_text(left_ - 6, y + 4, number(value), "n", "end");
    }
    for (std::size_t i = 0; i < picture_.nodes.size(); ++i) {
      const int nodes = picture_.nodes[i];
      const std::string mark = picture_.marks.empty() ? std::to_string(nodes) : picture_.marks[i];
      text += element_text(x_of(nodes), top_ + high + 16, mark, "n", "middle");
    }
    text += element_text(left_ + wide / 2, top_ + high + 32, picture_.scale, "n", "middle");
    for (std::size_t curve = 0; curve < panel_.curves.size(); ++curve) text += curve_of(curve);
    return text;
  }

 private:
  static constexpr double wide = panel_width - margin_left - margin_right,
                          high = panel_height - margin_top - margin_bottom;

  double x_of(int nodes) const {
    const double first = std::log2(picture_.nodes.front()), last = std::log2(picture_.nodes.back());
    return last > first ? left_ + wide * (std::log2(nodes) - first) / (last - first) : left_ + wide / 2;
  }
  double y_of(double value) const { return top_ + high * (1 - value / most_); }

  std::string curve_of(std::size_t index) const {
    const ScaleCurve& curve = panel_.curves[index];
    std::string points;
    for (std::size_t i = 0; i < curve.values.size(); ++i)
      points += number(x_of(picture_.nodes[i])) + "," + number(y_of(curve.values[i])) + " ";
    return "<polyline class=\"c\" points=\"" + points + "\" " + stroke_of(index) + "><title>" +
           escape_markup(curve.name) + "</title></polyline>\n";
  }

  const ScalePicture& picture_;
  const ScalePanel& panel_;
  double left_, top_, most_ = 1;
};

std::string legend(const ScalePanel& panel, double width, double& y) {
  std::string text;
  double x = 16;
  for (std::size_t curve = 0; curve < panel.curves.size(); ++curve) {
    const double wide = 48 + 6.6 * static_cast<double>(panel.curves[curve].name.size());
    if (x > 16 && x + wide > width) {
      x = 16;
      y += 18;
    }
    text += "<line class=\"c\" x1=\"" + number(x) + "\" y1=\"" + number(y) + "\" x2=\"" + number(x + 28) + "\" y2=\"" +
            number(y) + "\" " + stroke_of(curve) + "/>\n" +
            element_text(x + 34, y + 4, panel.curves[curve].name, "l", "start");
    x += wide;
  }
  y += legend_height;
  return text;
}

}  // namespace

std::string scale_svg(const ScalePicture& picture) {
  const std::size_t columns = picture.panels.size() > 1 ? 2 : 1;
  const double width = panel_width * static_cast<double>(columns);
  double y = top + 10;
  std::string body = element_text(16, 28, picture.title, "t", "start") +
                     element_text(16, 46, picture.subtitle, "n", "start") +
                     element_text(16, 60, picture.axis, "n", "start");
  if (!picture.panels.empty()) body += legend(picture.panels.front(), width, y);
  for (std::size_t i = 0; i < picture.panels.size(); ++i) {
    const double x = panel_width * static_cast<double>(i % columns);
    body += PanelDrawing(picture, picture.panels[i], x, y).run();
    if (i % columns + 1 == columns || i + 1 == picture.panels.size()) y += panel_height;
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
         number(width) + "\" height=\"" + number(y + 8) + "\" viewBox=\"0 0 " + number(width) + " " + number(y + 8) +
         "\">\n<title>" + escape_markup(picture.title) +
         "</title>\n<style>text{font-family:system-ui,\"DejaVu Sans\",sans-serif;font-size:11px;fill:#333}"
         ".t{font-size:16px;font-weight:bold;fill:#111}.b{font-size:12px;font-weight:bold}.n{fill:#666}"
         ".a{stroke:#ddd}.c{fill:none;stroke-width:2}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
         body + "</svg>\n";
}

}  // namespace plait::tuner

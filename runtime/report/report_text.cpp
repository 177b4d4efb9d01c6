#include <algorithm>
#include <array>
#include <cstdio>

#include "core/units.h"
#include "runtime/report/report_content.h"

namespace plait::runtime {
namespace {

using Cells = std::vector<std::string>;

std::string seconds(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.6f", value);
  return text.data();
}

Cells cells(const ReportContent::Row& row) {
  return {row.collective,
          std::to_string(row.ranks),
          row.sizes,
          std::to_string(row.calls),
          format_bytes(row.bytes),
          seconds(row.seconds),
          row.channels.empty() ? row.plan : row.plan + " over " + row.channels,
          row.reason};
}

Cells cells(const ReportContent::Total& total) {
  return {"total",
          "",
          "",
          std::to_string(total.calls),
          format_bytes(total.bytes),
          seconds(total.seconds),
          std::to_string(total.accelerated) + " accelerated",
          ""};
}

std::string aligned(const std::vector<Cells>& lines) {
  std::vector<std::size_t> widths;
  for (const Cells& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    std::string row = "plait: ";
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - line[i].size(), ' ');
      const bool number = i >= 1 && i <= 5;  // numbers stand to the right
      row += (number ? padding + line[i] : line[i] + padding) + "  ";
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace

std::string report_text(const ReportContent& content) {
  std::vector<Cells> lines;
  lines.push_back({"collective", "ranks", "size", "calls", "bytes", "seconds", "plan", "to the host because"});
  for (const ReportContent::Row& row : content.rows) lines.push_back(cells(row));
  lines.push_back(cells(content.total));
  std::string text = aligned(lines);
  for (const std::string& fact : content.facts) text += "plait: " + fact + "\n";
  for (const std::string& advice : content.advice) text += "plait: " + advice + "\n";
  return text;
}

}  // namespace plait::runtime

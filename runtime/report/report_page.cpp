#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "core/markup.h"
#include "core/units.h"
#include "runtime/report/report_content.h"

namespace plait::runtime {
namespace {

constexpr const char* style =
    ":root{color-scheme:light dark;--text:#1c2127;--soft:#5c6670;--line:#d9dde2;--page:#fff;--band:#f4f6f8;"
    "--plait:#1f5fa8;--host:#d9730d}"
    "@media(prefers-color-scheme:dark){:root{--text:#e6e9ec;--soft:#a3adb8;--line:#39424c;--page:#15191e;"
    "--band:#1e242b;--plait:#6aa7e8;--host:#f0a35c}}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--page);max-width:76rem;"
    "margin:2rem auto;padding:0 1rem}h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}"
    ".soft{color:var(--soft)}.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}"
    "th,td{padding:.3rem .6rem;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    "td.plan{font-family:ui-monospace,monospace;font-size:.85rem}tr.total td{font-weight:600}"
    "tbody tr:hover{background:var(--band)}td.bar{width:45%;min-width:12rem}.track{display:flex;height:.95rem;"
    "background:var(--band)}.track i{display:block;height:100%}.plait{background:var(--plait)}"
    ".host{background:var(--host)}.key i{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 .9rem}"
    ".advice li{border-left:3px solid var(--host);padding-left:.6rem;list-style:none;margin:.3rem 0}"
    "ul{padding-left:1.2rem}.advice{padding:0}";

std::string element(const std::string& name, const std::string& text) {
  return "<" + name + ">" + escape_markup(text) + "</" + name.substr(0, name.find(' ')) + ">";
}

std::string number_cell(const std::string& text) { return element("td class=\"n\"", text); }
std::string number_cell(std::uint64_t value) { return number_cell(std::to_string(value)); }

std::string decimal(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string seconds(double value) { return decimal("%.6f", value); }

std::string heading(std::initializer_list<std::pair<const char*, bool>> columns) {
  std::string text = "<div class=\"wide\"><table><thead><tr>";
  for (const auto& [name, number] : columns) text += element(number ? "th class=\"n\"" : "th", name);
  return text + "</tr></thead>\n<tbody>\n";
}

constexpr const char* table_end = "</tbody></table></div>\n";

// A part of a bar, of a whole that is as long as the longest bar.
std::string part(const char* kind, double value, double longest, const std::string& title) {
  if (value <= 0 || longest <= 0) return "";
  return "<i class=\"" + std::string(kind) + "\" style=\"width:" + decimal("%.2f", 100 * value / longest) +
         "%\" title=\"" + escape_markup(title) + "\"></i>";
}

std::string bar(const std::string& parts) { return "<td class=\"bar\"><div class=\"track\">" + parts + "</div></td>"; }

// ---- The sections

struct Times {
  double plait = 0, host = 0;  // seconds
  std::uint64_t calls = 0, by_host = 0;
};

std::string times_section(const ReportContent& content) {
  std::map<std::string, Times> by_name;
  double longest = 0;
  for (const ReportContent::Row& row : content.rows) {
    Times& times = by_name[row.collective];
    (row.by_host() ? times.host : times.plait) += row.seconds;
    times.calls += row.calls;
    times.by_host += row.by_host() ? row.calls : 0;
    longest = std::max(longest, times.plait + times.host);
  }
  std::vector<std::pair<std::string, Times>> order(by_name.begin(), by_name.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.plait + a.second.host > b.second.plait + b.second.host;
  });
  std::string text =
      "<h2>Time by collective</h2>\n<p class=\"key soft\"><i class=\"plait\"></i>accelerated<i class=\"host\"></i>by "
      "the "
      "host</p>\n" +
      heading({{"collective", false}, {"", false}, {"seconds", true}, {"calls", true}, {"of which the host's", true}});
  for (const auto& [name, times] : order)
    text += "<tr>" + element("td", name) +
            bar(part("plait", times.plait, longest, seconds(times.plait) + " s accelerated") +
                part("host", times.host, longest, seconds(times.host) + " s by the host")) +
            number_cell(seconds(times.plait + times.host)) + number_cell(times.calls) + number_cell(times.by_host) +
            "</tr>\n";
  return text + table_end;
}

std::string rails_section(const ReportContent& content) {
  if (content.rails.empty()) return "";
  std::uint64_t most = 0;
  for (const ReportContent::Rail& rail : content.rails) most = std::max(most, rail.bytes);
  std::string text = "<h2>Bytes by rail</h2>\n" + heading({{"rail", false}, {"", false}, {"bytes", true}});
  for (const ReportContent::Rail& rail : content.rails)
    text += "<tr>" + element("td", rail.name) +
            bar(part("plait", static_cast<double>(rail.bytes), static_cast<double>(most), format_bytes(rail.bytes))) +
            number_cell(format_bytes(rail.bytes)) + "</tr>\n";
  return text + table_end;
}

std::string host_section(const ReportContent& content) {
  std::map<std::string, Times> by_reason;
  for (const ReportContent::Row& row : content.rows)
    if (row.by_host()) {
      Times& times = by_reason[row.reason.empty() ? "no reason was noted" : row.reason];
      times.host += row.seconds;
      times.calls += row.calls;
    }
  if (by_reason.empty()) return "";
  std::string text = "<h2>Left to the host</h2>\n" + heading({{"because", false}, {"calls", true}, {"seconds", true}});
  for (const auto& [reason, times] : by_reason)
    text += "<tr>" + element("td", reason) + number_cell(times.calls) + number_cell(seconds(times.host)) + "</tr>\n";
  return text + table_end;
}

std::string rows_section(const ReportContent& content) {
  std::string text = "<h2>All calls</h2>\n" + heading({{"collective", false},
                                                       {"ranks", true},
                                                       {"size", true},
                                                       {"calls", true},
                                                       {"bytes", true},
                                                       {"seconds", true},
                                                       {"plan", false},
                                                       {"over", false},
                                                       {"to the host because", false}});
  for (const ReportContent::Row& row : content.rows)
    text += "<tr>" + element("td", row.collective) + number_cell(static_cast<std::uint64_t>(row.ranks)) +
            number_cell(row.sizes) + number_cell(row.calls) + number_cell(format_bytes(row.bytes)) +
            number_cell(seconds(row.seconds)) + element("td class=\"plan\"", row.plan) + element("td", row.channels) +
            element("td", row.reason) + "</tr>\n";
  const ReportContent::Total& total = content.total;
  return text + "<tr class=\"total\"><td>total</td><td></td><td></td>" + number_cell(total.calls) +
         number_cell(format_bytes(total.bytes)) + number_cell(seconds(total.seconds)) + "<td colspan=\"3\">" +
         std::to_string(total.accelerated) + " accelerated</td></tr>\n" + table_end;
}

std::string list_section(const char* title, const char* kind, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return "";
  std::string text = "<h2>" + std::string(title) + "</h2>\n<ul class=\"" + kind + "\">\n";
  for (const std::string& sentence : sentences) text += element("li", sentence) + "\n";
  return text + "</ul>\n";
}

std::string summary(const ReportContent& content) {
  const ReportContent::Total& total = content.total;
  return std::to_string(content.ranks) + " ranks; " + std::to_string(total.accelerated) + " of " +
         std::to_string(total.calls) + " calls accelerated; " + format_seconds(total.seconds) +
         " in collectives, mean over the ranks";
}

}  // namespace

std::string report_page(const ReportContent& content) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Plait "
         "report</title>\n<style>" +
         std::string(style) + "</style>\n</head>\n<body>\n<h1>Plait report</h1>\n" +
         element("p class=\"soft\"", summary(content)) + "\n" + list_section("Advice", "advice", content.advice) +
         times_section(content) + rails_section(content) + host_section(content) + rows_section(content) +
         list_section("Facts", "facts", content.facts) + element("p class=\"soft\"", "Plait " + content.version) +
         "\n</body>\n</html>\n";
}

}  // namespace plait::runtime

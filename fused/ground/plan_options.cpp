#include "fused/ground/plan_options.h"

#include <algorithm>
#include <charconv>

namespace plait::fused {
namespace {

constexpr std::int64_t most_workers = 1024, most_slice = std::int64_t{1} << 30;

Status read_count(const std::string& word, std::string_view text, const Bounds& expected, std::int64_t& value) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && rest == text.data() + text.size() && value >= expected.least &&
      value <= expected.greatest)
    return {};
  return bad_argument("options", "\"" + word + "\": expected a number from " + std::to_string(expected.least) + " to " +
                                     std::to_string(expected.greatest));
}

Status read_word(const std::string& word, HasChecks has_checks, PlanOptions& options) {
  const std::size_t equals = word.find('=');
  const std::string_view key = std::string_view(word).substr(0, equals);
  const std::string_view text = equals == std::string::npos ? "" : std::string_view(word).substr(equals + 1);
  std::int64_t value = 0;
  if (key == "workers") {
    if (Status status = read_count(word, text, {0, most_workers}, value); !status.ok()) return status;
    options.workers = static_cast<int>(value);
  } else if (key == "slice") {
    if (Status status = read_count(word, text, {0, most_slice}, value); !status.ok()) return status;
    options.slice_bytes = static_cast<std::size_t>(value);
  } else if (key == "check" && has_checks == HasChecks::yes) {
    if (Status status = read_count(word, text, {0, 1}, value); !status.ok()) return status;
    options.checks = value != 0;
  } else if (key == "order" && (text == "aware" || text == "plain")) {
    options.aware = text == "aware";
  } else {
    const std::string check = has_checks == HasChecks::yes ? "check=, " : "";
    return bad_argument("options",
                        "\"" + word + "\": expected workers=, slice=, " + check + "order=aware or order=plain");
  }
  return {};
}

}  // namespace

Status bad_argument(std::string_view argument, const std::string& what) {
  return {Code::invalid, std::string(argument) + ": " + what};
}

Status check_within(std::string_view argument, std::int64_t value, const Bounds& expected) {
  if (value >= expected.least && value <= expected.greatest) return {};
  return bad_argument(argument, std::to_string(value) + ": expected " + std::to_string(expected.least) + " to " +
                                    std::to_string(expected.greatest));
}

Result<PlanOptions> parse_plan_options(const std::string& text, HasChecks has_checks) {
  PlanOptions options;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" ,", at), text.size());
    if (end > at)
      if (Status status = read_word(text.substr(at, end - at), has_checks, options); !status.ok()) return status;
    at = end + 1;
  }
  return options;
}

}  // namespace plait::fused

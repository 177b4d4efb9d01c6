#include "core/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

// Numbers are read with from_chars and written with to_chars: the locale belongs to the program
// around us, and a decimal comma must not change what a knob means.

namespace plait {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

struct Suffix {
  std::string_view text;
  double scale;
};

constexpr std::string_view bytes_expected = "expected a whole number with an optional K, M, G or T, such as 64KiB";
constexpr std::string_view bytes_too_large = "larger than this machine can address";
constexpr std::string_view rate_expected = "expected a positive rate, such as 250mbit, 1gbit or 31MB (bytes a second)";

Status refused(std::string_view text, std::string_view reason) {
  std::string message = "\"";
  message.append(text).append("\": ").append(reason);
  return {Code::invalid, std::move(message)};
}

// The shift of a binary suffix ("", "b", "k", "kb", "kib", ...; lower case), or -1.
int binary_shift(std::string_view suffix) {
  if (suffix.empty() || suffix == "b") return 0;
  const std::size_t prefix = std::string_view("kmgt").find(suffix[0]);
  const std::string_view rest = suffix.substr(1);
  if (prefix == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) return -1;
  return static_cast<int>(prefix + 1) * 10;
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer;  // the longest double has 309 digits before the point
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return {buffer.data(), end.ptr};
}

// Three significant digits for 1 <= value < 1000.
std::string three_digits(double value) { return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0); }

}  // namespace

Result<std::size_t> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return refused(text, bytes_too_large);
  if (error != std::errc()) return refused(text, bytes_expected);
  std::string suffix = lower({rest, static_cast<std::size_t>(end - rest)});
  if (suffix.size() > 1 && suffix[0] == ' ') suffix.erase(0, 1);  // as format_bytes writes it
  const int shift = binary_shift(suffix);
  if (shift < 0) return refused(text, bytes_expected);
  if (number > (std::numeric_limits<std::size_t>::max() >> shift)) return refused(text, bytes_too_large);
  return static_cast<std::size_t>(number) << shift;
}

Result<double> parse_rate(std::string_view text) {
  static constexpr std::array<Suffix, 15> suffixes = {{
      {"", 1},
      {"b", 1},
      {"kb", 1e3},
      {"mb", 1e6},
      {"gb", 1e9},
      {"tb", 1e12},
      {"kib", 0x1p10},
      {"mib", 0x1p20},
      {"gib", 0x1p30},
      {"tib", 0x1p40},
      {"bit", 1.0 / 8},
      {"kbit", 1e3 / 8},
      {"mbit", 1e6 / 8},
      {"gbit", 1e9 / 8},
      {"tbit", 1e12 / 8},
  }};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return refused(text, rate_expected);
  const std::string suffix = lower({rest, static_cast<std::size_t>(end - rest)});
  for (const Suffix& known : suffixes) {
    if (suffix != known.text) continue;
    const double rate = number * known.scale;
    if (std::isfinite(rate) && rate > 0) return rate;
  }
  return refused(text, rate_expected);
}

std::string format_bytes(std::size_t bytes) {
  static constexpr std::array<std::string_view, 7> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 and more would be rounded to 1024.0, which is 1 of the next unit. Bytes are whole.
  while (value >= (unit == 0 ? 1024 : 1023.95) && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  std::string number = fixed(value, 1);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number + " " + std::string(units[unit]);
}

std::string format_seconds(double seconds) {
  static constexpr std::array<Suffix, 4> units = {{{" ns", 1e9}, {" us", 1e6}, {" ms", 1e3}, {" s", 1}}};
  if (seconds == 0) return "0 s";
  if (!std::isfinite(seconds)) return std::isnan(seconds) ? "nan s" : seconds < 0 ? "-inf s" : "inf s";
  if (seconds < 0) return std::string("-").append(format_seconds(-seconds));
  for (const Suffix& unit : units) {
    const double value = seconds * unit.scale;
    // 999.5 and more would be rounded to 1000, which is 1.00 of the next unit.
    if (value < 999.5 || unit.scale == 1) return three_digits(value) + std::string(unit.text);
  }
  return {};  // not reached: the last unit always returns
}

}  // namespace plait

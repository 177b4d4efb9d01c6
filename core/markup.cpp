#include "core/markup.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace plait {
namespace {

// The length of the character that the text begins with; 0 where it is none, or none that XML allows.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> shortest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000, no_character = code == 0xfffe || code == 0xffff;
  return code < shortest[length] || code > 0x10ffff || surrogate || no_character ? 0 : length;
}

std::string_view reference(char one) {
  switch (one) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = character(text);
    const std::string_view special = reference(text.front());
    escaped += length == 0 ? "?" : special.empty() ? text.substr(0, length) : special;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return escaped;
}

}  // namespace plait

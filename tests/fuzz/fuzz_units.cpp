// Sizes and rates.
#include <cmath>

#include "core/units.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto bytes = parse_bytes(text); bytes.ok())
    fuzz::require(!format_bytes(*bytes).empty(), "a size has a text");
  if (const auto rate = parse_rate(text); rate.ok()) {
    fuzz::require(std::isfinite(*rate) && *rate >= 0, "a rate is finite and not negative");
  }
  return 0;
}

// Quantities as people write them. Bytes are std::size_t, seconds and bytes per second are double.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/status.h"

namespace plait {

// "8", "1K", "64KiB", "1M", "2G" (powers of 1024; suffix letters in either case) to bytes.
Result<std::size_t> parse_bytes(std::string_view text);

// "250mbit", "1gbit", "100kbit" (decimal bits a second, as tc reads them), "31250000" or "31MB"
// (bytes a second) to bytes a second.
Result<double> parse_rate(std::string_view text);

// 1048576 -> "1 MiB", 100 -> "100 B", 1536 -> "1.5 KiB".
std::string format_bytes(std::size_t bytes);
// 0.00005 -> "50.0 us".
std::string format_seconds(double seconds);

}  // namespace plait

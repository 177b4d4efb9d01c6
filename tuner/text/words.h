// Lists in, numbers and columns out: what all commands write alike. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait::tuner {

// The parts of a list, empty ones too: one at least.
std::vector<std::string> split(std::string_view list, char separator);

std::string listed(const std::vector<int>& numbers);             // "4 16"
std::string text(const std::vector<int>& numbers);               // "[4 16]"
std::string grouped(std::uint64_t number);                       // 4731279 -> "4,731,279"
std::string plural(std::uint64_t count, std::string_view noun);  // "1 program", "47 programs"
std::string padded(std::string text, std::size_t width);         // spaces in front

}  // namespace plait::tuner

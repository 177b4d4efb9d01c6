// Elements of rows drawn from a seed, and what they are in double precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

#include "fused/kernels/pooling.h"

namespace plait::fused {

using Random = std::mt19937_64;

inline std::int64_t draw(Random& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
}

inline float draw_float(Random& random) { return static_cast<float>(draw(random, -1'000'000, 1'000'000)) * 1.3e-6f; }

inline void put_element(RowType type, Random& random, std::byte* to) {
  const float value = draw_float(random);
  if (type == RowType::f32) {
    std::memcpy(to, &value, sizeof value);
  } else if (type == RowType::bf16) {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    const auto half = static_cast<std::uint16_t>(word >> 16);
    std::memcpy(to, &half, sizeof half);
  } else {
    *to = static_cast<std::byte>(draw(random, -128, 127));
  }
}

inline double element_at(RowType type, const std::byte* from) {
  if (type == RowType::i8) return static_cast<double>(static_cast<std::int8_t>(*from));
  std::uint32_t word = 0;
  if (type == RowType::f32) {
    std::memcpy(&word, from, sizeof word);
  } else {
    std::uint16_t half;
    std::memcpy(&half, from, sizeof half);
    word = std::uint32_t{half} << 16;
  }
  float value;
  std::memcpy(&value, &word, sizeof value);
  return static_cast<double>(value);
}

}  // namespace plait::fused

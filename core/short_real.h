// Reals of 16 bits, as bits: f16 (IEEE's half) and bf16 (the upper half of an f32). What is computed with them is
// computed in f32 and rounded to the nearest, ties to even: one sum or product is the correctly rounded one.
#pragma once

#include <bit>
#include <cstdint>

namespace plait {

struct F16 {
  static float value(std::uint16_t bits);
  static std::uint16_t rounded(float value);
};

struct Bf16 {
  static float value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static std::uint16_t rounded(float value);
};

namespace detail {

inline constexpr std::uint32_t sign_32 = 0x8000'0000, infinity_32 = 0x7f80'0000;
inline constexpr int f16_shift = 13;  // of a fraction, from f16 to f32
// The smallest normal f16, and what is one of those of its last place: added to a smaller number it rounds there.
inline constexpr std::uint32_t least_f16 = (127 - 14) << 23, rounds_small_f16 = (127 - 1) << 23;
inline constexpr std::uint32_t beyond_f16 = (127 + 16) << 23;  // 65536
inline constexpr std::uint32_t bias_f16 = (127 - 15) << 23;
inline constexpr std::uint16_t infinity_f16 = 0x7c00, quiet_f16 = 0x0200, quiet_bf16 = 0x0040;

}  // namespace detail

inline float F16::value(std::uint16_t bits) {
  using namespace detail;
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << f16_shift;
  if (magnitude >= std::uint32_t{infinity_f16} << f16_shift)
    return std::bit_cast<float>(sign | magnitude | infinity_32);
  if (magnitude >= 1u << 23) return std::bit_cast<float>(sign | (magnitude + bias_f16));
  const float small = std::bit_cast<float>(magnitude + least_f16) - std::bit_cast<float>(least_f16);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
}

inline std::uint16_t F16::rounded(float value) {
  using namespace detail;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & sign_32) >> 16, magnitude = bits & ~sign_32;
  const auto with_sign = [&](std::uint32_t rest) { return static_cast<std::uint16_t>(sign | rest); };
  if (magnitude > infinity_32) return with_sign(infinity_f16 | quiet_f16 | (magnitude >> f16_shift & 0x3ff));
  if (magnitude >= beyond_f16) return with_sign(infinity_f16);
  if (magnitude < least_f16) {
    const float moved = std::bit_cast<float>(magnitude) + std::bit_cast<float>(rounds_small_f16);
    return with_sign(std::bit_cast<std::uint32_t>(moved) - rounds_small_f16);
  }
  const std::uint32_t odd = magnitude >> f16_shift & 1;
  return with_sign((magnitude - bias_f16 + 0xfff + odd) >> f16_shift);
}

inline std::uint16_t Bf16::rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & ~detail::sign_32) > detail::infinity_32)
    return static_cast<std::uint16_t>(bits >> 16 | detail::quiet_bf16);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace plait

// The smaller collectives that a program is made of: each over all groups of ranks that agree on the coordinates
// outside a range of levels (Xie et al., MLSys 2022, section 3).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace plait::plan {

inline constexpr int most_levels = 8;

// The first five are P²'s; gather and scatter are ours, for the rooted collectives and for leaders.
enum class Instruct : std::uint8_t { all_reduce, reduce_scatter, all_gather, reduce, broadcast, gather, scatter };
inline constexpr int p2_instructs = 5;
inline constexpr int all_instructs = 7;

inline constexpr std::array<std::string_view, all_instructs> instruct_names = {"AR", "RS", "AG", "RD",
                                                                               "BC", "GA", "SC"};
inline std::string_view name(Instruct what) { return instruct_names[static_cast<std::size_t>(what)]; }

inline bool reduces(Instruct what) {
  return what == Instruct::all_reduce || what == Instruct::reduce_scatter || what == Instruct::reduce;
}

}  // namespace plait::plan

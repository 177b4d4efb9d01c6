// The tags of UCX's messages: the communicator, the sender's rank in it, and what the message is.
#pragma once

#include <cstdint>

namespace plait::tl {

inline constexpr int binding_bits = 8, rank_bits = 12;

// A message of a schedule has 0 where it is bound to no rail, else the rail + 1. What else there is:
inline constexpr std::uint64_t farewell_binding = 0xfe;      // farewell.h
inline constexpr std::uint64_t introduction_binding = 0xff;  // rail_worker.h

constexpr std::uint64_t message_tag(std::uint64_t communicator, int sender, std::uint64_t binding) {
  return communicator << (rank_bits + binding_bits) | static_cast<std::uint64_t>(sender) << binding_bits | binding;
}

inline constexpr std::uint64_t whole_tag = ~std::uint64_t{0};
inline constexpr std::uint64_t any_sender = ~(((std::uint64_t{1} << rank_bits) - 1) << binding_bits);

}  // namespace plait::tl

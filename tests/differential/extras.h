// What one call at a time cannot show.
#pragma once

#include <cstdint>
#include <string>

namespace plait::test {

// Sums of doubles that are rounded: the same bits on all ranks, in a second call and on another communicator; and close
// to the host's. Returns what is wrong on this rank, or nothing; `bits` becomes a checksum of all results.
std::string check_same_answer(std::uint64_t seed, std::uint64_t& bits);

// Calls on an inter-communicator go to the host.
std::string check_inter_communicator();

// A communicator is set up, used and freed, over and over.
std::string check_many_communicators();

}  // namespace plait::test

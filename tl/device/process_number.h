// A name for this process that no other one of the machine has or had, whatever they call each other.
#pragma once

#include <cstdint>

namespace plait::tl {

// Thread-safe; another one in a child of fork().
std::uint64_t process_number();

}  // namespace plait::tl

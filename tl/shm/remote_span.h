// A part of a message, by its address in its process.
#pragma once

#include <cstdint>

namespace plait::tl::detail {

struct RemoteSpan {
  std::uint64_t address;
  std::uint64_t bytes;
};

}  // namespace plait::tl::detail

// What a rank gives to, or gets from, one other rank in a collective whose messages have lengths of their own.
#pragma once

#include <cstddef>

#include "runtime/execution/layout.h"
#include "runtime/layer.h"

namespace plait::tl {
class DeviceDriver;
}

namespace plait::runtime {

struct Piece {
  std::byte* address = nullptr;
  std::size_t count = 0;  // elements of `type`
  const Layout* type = nullptr;
  std::size_t bytes = 0;                     // packed
  const tl::DeviceDriver* device = nullptr;  // as of a Region
};

}  // namespace plait::runtime

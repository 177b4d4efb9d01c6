// Elements between their place in memory and the form in which data travels.
#pragma once

#include <cstddef>

#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::runtime {

// `count` elements of one layout at `address`: copied where they are gapless, else by the caller, in pieces that it can
// take. Both return a code of the caller's, and may throw std::bad_alloc.
int pack_elements(const std::byte* address, std::size_t count, const Layout& layout, std::byte* packed);
int unpack_elements(std::byte* address, std::size_t count, const Layout& layout, const std::byte* packed);

}  // namespace plait::runtime

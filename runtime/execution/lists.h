// The lists of a collective call, and what else it keeps its memory in.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/execution/piece.h"
#include "runtime/execution/user_operator.h"
#include "runtime/layer.h"

namespace plait::runtime {

// In bytes; kept from call to call so that they keep their memory. A caller may keep more with them.
struct Lists {
  std::vector<std::size_t> counts, displacements;
  std::vector<Piece> sends, receives;    // by rank, of an exchange by pairs
  std::vector<const std::byte*> prefix;  // what a scan combines
  UserOperator user;
};

}  // namespace plait::runtime

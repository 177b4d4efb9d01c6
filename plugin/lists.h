// The lists of a collective call.
#pragma once

#include <cstddef>
#include <vector>

#include "core/aligned_bytes.h"
#include "plugin/datatype.h"
#include "plugin/piece.h"

namespace plait::plugin {

// In bytes; kept from call to call so that they keep their memory.
struct Lists {
  std::vector<std::size_t> counts, displacements;
  AlignedBytes operands;                 // of a user-defined operator
  std::vector<Piece> sends, receives;    // by rank, of an exchange by pairs
  std::vector<const std::byte*> prefix;  // what a scan combines
  Datatype input_type, output_type;      // of a single call
};

}  // namespace plait::plugin

// The length and the place of each block of one call, in bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/lower/placement.h"
#include "plan/model/collective.h"

namespace plait::plan {

// Whether a collective's segments are equal parts of one vector.
bool is_vector(Collective collective);

class BlockSizes {
 public:
  BlockSizes(const Semantics& semantics, const Placement& placement);

  std::size_t bytes(BlockId block) const;

  // Bytes from the base of an input or output buffer of `cells` cells to its cell number `cell`, which holds `block`.
  std::size_t buffer_offset(BlockId block, std::uint32_t cell, std::uint32_t cells) const;

  bool all_empty() const;

 private:
  // [begin, end) in elements of part `index` of `parts` of a run of `elements`, cut at cache lines where it can be.
  struct Part {
    std::size_t begin, end;
  };
  Part part(std::size_t elements, int parts, int index) const;
  std::size_t segment_elements(int segment) const;

  const Semantics& semantics_;
  const Placement& placement_;
  bool vector_;
  std::size_t granule_;             // elements
  std::vector<std::size_t> first_;  // counts given: first element of each segment in a dense buffer
};

}  // namespace plait::plan

// Parts of arrays: which elements a subarray or a process's share of a distributed array has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/layer.h"
#include "runtime/types/construction.h"

namespace plait::runtime {

struct ArrayPart {
  std::vector<std::int64_t> sizes;                // of the array, the fastest dimension first
  std::vector<std::vector<std::int64_t>> chosen;  // in each dimension, ascending
};

// Of constructions of these combiners, by their numbers. Throw std::bad_alloc.
ArrayPart subarray(Numbers numbers);
ArrayPart distributed_array(Numbers numbers);

// Calls `visit` with the number of each element in the array, in ascending order.
template <class Visit>
void for_each_element(const ArrayPart& part, Visit&& visit) {
  for (const auto& indices : part.chosen)
    if (indices.empty()) return;
  std::vector<std::size_t> at(part.sizes.size());
  while (true) {
    std::int64_t element = 0;
    for (std::size_t d = at.size(); d-- > 0;) element = element * part.sizes[d] + part.chosen[d][at[d]];
    visit(element);
    std::size_t d = 0;
    while (d < at.size() && ++at[d] == part.chosen[d].size()) at[d++] = 0;
    if (d == at.size()) return;
  }
}

}  // namespace plait::runtime

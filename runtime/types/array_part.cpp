#include "runtime/types/array_part.h"

#include <algorithm>
#include <utility>

namespace plait::runtime {
namespace {

ArrayPart fastest_first(ArrayPart part, bool last_is_fastest) {
  if (last_is_fastest) {
    std::ranges::reverse(part.sizes);
    std::ranges::reverse(part.chosen);
  }
  return part;
}

struct Share {
  std::int64_t size;  // of the dimension
  Distribution distribution;
  std::int64_t block;  // 0: by default
  std::int64_t processes, process;
};

// Blocks of the array are dealt out to the processes in turn; there is one round of blocks as long as can be.
std::vector<std::int64_t> own_indices(const Share& of) {
  const std::int64_t even = (of.size + of.processes - 1) / of.processes;
  const std::int64_t by_default = of.distribution == Distribution::cyclic ? 1 : even;
  const std::int64_t block = of.distribution == Distribution::none ? of.size : of.block == 0 ? by_default : of.block;
  std::vector<std::int64_t> indices;
  for (std::int64_t begin = of.process * block; begin < of.size; begin += of.processes * block)
    for (std::int64_t i = begin; i < std::min(begin + block, of.size); ++i) indices.push_back(i);
  return indices;
}

}  // namespace

ArrayPart subarray(Numbers numbers) {
  const auto dimensions = static_cast<std::size_t>(numbers[0]);
  const auto list = [&](std::size_t index) { return numbers.subspan(1 + index * dimensions, dimensions); };
  const Numbers sizes = list(0), lengths = list(1), starts = list(2);
  ArrayPart part{.sizes = {sizes.begin(), sizes.end()}, .chosen = {}};
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::vector<std::int64_t>& indices = part.chosen.emplace_back();
    for (std::int64_t i = 0; i < lengths[d]; ++i) indices.push_back(starts[d] + i);
  }
  return fastest_first(std::move(part), numbers.back() != 0);
}

// Processes are numbered with the last dimension fastest, whatever the array's order.
ArrayPart distributed_array(Numbers numbers) {
  const auto dimensions = static_cast<std::size_t>(numbers[2]);
  const auto list = [&](std::size_t index) { return numbers.subspan(3 + index * dimensions, dimensions); };
  const Numbers sizes = list(0), distributions = list(1), blocks = list(2), processes = list(3);
  ArrayPart part{.sizes = {sizes.begin(), sizes.end()}, .chosen = {}};
  part.chosen.resize(dimensions);
  std::int64_t rank = numbers[1];
  for (std::size_t d = dimensions; d-- > 0; rank /= processes[d])
    part.chosen[d] = own_indices({.size = sizes[d],
                                  .distribution = static_cast<Distribution>(distributions[d]),
                                  .block = blocks[d],
                                  .processes = processes[d],
                                  .process = rank % processes[d]});
  return fastest_first(std::move(part), numbers.back() != 0);
}

}  // namespace plait::runtime

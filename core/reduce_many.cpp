#include <algorithm>
#include <array>
#include <cstring>

#include "core/aligned_bytes.h"
#include "core/kernels.h"
#include "core/reduction.h"
#include "core/work_team.h"

namespace plait {
namespace {

// Two of them, and a block of each source and result, stay in the first-level cache.
constexpr std::size_t block_bytes = 4096;

void combine_part(const Reducer& reducer, std::byte* result, const std::byte* left, const std::byte* right,
                  std::size_t elements) {
  if (reducer.kernel != nullptr) return reducer.kernel(result, left, right, elements);
  reducer.apply(reducer, result, left, right, elements);
}

void copy(const ManyOperands& operands, std::size_t bytes) {
  ManyOperands of_bytes = operands;
  of_bytes.elements = bytes;
  detail::many_kernels().copy(of_bytes);
}

// What the types without vector kernels take: a block's result is made in `scratch` (two blocks of
// `block_elements`, each from a cache line on) and then written to every result, so that sources and results pass
// through the caches once, and a result may be any of the sources.
class Blocks {
 public:
  Blocks(const Reducer& reducer, const ManyOperands& operands, std::byte* scratch, std::size_t block_elements)
      : reducer_(reducer), operands_(operands), scratch_(scratch), block_elements_(block_elements) {}

  void run() const {
    for (std::size_t done = 0; done < operands_.elements; done += block_elements_) {
      const std::size_t elements = std::min(block_elements_, operands_.elements - done);
      const std::size_t offset = done * reducer_.element_bytes;
      write(fold(offset, elements), offset, elements * reducer_.element_bytes);
    }
  }

 private:
  // From one half of the scratch memory into the other: a user's operator can avoid a copy where its
  // result is not its left operand.
  const std::byte* fold(std::size_t offset, std::size_t elements) const {
    const std::byte* left = operands_.sources[0] + offset;
    for (std::size_t s = 1; s < operands_.source_count; ++s) {
      std::byte* into = scratch_ + s % 2 * padded_to_line(block_elements_ * reducer_.element_bytes);
      combine_part(reducer_, into, left, operands_.sources[s] + offset, elements);
      left = into;
    }
    return left;
  }

  void write(const std::byte* block, std::size_t offset, std::size_t bytes) const {
    for (std::size_t r = 0; r < operands_.result_count; ++r) {
      std::byte* const result = operands_.results[r] + offset;
      copy({&result, 1, &block, 1, bytes, operands_.streaming}, bytes);
    }
  }

  const Reducer& reducer_;
  const ManyOperands& operands_;
  std::byte* scratch_;
  std::size_t block_elements_;
};

void reduce_in_blocks(const Reducer& reducer, const ManyOperands& operands) {
  const std::size_t bytes = reducer.element_bytes;
  if (bytes > block_bytes) {
    const Lines scratch = make_lines(2 * padded_to_line(bytes));
    std::memset(scratch.get(), 0, 2 * padded_to_line(bytes));
    return Blocks(reducer, operands, scratch.get(), 1).run();
  }
  alignas(line_bytes) std::byte scratch[2 * block_bytes];
  const std::size_t block_elements = std::min(block_bytes / bytes, operands.elements);
  std::memset(scratch, 0, 2 * padded_to_line(block_elements * bytes));  // padding is not written by the kernels
  Blocks(reducer, operands, scratch, block_elements).run();
}

void reduce_part(const Reducer& reducer, const ManyOperands& operands) {
  if (operands.source_count == 1) {
    copy(operands, operands.elements * reducer.element_bytes);
  } else if (operands.source_count == 2 && operands.result_count == 1 && !operands.streaming) {
    combine_part(reducer, operands.results[0], operands.sources[0], operands.sources[1], operands.elements);
  } else if (reducer.many != nullptr) {
    reducer.many(operands);
  } else {
    reduce_in_blocks(reducer, operands);
  }
  if (operands.streaming) detail::end_streaming();
}

// Arrays of one call that a team shares out.
constexpr std::size_t most_shared = 256;

// The same for [begin, begin + elements) of each array.
void reduce_range(const Reducer& reducer, const ManyOperands& operands, std::size_t begin, std::size_t elements) {
  std::array<std::byte*, most_shared> results;
  std::array<const std::byte*, most_shared> sources;
  const std::size_t offset = begin * reducer.element_bytes;
  for (std::size_t r = 0; r < operands.result_count; ++r) results[r] = operands.results[r] + offset;
  for (std::size_t s = 0; s < operands.source_count; ++s) sources[s] = operands.sources[s] + offset;
  reduce_part(reducer, {results.data(), operands.result_count, sources.data(), operands.source_count, elements,
                        operands.streaming});
}

}  // namespace

void combine(const Reducer& reducer, std::byte* result, const std::byte* left, const std::byte* right,
             std::size_t elements) {
  if (reducer.kernel == nullptr) return reducer.apply(reducer, result, left, right, elements);
  const std::size_t bytes = reducer.element_bytes;
  share_out({elements, bytes, result}, [&](std::size_t begin, std::size_t count) {
    reducer.kernel(result + begin * bytes, left + begin * bytes, right + begin * bytes, count);
  });
}

// A user's operator may not run in two threads at once.
void reduce_many(const Reducer& reducer, const ManyOperands& operands) {
  if (operands.elements == 0 || reducer.element_bytes == 0) return;
  if (reducer.kernel == nullptr || std::max(operands.result_count, operands.source_count) > most_shared)
    return reduce_part(reducer, operands);
  share_out({operands.elements, reducer.element_bytes, operands.results[0]}, [&](std::size_t begin, std::size_t count) {
    if (count == operands.elements) return reduce_part(reducer, operands);
    reduce_range(reducer, operands, begin, count);
  });
}

}  // namespace plait

#include "tl/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/tl/random_grid.h"
#include "tests/tl/traffic.h"

namespace plait::tl {
namespace {

// A message of `bytes` in up to `most` spans with gaps, in spaces drawn at random, some of them in grids; boundaries at
// multiples of 4.
struct RandomMemory {
  std::array<std::vector<std::byte>, 3> storage;
  Buffers buffers;
  std::vector<BoundSpan> spans;
  std::vector<RunGrid> grids;

  RandomMemory(std::mt19937& random, std::size_t bytes, std::size_t most) {
    std::array<std::size_t, 3> end{};
    for (std::size_t pieces = 1 + random() % most; bytes > 0; --pieces) {
      const Space space = static_cast<Space>(random() % 3);
      const std::size_t piece = pieces <= 1 ? bytes : (1 + random() % (bytes / 4)) * 4;
      std::size_t& here = end[static_cast<std::size_t>(space)];
      here += 4 * (random() % 3);
      if (random() % 3 == 0) {
        const std::size_t first = 4 * (random() % 5);
        grids.push_back(random_grid(random, here, first + piece, 4));
        spans.push_back({first, piece, space, static_cast<std::uint32_t>(grids.size() - 1)});
        here = grids.back().offset_of(first + piece - 1) + 1;
      } else {
        spans.push_back({here, piece, space});
        here += piece;
      }
      bytes -= piece;
    }
    for (std::size_t s = 0; s < 3; ++s) {
      storage[s].resize(end[s] + 1);
      buffers.base[s] = storage[s].data();
    }
  }
  Memory memory() const { return {spans.data(), static_cast<std::uint32_t>(spans.size()), &buffers, grids.data()}; }
  std::vector<std::byte> flat() const {
    std::vector<std::byte> bytes;
    for (const BoundSpan& span : spans)
      for (std::uint64_t at = span.offset; at < span.offset + span.bytes; ++at)
        bytes.push_back(buffers.at(span.space)[span.grid == no_grid ? at : grids[span.grid].offset_of(at)]);
    return bytes;
  }
};

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random());
  return result;
}

TEST(Memory, CopiesInAndOutAtAnyOffset) {
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t bytes = 4 * (1 + random() % 100);
    RandomMemory memory(random, bytes, 8);
    std::vector<std::byte> expected = memory.flat();
    const std::size_t offset = random() % (bytes + 1), length = random() % (bytes - offset + 1);
    const std::vector<std::byte> data = random_bytes(random, length);
    copy_in(memory.memory(), offset, data.data(), length);
    std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    EXPECT_EQ(memory.flat(), expected);
    std::vector<std::byte> back(length);
    copy_out(memory.memory(), offset, back.data(), length);
    EXPECT_EQ(back, data);
  }
}

TEST(Memory, CopiesBetweenDifferentCuts) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t bytes = 4 * (1 + random() % 100);
    RandomMemory from(random, bytes, 8), to(random, bytes, 8);
    const std::vector<std::byte> data = random_bytes(random, bytes);
    copy_in(from.memory(), 0, data.data(), bytes);
    const std::size_t middle = random() % (bytes + 1);
    copy(to.memory(), from.memory(), 0, middle);
    copy(to.memory(), from.memory(), middle, bytes - middle);
    EXPECT_EQ(to.flat(), data);
  }
}

// Runs of one byte and of some more, of any length and depth, from and to any byte of them.
TEST(Memory, CopiesColumnsOfBytes) {
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t bytes = 1 + random() % 6000;
    const std::size_t first = random() % 7;
    const RunGrid from_grid = random_grid(random, random() % 3, first + bytes, 1 + random() % 2);
    const RunGrid to_grid = random_grid(random, random() % 3, bytes, 1);
    std::vector<std::byte> from = random_bytes(random, from_grid.offset_of(first + bytes - 1) + 1);
    std::vector<std::byte> to(to_grid.offset_of(bytes - 1) + 1, std::byte{0xA5});
    std::vector<std::byte> expected = to;
    const Buffers buffers{{from.data(), to.data(), nullptr}};
    const BoundSpan source{first, bytes, Space::input, 0}, target{0, bytes, Space::output, 1};
    const std::array<RunGrid, 2> grids = {from_grid, to_grid};
    const Memory from_memory{&source, 1, &buffers, grids.data()}, to_memory{&target, 1, &buffers, grids.data()};
    const std::size_t begin = random() % bytes, length = 1 + random() % (bytes - begin);
    for (std::size_t i = begin; i < begin + length; ++i)
      expected[to_grid.offset_of(i)] = from[from_grid.offset_of(first + i)];
    if (seed % 2 == 0) {
      copy_between(to_memory, begin, from_memory, begin, length);
    } else {
      std::vector<std::byte> dense(length);
      copy_out(from_memory, begin, dense.data(), length);
      copy_in(to_memory, begin, dense.data(), length);
    }
    ASSERT_EQ(to, expected);
  }
}

std::vector<std::byte> combined(const std::vector<std::byte>& left, const std::vector<std::byte>& right) {
  Reducer reducer;
  reducer.element_bytes = 4;
  std::vector<std::byte> result(left.size());
  apply_noncommutative(reducer, result.data(), left.data(), right.data(), left.size() / 4);
  return result;
}

TEST(Memory, ReducesWhateverTheCuts) {
  Reducer reducer;
  reducer.apply = apply_noncommutative;
  reducer.element_bytes = 4;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t bytes = 4 * (1 + random() % 100);
    RandomMemory left(random, bytes, 8), right(random, bytes, 8), to(random, bytes, 8);
    const std::vector<std::byte> a = random_bytes(random, bytes), b = random_bytes(random, bytes);
    copy_in(left.memory(), 0, a.data(), bytes);
    copy_in(right.memory(), 0, b.data(), bytes);
    const std::size_t middle = random() % (bytes / 4 + 1) * 4;
    reduce(reducer, to.memory(), left.memory(), right.memory(), 0, middle);
    reduce(reducer, to.memory(), left.memory(), right.memory(), middle, bytes - middle);
    EXPECT_EQ(to.flat(), combined(a, b));

    Transfer transfer;
    transfer.memory = to.memory();
    transfer.reducer = &reducer;
    transfer.operand = left.memory();
    transfer.incoming_left = false;
    reduce_in(transfer, 0, b.data(), middle);
    reduce_in(transfer, middle, b.data() + middle, bytes - middle);
    EXPECT_EQ(to.flat(), combined(a, b));
    transfer.operand = transfer.memory = right.memory();  // in place
    transfer.incoming_left = true;
    reduce_in(transfer, 0, a.data(), bytes);
    EXPECT_EQ(right.flat(), combined(a, b));
  }
}

TEST(Memory, NothingIsNothing) {
  const Buffers none{};
  const Memory empty{nullptr, 0, &none};
  EXPECT_EQ(MemoryCursor(empty, 0).contiguous(), 0u);
  copy_in(empty, 0, nullptr, 0);
  copy_out(empty, 0, nullptr, 0);
  copy(empty, empty, 0, 0);
}

}  // namespace
}  // namespace plait::tl

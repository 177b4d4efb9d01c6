#include "tl/grid_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace plait::tl {
namespace {

// Some runs at one distance from each other.
struct Strip {
  std::uint64_t offset;  // of the first one, from the base of the space
  std::uint64_t runs, stride;
};

// The strips of a grid from a run on, one after the other.
class Strips {
 public:
  // Precondition: the grid has that run, or it is the one behind the last.
  Strips(const RunGrid& grid, std::uint64_t run) : grid_(grid), offset_(grid.origin) {
    for (int l = 0; l < grid.levels; ++l) {
      const RunGrid::Level& level = level_of(l);
      index_[static_cast<std::size_t>(l)] = run % level.count;
      offset_ += run % level.count * level.stride;
      run /= level.count;
    }
  }

  Strip take(std::uint64_t most) {
    if (grid_.levels == 0) return {offset_, 1, 0};
    const RunGrid::Level& first = level_of(0);
    const Strip strip{offset_, std::min(most, first.count - index_[0]), first.stride};
    offset_ += strip.runs * first.stride;
    index_[0] += strip.runs;
    for (int l = 0; index_[static_cast<std::size_t>(l)] == level_of(l).count; ++l) {
      index_[static_cast<std::size_t>(l)] = 0;
      offset_ -= level_of(l).count * level_of(l).stride;
      if (l + 1 == grid_.levels) break;
      ++index_[static_cast<std::size_t>(l) + 1];
      offset_ += level_of(l + 1).stride;
    }
    return strip;
  }

 private:
  const RunGrid::Level& level_of(int level) const { return grid_.level[static_cast<std::size_t>(level)]; }

  const RunGrid& grid_;
  std::array<std::uint64_t, RunGrid::most_levels> index_{};
  std::uint64_t offset_;
};

// `length` of the runs: 0 where it is not known here.
template <std::size_t length, class Cut, class Dense>
void copy_strip(Cut* cut, Dense* dense, const Strip& strip, std::uint64_t run) {
  const std::size_t bytes = length > 0 ? length : static_cast<std::size_t>(run);
  for (std::uint64_t i = 0; i < strip.runs; ++i, cut += strip.stride, dense += bytes) {
    if constexpr (std::is_const_v<Cut>)
      std::memcpy(dense, cut, bytes);
    else
      std::memcpy(cut, dense, bytes);
  }
}

template <class Cut, class Dense>
void copy_strip(Cut* cut, Dense* dense, const Strip& strip, std::uint64_t run) {
  switch (run) {
    case 1:
      return copy_strip<1>(cut, dense, strip, run);
    case 2:
      return copy_strip<2>(cut, dense, strip, run);
    case 4:
      return copy_strip<4>(cut, dense, strip, run);
    case 8:
      return copy_strip<8>(cut, dense, strip, run);
    case 16:
      return copy_strip<16>(cut, dense, strip, run);
    default:
      return copy_strip<0>(cut, dense, strip, run);
  }
}

template <class Cut, class Dense>
void copy_grid(const RunGrid& grid, Cut* base, std::uint64_t at, Dense* dense, std::size_t bytes) {
  const std::uint64_t within = at % grid.run;
  const std::uint64_t head = within > 0 ? std::min<std::uint64_t>(grid.run - within, bytes) : 0;
  if (head > 0) copy_strip<0>(base + grid.offset_of(at), dense, Strip{0, 1, 0}, head);
  dense += head;
  bytes -= head;
  Strips strips(grid, (at + head) / grid.run);
  for (std::uint64_t runs = bytes / grid.run; runs > 0;) {
    const Strip strip = strips.take(runs);
    copy_strip(base + strip.offset, dense, strip, grid.run);
    dense += strip.runs * grid.run;
    runs -= strip.runs;
  }
  if (const std::uint64_t tail = bytes % grid.run; tail > 0)
    copy_strip<0>(base + strips.take(1).offset, dense, Strip{0, 1, 0}, tail);
}

}  // namespace

void gather(const RunGrid& grid, const std::byte* base, std::uint64_t at, std::byte* dense, std::size_t bytes) {
  copy_grid(grid, base, at, dense, bytes);
}

void scatter(const RunGrid& grid, std::byte* base, std::uint64_t at, const std::byte* dense, std::size_t bytes) {
  copy_grid(grid, base, at, dense, bytes);
}

}  // namespace plait::tl

// Where the data of types lie, without an MPI: types that are built by hand, against a list of all their bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/types/contiguity.h"
#include "runtime/types/runs.h"
#include "runtime/types/type_reader.h"
#include "tests/differential/random.h"

namespace plait::runtime {
namespace {

using List = std::vector<std::int64_t>;
using test::Random;

// Types by their place in a list. What is looked at must be given back.
class HandMadeTypes final : public TypeReader {
 public:
  TypeHandle named(std::vector<std::ptrdiff_t> places, std::ptrdiff_t extent, bool told = true) {
    return add({.combiner = Combiner::named, .places = std::move(places), .upper = extent, .predefined = told});
  }
  TypeHandle bytes(std::ptrdiff_t count) {
    std::vector<std::ptrdiff_t> places;
    for (std::ptrdiff_t i = 0; i < count; ++i) places.push_back(i);
    return named(places, count);
  }
  TypeHandle short_int() { return named({0, 1, 4, 5, 6, 7}, 8); }

  TypeHandle dup(TypeHandle part) { return finish({.combiner = Combiner::dup, .parts = {part}}, {{part, 0}}); }
  TypeHandle contiguous(std::int64_t count, TypeHandle part) {
    return finish({.combiner = Combiner::contiguous, .numbers = {count}, .parts = {part}}, block(part, count, 0));
  }
  TypeHandle vector(bool in_bytes, std::int64_t count, std::int64_t length, std::int64_t stride, TypeHandle part) {
    std::vector<Placed> placed;
    for (std::int64_t i = 0; i < count; ++i) append(placed, block(part, length, i * stride * unit(in_bytes, part)));
    return finish({.combiner = in_bytes ? Combiner::hvector : Combiner::vector,
                   .numbers = {count, length, stride},
                   .parts = {part}},
                  placed);
  }
  TypeHandle indexed(bool in_bytes, const List& lengths, const List& displacements, TypeHandle part) {
    std::vector<Placed> placed;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      append(placed, block(part, lengths[i], displacements[i] * unit(in_bytes, part)));
    return finish({.combiner = in_bytes ? Combiner::hindexed : Combiner::indexed,
                   .numbers = numbers_of({lengths, displacements}, lengths.size()),
                   .parts = {part}},
                  placed);
  }
  TypeHandle indexed_block(bool in_bytes, std::int64_t length, const List& displacements, TypeHandle part) {
    std::vector<Placed> placed;
    for (const std::int64_t displacement : displacements)
      append(placed, block(part, length, displacement * unit(in_bytes, part)));
    return finish({.combiner = in_bytes ? Combiner::hindexed_block : Combiner::indexed_block,
                   .numbers = numbers_of({{length}, displacements}, displacements.size()),
                   .parts = {part}},
                  placed);
  }
  TypeHandle structure(const List& lengths, const List& displacements, const std::vector<TypeHandle>& parts) {
    std::vector<Placed> placed;
    for (std::size_t i = 0; i < lengths.size(); ++i) append(placed, block(parts[i], lengths[i], displacements[i]));
    return finish({.combiner = Combiner::structure,
                   .numbers = numbers_of({lengths, displacements}, lengths.size()),
                   .parts = parts},
                  placed);
  }
  TypeHandle resized(std::ptrdiff_t lower, std::ptrdiff_t extent, TypeHandle part) {
    const Made& of = at(part);
    return add(
        {.combiner = Combiner::resized, .parts = {part}, .places = of.places, .lower = lower, .upper = lower + extent});
  }
  TypeHandle subarray(const List& sizes, const List& lengths, const List& starts, bool last_is_fastest,
                      TypeHandle part) {
    const auto is_in = [&](const List& index) {
      for (std::size_t d = 0; d < sizes.size(); ++d)
        if (index[d] < starts[d] || index[d] >= starts[d] + lengths[d]) return false;
      return true;
    };
    List numbers = numbers_of({sizes, lengths, starts}, sizes.size());
    numbers.push_back(last_is_fastest ? 1 : 0);
    return array(Combiner::subarray, numbers, sizes, last_is_fastest, part, is_in);
  }
  struct Dealt {
    List sizes;
    std::vector<Distribution> distributions;
    List blocks, processes;
    std::int64_t rank = 0;
    bool last_is_fastest = true;
  };
  TypeHandle darray(const Dealt& dealt, TypeHandle part) {
    List place(dealt.sizes.size());  // of the process in their grid
    std::int64_t left = dealt.rank, all = 1;
    for (std::size_t d = place.size(); d-- > 0; left /= dealt.processes[d]) place[d] = left % dealt.processes[d];
    for (const std::int64_t processes : dealt.processes) all *= processes;
    const auto is_in = [&](const List& index) {
      for (std::size_t d = 0; d < place.size(); ++d)
        if (owner(dealt, d, index[d]) != place[d]) return false;
      return true;
    };
    List distributions;
    for (const Distribution one : dealt.distributions) distributions.push_back(static_cast<std::int64_t>(one));
    List numbers = numbers_of({dealt.sizes, distributions, dealt.blocks, dealt.processes}, dealt.sizes.size());
    numbers.insert(numbers.begin(), {all, dealt.rank});
    numbers.push_back(dealt.last_is_fastest ? 1 : 0);
    return array(Combiner::darray, numbers, dealt.sizes, dealt.last_is_fastest, part, is_in);
  }

  TypeFacts facts(TypeHandle type) const override {
    const Made& made = at(type);
    TypeFacts facts;
    facts.size = made.places.size();
    facts.lower_bound = made.lower;
    facts.extent = made.upper - made.lower;
    facts.predefined = made.predefined;
    if (made.places.empty()) return facts;
    const auto [first, last] = std::ranges::minmax(made.places);
    facts.true_lower_bound = first;
    facts.true_extent = static_cast<std::size_t>(last - first + 1);
    return facts;
  }
  void read(TypeHandle type, Construction& construction) const override {
    const Made& made = at(type);
    construction.combiner = made.combiner;
    std::ranges::copy(made.numbers, construction.numbers.make(made.numbers.size()));
    std::ranges::copy(made.parts, construction.parts.make(made.parts.size()));
    held_ += static_cast<std::ptrdiff_t>(made.parts.size());
  }
  void release(TypeHandle) const override { --held_; }

  const std::vector<std::ptrdiff_t>& places(TypeHandle type) const { return at(type).places; }
  std::ptrdiff_t held() const { return held_; }

 private:
  struct Made {
    Combiner combiner;
    List numbers{};
    std::vector<TypeHandle> parts{};
    std::vector<std::ptrdiff_t> places{};  // of all bytes, in the order in which they are packed
    std::ptrdiff_t lower = 0, upper = 0;
    bool predefined = false;
  };
  struct Placed {
    TypeHandle part;
    std::ptrdiff_t at;
  };

  const Made& at(TypeHandle type) const { return made_[static_cast<std::size_t>(type)]; }
  TypeHandle add(Made made) {
    made_.push_back(std::move(made));
    return static_cast<TypeHandle>(made_.size() - 1);
  }
  std::ptrdiff_t extent(TypeHandle type) const { return at(type).upper - at(type).lower; }
  std::ptrdiff_t unit(bool in_bytes, TypeHandle part) const { return in_bytes ? 1 : extent(part); }
  std::vector<Placed> block(TypeHandle part, std::int64_t length, std::ptrdiff_t at) const {
    std::vector<Placed> placed;
    for (std::int64_t i = 0; i < length; ++i) placed.push_back({part, at + i * extent(part)});
    return placed;
  }
  static void append(std::vector<Placed>& all, const std::vector<Placed>& more) {
    all.insert(all.end(), more.begin(), more.end());
  }
  static List numbers_of(std::initializer_list<List> lists, std::size_t count) {
    List numbers{static_cast<std::int64_t>(count)};
    for (const List& list : lists) numbers.insert(numbers.end(), list.begin(), list.end());
    return numbers;
  }
  void place(Made& made, const std::vector<Placed>& placed) const {
    for (const Placed& one : placed)
      for (const std::ptrdiff_t place : at(one.part).places) made.places.push_back(one.at + place);
  }
  // With the bounds of its parts.
  TypeHandle finish(Made made, const std::vector<Placed>& placed) {
    place(made, placed);
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const Made& part = at(placed[i].part);
      made.lower = i == 0 ? placed[i].at + part.lower : std::min(made.lower, placed[i].at + part.lower);
      made.upper = i == 0 ? placed[i].at + part.upper : std::max(made.upper, placed[i].at + part.upper);
    }
    return add(std::move(made));
  }
  // Looks at every element of the array, as they lie in memory.
  template <class IsIn>
  TypeHandle array(Combiner combiner, const List& numbers, const List& sizes, bool last_is_fastest, TypeHandle part,
                   const IsIn& is_in) {
    Made made{.combiner = combiner, .numbers = numbers, .parts = {part}};
    std::int64_t elements = 1;
    for (const std::int64_t size : sizes) elements *= size;
    for (std::int64_t element = 0; element < elements; ++element) {
      List index(sizes.size());
      std::int64_t left = element;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::size_t d = last_is_fastest ? sizes.size() - 1 - i : i;
        index[d] = left % sizes[d];
        left /= sizes[d];
      }
      if (is_in(index)) place(made, {{part, element * extent(part)}});
    }
    made.upper = elements * extent(part);
    return add(std::move(made));
  }
  static std::int64_t owner(const Dealt& dealt, std::size_t d, std::int64_t index) {
    const std::int64_t even = (dealt.sizes[d] + dealt.processes[d] - 1) / dealt.processes[d];
    const std::int64_t by_default = dealt.distributions[d] == Distribution::cyclic ? 1 : even;
    if (dealt.distributions[d] == Distribution::none) return 0;
    return index / (dealt.blocks[d] == 0 ? by_default : dealt.blocks[d]) % dealt.processes[d];
  }

  std::deque<Made> made_;
  mutable std::ptrdiff_t held_ = 0;
};

std::vector<ByteRun> runs(const HandMadeTypes& types, TypeHandle type) {
  return runs_of(types.facts(type), type, types);
}
std::optional<ByteRun> run(const HandMadeTypes& types, TypeHandle type) {
  return run_of(types.facts(type), type, types);
}
bool contiguous(const HandMadeTypes& types, TypeHandle type) { return is_contiguous(types.facts(type), type, types); }

using Runs = std::vector<ByteRun>;

TEST(Types, AreOneRunWhereTheyAreNamed) {
  HandMadeTypes types;
  EXPECT_EQ(runs(types, types.bytes(8)), (Runs{{0, 8}}));
  EXPECT_TRUE(contiguous(types, types.bytes(8)));
  EXPECT_TRUE(contiguous(types, types.named({0, 1}, 2, false)));
}

TEST(Types, OfAPairOfNumbersHaveAGap) {
  HandMadeTypes types;
  const TypeHandle pair = types.short_int();
  EXPECT_EQ(runs(types, pair), (Runs{{0, 2}, {4, 4}}));
  EXPECT_EQ(runs(types, types.contiguous(2, pair)), (Runs{{0, 2}, {4, 6}, {12, 4}}));
  EXPECT_FALSE(contiguous(types, pair));
}

TEST(Types, WithoutDataHaveNoRuns) {
  HandMadeTypes types;
  const TypeHandle none = types.contiguous(0, types.bytes(4));
  EXPECT_EQ(runs(types, none), Runs{});
  EXPECT_EQ(run(types, none), ByteRun{});
  EXPECT_EQ(runs(types, types.structure({2, 1}, {0, 8}, {none, types.bytes(4)})), (Runs{{8, 4}}));
}

TEST(Types, OfADuplicateOrOtherBoundsHaveTheSameData) {
  HandMadeTypes types;
  const TypeHandle four = types.bytes(4);
  EXPECT_EQ(runs(types, types.dup(types.short_int())), (Runs{{0, 2}, {4, 4}}));
  EXPECT_TRUE(contiguous(types, types.dup(four)));
  EXPECT_EQ(run(types, types.resized(-2, 12, four)), (ByteRun{0, 4}));
  EXPECT_FALSE(contiguous(types, types.resized(-2, 12, four)));
  EXPECT_EQ(runs(types, types.contiguous(2, types.resized(0, 12, four))), (Runs{{0, 4}, {12, 4}}));
}

TEST(Types, OfVectorsAreOneRunWhereTheStrideIsTheLength) {
  HandMadeTypes types;
  const TypeHandle four = types.bytes(4);
  EXPECT_EQ(runs(types, types.vector(false, 3, 2, 2, four)), (Runs{{0, 24}}));
  EXPECT_TRUE(contiguous(types, types.vector(true, 3, 2, 8, four)));
  EXPECT_EQ(runs(types, types.vector(false, 2, 1, 3, four)), (Runs{{0, 4}, {12, 4}}));
  EXPECT_EQ(runs(types, types.vector(true, 2, 1, 5, four)), (Runs{{0, 4}, {5, 4}}));
}

TEST(Types, OfVectorsMayGoBackwards) {
  HandMadeTypes types;
  const TypeHandle backwards = types.vector(false, 3, 1, -1, types.bytes(4));
  EXPECT_EQ(runs(types, backwards), (Runs{{0, 4}, {-4, 4}, {-8, 4}}));
  EXPECT_FALSE(run(types, backwards).has_value());
}

TEST(Types, OfBlocksAreOneRunInTheirOrderAlone) {
  HandMadeTypes types;
  const TypeHandle four = types.bytes(4);
  EXPECT_EQ(run(types, types.indexed(false, {2, 0, 1}, {1, 7, 3}, four)), (ByteRun{4, 12}));
  EXPECT_EQ(runs(types, types.indexed(false, {1, 2}, {2, 0}, four)), (Runs{{8, 4}, {0, 8}}));
  EXPECT_EQ(runs(types, types.indexed(true, {1, 1}, {0, 6}, four)), (Runs{{0, 4}, {6, 4}}));
  EXPECT_EQ(run(types, types.indexed_block(false, 2, {0, 2}, four)), (ByteRun{0, 16}));
  EXPECT_EQ(runs(types, types.indexed_block(true, 1, {8, 0}, four)), (Runs{{8, 4}, {0, 4}}));
  // One place twice, another one never.
  EXPECT_FALSE(run(types, types.indexed(false, {1, 1, 1}, {0, 0, 2}, four)).has_value());
}

TEST(Types, OfStructuresMayBeOneRunOfSeveralTypes) {
  HandMadeTypes types;
  const TypeHandle four = types.bytes(4), eight = types.bytes(8);
  EXPECT_TRUE(contiguous(types, types.structure({1, 2, 0}, {0, 4, 90}, {four, eight, four})));
  EXPECT_EQ(runs(types, types.structure({1, 1}, {0, 8}, {four, eight})), (Runs{{0, 4}, {8, 8}}));
  EXPECT_EQ(runs(types, types.structure({1, 1}, {0, 8}, {types.short_int(), four})), (Runs{{0, 2}, {4, 8}}));
}

TEST(Types, OfPartsOfArraysGoUpwards) {
  HandMadeTypes types;
  const TypeHandle four = types.bytes(4);
  EXPECT_EQ(runs(types, types.subarray({2, 4}, {2, 2}, {0, 1}, true, four)), (Runs{{4, 8}, {20, 8}}));
  EXPECT_EQ(runs(types, types.subarray({2, 4}, {1, 2}, {1, 1}, false, four)), (Runs{{12, 4}, {20, 4}}));
  EXPECT_EQ(run(types, types.subarray({3, 4}, {1, 4}, {1, 0}, true, four)), (ByteRun{16, 16}));
  EXPECT_EQ(runs(types, types.subarray({2, 2}, {2, 0}, {0, 0}, true, four)), Runs{});
}

TEST(Types, OfDistributedArraysHaveEachProcessesShare) {
  HandMadeTypes types;
  const TypeHandle four = types.bytes(4);
  const auto dealt = [&](Distribution way, std::int64_t block, std::int64_t rank) {
    return runs(types, types.darray({{7}, {way}, {block}, {2}, rank, true}, four));
  };
  EXPECT_EQ(dealt(Distribution::block, 0, 0), (Runs{{0, 16}}));
  EXPECT_EQ(dealt(Distribution::block, 0, 1), (Runs{{16, 12}}));
  EXPECT_EQ(dealt(Distribution::cyclic, 0, 1), (Runs{{4, 4}, {12, 4}, {20, 4}}));
  EXPECT_EQ(dealt(Distribution::cyclic, 2, 0), (Runs{{0, 8}, {16, 8}}));
  const HandMadeTypes::Dealt rows{{2, 3}, {Distribution::block, Distribution::none}, {0, 0}, {2, 1}, 1, false};
  EXPECT_EQ(runs(types, types.darray(rows, four)), (Runs{{4, 4}, {12, 4}, {20, 4}}));
}

// ---- Random ones ----

class RandomTypes {
 public:
  explicit RandomTypes(std::uint64_t seed) : random_(seed) {}

  TypeHandle draw(int depth) {
    if (depth == 0 || random_.one_in(6)) return named();
    const TypeHandle part = draw(depth - 1);
    switch (random_.below(9)) {
      case 0:
        return types.dup(part);
      case 1:
        return types.contiguous(random_.between(0, 4), part);
      case 2:
      case 3:
        return vector(part);
      case 4:
        return resized(part);
      case 5:
        return subarray(part);
      case 6:
        return darray(part);
      case 7:
        return structure(depth - 1);
      default:
        return indexed(part);
    }
  }

  HandMadeTypes types;

 private:
  std::ptrdiff_t extent(TypeHandle type) const { return types.facts(type).extent; }

  TypeHandle named() {
    const std::size_t which = random_.below(5);
    if (which == 4) return types.short_int();
    return types.bytes(std::ptrdiff_t{1} << which);
  }
  TypeHandle vector(TypeHandle part) {
    const bool in_bytes = random_.one_in(2);
    const int length = random_.between(0, 3), stride = random_.one_in(2) ? length : random_.between(-4, 4);
    const std::int64_t step = in_bytes ? stride * extent(part) : stride;
    return types.vector(in_bytes, random_.between(0, 4), length, step, part);
  }
  // To its true extent more often than not, so that parts may be gapless although their types are not.
  TypeHandle resized(TypeHandle part) {
    const TypeFacts facts = types.facts(part);
    const std::ptrdiff_t lower = random_.one_in(2) ? random_.between(-8, 8) : facts.true_lower_bound;
    auto size = static_cast<std::ptrdiff_t>(facts.true_extent);
    if (random_.one_in(3)) size = std::max<std::ptrdiff_t>(1, size + random_.between(-8, 8));
    return types.resized(lower, size, part);
  }
  TypeHandle subarray(TypeHandle part) {
    List sizes, lengths, starts;
    for (int d = random_.between(1, 3); d > 0; --d) {
      sizes.push_back(random_.between(1, 3));
      const int size = static_cast<int>(sizes.back());
      lengths.push_back(random_.one_in(3) ? random_.between(1, size) : size);
      starts.push_back(random_.between(0, size - static_cast<int>(lengths.back())));
    }
    return types.subarray(sizes, lengths, starts, random_.one_in(2), part);
  }
  TypeHandle darray(TypeHandle part) {
    HandMadeTypes::Dealt dealt;
    int all = 1;
    for (int d = random_.between(1, 2); d > 0; --d) {
      const auto way = static_cast<Distribution>(random_.below(3));
      const int size = random_.between(1, 5), processes = way == Distribution::none ? 1 : random_.between(1, 2);
      dealt.sizes.push_back(size);
      dealt.distributions.push_back(way);
      // Blocks of one round must hold the whole dimension.
      const int least = way == Distribution::block ? (size + processes - 1) / processes : 1;
      dealt.blocks.push_back(way == Distribution::none || random_.one_in(2) ? 0 : random_.between(least, least + 1));
      dealt.processes.push_back(processes);
      all *= processes;
    }
    dealt.rank = random_.between(0, all - 1);
    dealt.last_is_fastest = random_.one_in(2);
    return types.darray(dealt, part);
  }
  // Mostly such that each part begins where the one before it ended.
  TypeHandle structure(int depth) {
    List lengths, places;
    std::vector<TypeHandle> parts;
    std::int64_t next = random_.one_in(4) ? random_.between(-8, 8) : 0;
    for (int i = random_.between(0, 4); i > 0; --i) {
      const TypeHandle part = draw(depth);
      const int length = random_.one_in(6) ? 0 : random_.between(1, 3);
      const TypeFacts facts = types.facts(part);
      if (random_.one_in(8)) next += random_.between(-8, 8);
      parts.push_back(part);
      lengths.push_back(length);
      places.push_back(next - facts.true_lower_bound);
      if (length > 0) next += (length - 1) * facts.extent + static_cast<std::int64_t>(facts.true_extent);
    }
    return types.structure(lengths, places, parts);
  }
  TypeHandle indexed(TypeHandle part) {
    const bool in_bytes = random_.one_in(2), alike = random_.one_in(2);
    const std::int64_t step = in_bytes ? extent(part) : 1, length = random_.between(0, 2);
    List lengths, places;
    std::int64_t next = random_.one_in(4) ? random_.between(-2, 2) * step : 0;
    for (int i = random_.between(0, 4); i > 0; --i) {
      lengths.push_back(alike ? length : random_.one_in(6) ? 0 : random_.between(1, 3));
      if (random_.one_in(8)) next += random_.between(-3, 3) * step;
      places.push_back(next);
      next += lengths.back() * step;
    }
    if (random_.one_in(8)) std::ranges::reverse(places);
    if (alike) return types.indexed_block(in_bytes, length, places, part);
    return types.indexed(in_bytes, lengths, places, part);
  }

  Random random_;
};

std::vector<std::ptrdiff_t> bytes_of(const Runs& runs) {
  std::vector<std::ptrdiff_t> places;
  for (const ByteRun& run : runs)
    for (std::size_t i = 0; i < run.bytes; ++i) places.push_back(run.begin + static_cast<std::ptrdiff_t>(i));
  return places;
}

bool follow_each_other(const std::vector<std::ptrdiff_t>& places) {
  return std::ranges::adjacent_find(places, [](auto a, auto b) { return b != a + 1; }) == places.end();
}

std::uint64_t drawn_seed() {
  const auto given = static_cast<std::uint64_t>(::testing::GTEST_FLAG(random_seed));
  const std::uint64_t seed = given != 0 ? given : std::random_device()() % 99999 + 1;
  std::printf("seed %llu (--gtest_random_seed replays it)\n", static_cast<unsigned long long>(seed));
  return seed;
}

TEST(Types, OfAnyConstructionHaveTheirRunsWhereTheirBytesAre) {
  const std::uint64_t seed = drawn_seed();
  int gapless = 0, missed = 0;
  for (std::uint64_t drawn = 0; drawn < 20'000; ++drawn) {
    SCOPED_TRACE("type " + std::to_string(drawn));
    RandomTypes random(test::derive(seed, drawn));
    const TypeHandle type = random.draw(3);
    const std::vector<std::ptrdiff_t>& places = random.types.places(type);
    const Runs found = runs(random.types, type);
    ASSERT_EQ(bytes_of(found), places);
    for (std::size_t i = 1; i < found.size(); ++i)
      ASSERT_NE(found[i - 1].begin + static_cast<std::ptrdiff_t>(found[i - 1].bytes), found[i].begin);
    const std::optional<ByteRun> whole = run(random.types, type);
    if (whole) {
      ASSERT_EQ(bytes_of({*whole}), places);
    }
    const bool is_gapless = !places.empty() && follow_each_other(places);
    gapless += is_gapless ? 1 : 0;
    missed += is_gapless && !whole ? 1 : 0;
    if (contiguous(random.types, type)) {
      const auto next = static_cast<std::ptrdiff_t>(places.size());
      ASSERT_EQ(random.types.facts(type).extent, next);
      ASSERT_TRUE(places.empty() || places.front() == 0);
    }
    ASSERT_EQ(random.types.held(), 0);
  }
  // Those that are missed are packed, needlessly.
  EXPECT_GT(gapless, 2'000);
  EXPECT_LE(missed, gapless / 50);
}

}  // namespace
}  // namespace plait::runtime

// reduce_many() on every instruction set of this machine against the scalar reference applied from the left: up to nine
// sources and three results, any alignment, results in place of sources, streamed or not, with all that is around the
// results watched.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/kernels.h"
#include "core/reduction.h"
#include "tests/core/kernel_reference.h"

namespace plait {
namespace {

using test::Bytes;
using test::GuardedPages;
using test::Random;
using test::Reference;
using test::seed;

constexpr std::size_t most_sources = 9, most_results = 3;
constexpr std::size_t longest = 4096, largest_extent = 32;
constexpr std::size_t margin = 64;  // watched before and after each array
constexpr std::byte sentinel{0xa5};

// Sources, and what the reference makes of the first k of them.
struct Case {
  Op op;
  Element element;
  Reference reference;
  std::vector<Bytes> sources;
  std::vector<Bytes> folded;  // [k - 1]: of k sources; without padding, all NaNs alike
};

void canonicalise(const Case& of, std::byte* elements, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += of.reference.extent) {
    of.reference.clear_padding(elements + i);
    if (test::makes_nans(of.op)) of.reference.normalise(elements + i);
  }
}

Case make_case(Op op, Element element) {
  Random random(seed());
  Case made{op, element, test::reference(element), {}, {}};
  const std::size_t extent = made.reference.extent;
  for (std::size_t s = 0; s < most_sources; ++s) {
    made.sources.push_back(test::draw_operand(element, longest, random));
    const Bytes& source = made.sources.back();
    Bytes folded = s == 0 ? source : made.folded.back();
    for (std::size_t i = 0; s > 0 && i < folded.size(); i += extent) {
      made.reference.combine({op, folded.data() + i, folded.data() + i, source.data() + i});
    }
    made.folded.push_back(std::move(folded));
  }
  for (Bytes& folded : made.folded) canonicalise(made, folded.data(), folded.size());
  return made;
}

// One call: how many arrays, which results are sources, and how far each array stands from its guard page.
struct Trial {
  std::size_t sources, results, elements;
  bool streaming;
  std::array<int, most_results> source_of;  // the source that a result is, or -1
  std::array<std::size_t, most_sources + most_results> gap;

  std::string text() const {
    std::string s = std::to_string(sources) + " sources, " + std::to_string(elements) + " elements" +
                    (streaming ? ", streaming" : "") + ", results";
    for (std::size_t r = 0; r < results; ++r) s += " " + std::to_string(source_of[r]);
    return s;
  }
};

Trial draw_trial(Random& random, std::size_t sources, std::size_t elements) {
  Trial trial{sources, 1 + random() % most_results, elements, random() % 2 == 0, {-1, -1, -1}, {}};
  std::vector<int> free(sources);
  std::iota(free.begin(), free.end(), 0);
  std::shuffle(free.begin(), free.end(), random);
  for (std::size_t r = 0; r < std::min(trial.results, sources); ++r) {
    if (random() % 2 == 0) trial.source_of[r] = free[r];
  }
  const bool aligned = random() % 4 == 0;  // all results alike, as allocated memory is
  for (std::size_t& gap : trial.gap) gap = aligned ? 16 : random() % margin;
  return trial;
}

// Arrays that end `gap` bytes before an unreadable page.
class Arrays {
 public:
  Arrays() {
    for (auto& pages : pages_) pages = std::make_unique<GuardedPages>(longest * largest_extent + 2 * margin);
  }

  // Empty, or what is wrong.
  std::string run(const Case& of, const Trial& trial, const Reducer& reducer) {
    const std::size_t bytes = trial.elements * of.reference.extent;
    place(of, trial, bytes);
    const ManyOperands operands{result_at_.data(), trial.results,  source_at_.data(),
                                trial.sources,     trial.elements, trial.streaming};
    reduce_many(reducer, operands);
    for (std::size_t s = 0; s < trial.sources; ++s) {
      const auto end = trial.source_of.begin() + static_cast<std::ptrdiff_t>(trial.results);
      const bool replaced = std::find(trial.source_of.begin(), end, static_cast<int>(s)) != end;
      if (!replaced && std::memcmp(source_at_[s], of.sources[s].data(), bytes) != 0) return "a source was written";
    }
    for (std::size_t r = 0; r < trial.results; ++r) {
      if (std::string problem = check(of, trial, result_at_[r], bytes); !problem.empty()) {
        return "result " + std::to_string(r) + ": " + problem;
      }
    }
    return "";
  }

 private:
  void place(const Case& of, const Trial& trial, std::size_t bytes) {
    for (std::size_t a = 0; a < trial.sources + trial.results; ++a) {
      std::byte* const at = pages_[a]->last(bytes, trial.gap[a]);
      std::fill_n(at - margin, bytes + margin + trial.gap[a], sentinel);
      if (a < trial.sources) {
        std::copy_n(of.sources[a].data(), bytes, at);
        source_at_[a] = at;
      } else {
        result_at_[a - trial.sources] = at;
      }
    }
    for (std::size_t r = 0; r < trial.results; ++r) {
      const int source = trial.source_of[r];
      if (source >= 0) result_at_[r] = const_cast<std::byte*>(source_at_[static_cast<std::size_t>(source)]);
    }
  }

  std::string check(const Case& of, const Trial& trial, std::byte* result, std::size_t bytes) {
    const std::size_t extent = of.reference.extent;
    const Bytes& expected = of.folded[trial.sources - 1];
    if (std::memcmp(result, expected.data(), bytes) != 0) {
      canonicalise(of, result, bytes);
      for (std::size_t i = 0; i < bytes; i += extent) {
        if (std::memcmp(result + i, expected.data() + i, extent) != 0) {
          return "element " + std::to_string(i / extent) + " differs";
        }
      }
    }
    const auto is_sentinel = [](std::byte b) { return b == sentinel; };
    if (!std::all_of(result - margin, result, is_sentinel)) return "wrote before the start";
    const std::byte* const end = result + bytes;
    for (const auto& pages : pages_) {  // the page that it stands in has a gap of its own
      const std::byte* const last = pages->last(0);
      if (last >= end && last < end + margin && !std::all_of(end, last, is_sentinel)) return "wrote past the end";
    }
    return "";
  }

  std::array<std::unique_ptr<GuardedPages>, most_sources + most_results> pages_;
  std::array<const std::byte*, most_sources> source_at_{};
  std::array<std::byte*, most_results> result_at_{};
};

// A target's own kernels, as make_reducer() gives this processor's.
Reducer reducer_of(const detail::TargetKernels& target, Op op, Element element) {
  Reducer reducer = make_reducer(op, element);
  reducer.kernel = target.table.at(op, element);
  reducer.many = target.many.at(op, element);
  return reducer;
}

// Around every vector width, and some with many whole blocks.
std::vector<std::size_t> dense_lengths() {
  std::vector<std::size_t> result(68);
  std::iota(result.begin(), result.end(), 0);
  for (const std::size_t around : {96, 128, 192, 256, 320, 512, 1024}) {
    for (std::size_t count = around - 2; count <= around + 2; ++count) result.push_back(count);
  }
  result.insert(result.end(), {1000, 2049, longest});
  return result;
}

class ReduceMany : public ::testing::TestWithParam<Op> {
 protected:
  template <class Check>
  void for_each_kernel(Check check) {
    std::printf("seed %llu (--gtest_random_seed replays it)\n", static_cast<unsigned long long>(seed()));
    for (int e = 0; e < static_cast<int>(Element::count_); ++e) {
      const auto element = static_cast<Element>(e);
      if (reduce_kernel(GetParam(), element) == nullptr) continue;
      const Case of = make_case(GetParam(), element);
      ReduceKernel previous = nullptr;
      for (const detail::TargetKernels& target : test::targets()) {
        const Reducer reducer = reducer_of(target, GetParam(), element);
        // Plain loops are the same ones on every instruction set.
        if (reducer.many == nullptr && reducer.kernel == previous) continue;
        previous = reducer.kernel;
        check(of, reducer, std::string(target.target) + " " + std::string(name(element)));
        if (HasFatalFailure()) return;
      }
    }
  }

  Arrays arrays_;
};

TEST_P(ReduceMany, AgreesWithTheReferenceAppliedFromTheLeft) {
  Random random(seed());
  for_each_kernel([&](const Case& of, const Reducer& reducer, const std::string& where) {
    for (std::size_t sources = 1; sources <= most_sources; ++sources) {
      for (const std::size_t elements : dense_lengths()) {
        const Trial trial = draw_trial(random, sources, elements);
        ASSERT_EQ(arrays_.run(of, trial, reducer), "") << where << ": " << trial.text();
      }
    }
  });
}

TEST_P(ReduceMany, AgreesAtLengthsInBetween) {
  Random random(seed() + 1);
  for_each_kernel([&](const Case& of, const Reducer& reducer, const std::string& where) {
    const std::size_t most_stride = reducer.many != nullptr ? 40 : 400;
    for (std::size_t elements = random() % most_stride; elements <= longest; elements += 1 + random() % most_stride) {
      const Trial trial = draw_trial(random, 1 + random() % most_sources, elements);
      ASSERT_EQ(arrays_.run(of, trial, reducer), "") << where << ": " << trial.text();
    }
  });
}

std::string op_name(const ::testing::TestParamInfo<Op>& info) { return std::string(name(info.param)); }

INSTANTIATE_TEST_SUITE_P(EveryOp, ReduceMany,
                         ::testing::Values(Op::max, Op::min, Op::sum, Op::prod, Op::land, Op::band, Op::lor, Op::bor,
                                           Op::lxor, Op::bxor, Op::maxloc, Op::minloc),
                         op_name);

// The few that most calls use, at every length.
TEST(ReduceManyOf, CommonTypesAgreesAtEveryLength) {
  Random random(seed() + 2);
  Arrays arrays;
  const std::pair<Op, Element> common[] = {
      {Op::sum, Element::f32}, {Op::sum, Element::f64}, {Op::max, Element::i32}, {Op::prod, Element::u8}};
  for (const auto& [op, element] : common) {
    const Case of = make_case(op, element);
    for (std::size_t elements = 0; elements <= longest; ++elements) {
      const Trial trial = draw_trial(random, 1 + elements % most_sources, elements);
      ASSERT_EQ(arrays.run(of, trial, make_reducer(op, element)), "")
          << "seed " << seed() << ", " << name(element) << ": " << trial.text();
    }
  }
}

// Every target's copy, at every length: with one source, reduce_many() uses this processor's alone.
TEST(ReduceManyOf, OneSourceIsACopyOnEveryInstructionSet) {
  Random random(seed() + 3);
  const Bytes source = test::draw_operand(Element::u8, 2 * longest, random);
  for (const detail::TargetKernels& target : test::targets()) {
    for (std::size_t bytes = 1; bytes <= longest; ++bytes) {
      Bytes first(2 * longest, sentinel), second(2 * longest, sentinel);
      const std::size_t offset = 1 + random() % 63;
      std::byte* const results[] = {first.data() + offset, second.data() + 1 + random() % 63};
      const std::byte* const from = source.data() + random() % 64;
      target.many.copy({results, 2, &from, 1, bytes, bytes % 2 == 0});
      detail::end_streaming();
      for (std::byte* result : results) {
        ASSERT_EQ(std::memcmp(result, from, bytes), 0) << target.target << " " << bytes;
        ASSERT_EQ(result[-1], sentinel) << target.target << " " << bytes;
        ASSERT_EQ(result[bytes], sentinel) << target.target << " " << bytes;
      }
    }
  }
}

// ---- A user's operator ----

// left * factor + right on the bytes of an element: neither commutative nor, with padding, a type of ours.
struct Mixing {
  unsigned factor;
  int calls = 0;
};

void mix(const Reducer& self, void* result, const void* left, const void* right, std::size_t count) {
  auto& mixing = *static_cast<Mixing*>(const_cast<void*>(self.context));
  ++mixing.calls;
  for (std::size_t i = 0; i < count * self.element_bytes; ++i) {
    static_cast<unsigned char*>(result)[i] = static_cast<unsigned char>(
        static_cast<const unsigned char*>(left)[i] * mixing.factor + static_cast<const unsigned char*>(right)[i]);
  }
}

void check_mixing(std::size_t element_bytes, std::size_t elements, std::size_t sources, bool in_place, Random& random) {
  const std::size_t bytes = element_bytes * elements;
  Mixing mixing{31};
  Reducer reducer;
  reducer.apply = mix;
  reducer.context = &mixing;
  reducer.element_bytes = element_bytes;
  std::vector<Bytes> memory;
  for (std::size_t s = 0; s < sources; ++s) memory.push_back(test::draw_operand(Element::u8, bytes, random));
  Bytes expected = memory[0], other(bytes + 1, sentinel);
  for (std::size_t s = 1; s < sources; ++s) {
    mix(reducer, expected.data(), expected.data(), memory[s].data(), elements);
  }
  std::vector<const std::byte*> from;
  for (const Bytes& source : memory) from.push_back(source.data());
  // The last source is the hardest: it is read when all others have been combined.
  std::byte* const results[] = {other.data(), memory.back().data()};
  reduce_many(reducer, {results, in_place ? 2u : 1u, from.data(), sources, elements, sources % 2 == 0});
  ASSERT_EQ(other.back(), sentinel);
  other.pop_back();
  EXPECT_EQ(other, expected);
  if (in_place) {
    EXPECT_EQ(memory.back(), expected);
  }
}

TEST(ReduceManyOf, UsersOperatorsKeepsTheOrder) {
  Random random(seed());
  for (const std::size_t element_bytes : {1u, 12u, 4095u, 4096u, 4097u}) {
    // The last: several of the blocks in which reduce_many() works.
    for (const std::size_t elements : {std::size_t{0}, std::size_t{1}, std::size_t{3}, 15'000 / element_bytes}) {
      for (const std::size_t sources : {1u, 2u, 3u, 6u}) {
        SCOPED_TRACE(std::to_string(elements) + " of " + std::to_string(element_bytes) + " bytes, " +
                     std::to_string(sources) + " sources");
        check_mixing(element_bytes, elements, sources, false, random);
        check_mixing(element_bytes, elements, sources, true, random);
      }
    }
  }
}

}  // namespace
}  // namespace plait

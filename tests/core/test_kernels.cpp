// Every kernel of every instruction set of this machine against a scalar reference, bit by bit:
// lengths around all vector widths, any alignment, in place on either side, between guard pages,
// with padding watched.
#include "core/kernels.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "core/reduction.h"
#include "tests/core/kernel_reference.h"

namespace plait {
namespace {

using detail::TargetKernels;
using test::Bytes;
using test::GuardedPages;
using test::makes_nans;
using test::Random;
using test::Reference;
using test::seed;
using test::targets;

// ---- The sweep ----

constexpr std::size_t longest_short = 130;
constexpr std::array<std::size_t, 8> long_lengths = {191, 255, 256, 257, 511, 640, 1000, 4099};

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> result(longest_short + 1);
  for (std::size_t i = 0; i <= longest_short; ++i) result[i] = i;
  result.insert(result.end(), long_lengths.begin(), long_lengths.end());
  return result;
}

enum class InPlace { none, left, right };

// Operands and expected results for the longest run; shorter ones use their first elements.
struct Case {
  Op op;
  Element element;
  Reference reference;
  Bytes left, right;
  Bytes before;                   // what a separate result holds before the call
  std::array<Bytes, 3> expected;  // by InPlace: padding is that of whatever the result held
};

Case make_case(Op op, Element element) {
  Random random(seed());
  Case made{.op = op,
            .element = element,
            .reference = test::reference(element),
            .left = {},
            .right = {},
            .before = {},
            .expected = {}};
  const std::size_t bytes = long_lengths.back() * made.reference.extent;
  for (Bytes* operand : {&made.left, &made.right, &made.before}) {
    *operand = test::draw_operand(element, long_lengths.back(), random);
  }
  made.expected = {made.before, made.left, made.right};
  for (Bytes& expected : made.expected) {
    for (std::size_t i = 0; i < bytes; i += made.reference.extent) {
      made.reference.combine({op, expected.data() + i, made.left.data() + i, made.right.data() + i});
    }
  }
  return made;
}

// Where a run's arrays stand.
struct Placed {
  std::byte* result;
  std::byte* left;
  std::byte* right;
};

// Runs the kernel there and compares all bytes of the result. Empty: as expected.
std::string run(const Case& of, ReduceKernel kernel, InPlace in_place, Placed at, std::size_t count) {
  const std::size_t bytes = count * of.reference.extent;
  std::copy_n(of.left.data(), bytes, at.left);
  std::copy_n(of.right.data(), bytes, at.right);
  if (in_place == InPlace::none) std::copy_n(of.before.data(), bytes, at.result);
  if (in_place == InPlace::left) at.result = at.left;
  if (in_place == InPlace::right) at.result = at.right;
  kernel(at.result, at.left, at.right, count);
  const Bytes& expected = of.expected[static_cast<std::size_t>(in_place)];
  for (std::size_t i = 0; i < bytes; i += of.reference.extent) {
    if (makes_nans(of.op)) of.reference.normalise(at.result + i);
    if (std::memcmp(at.result + i, expected.data() + i, of.reference.extent) != 0) {
      return "element " + std::to_string(i / of.reference.extent) + " of " + std::to_string(count) +
             " differs, in place " + std::to_string(static_cast<int>(in_place));
    }
  }
  const bool left_kept = in_place == InPlace::left || std::equal(at.left, at.left + bytes, of.left.data());
  const bool right_kept = in_place == InPlace::right || std::equal(at.right, at.right + bytes, of.right.data());
  return left_kept && right_kept ? "" : "an operand was written";
}

// A sentinel in the gap after an array that does not end at its guard page.
constexpr std::byte sentinel{0xa5};

// `count` elements, of those that have made `whole`. Empty: the same bits, and nothing written beyond them.
std::string run_short(const Case& of, ReduceKernel kernel, const Bytes& whole, const Placed& at, std::byte* result,
                      std::size_t count) {
  const std::size_t bytes = count * of.reference.extent;
  constexpr std::size_t beyond = 64;
  std::fill_n(result, bytes + beyond, sentinel);
  kernel(result, at.left, at.right, count);
  const auto is_sentinel = [](std::byte b) { return b == sentinel; };
  if (!std::all_of(result + bytes, result + bytes + beyond, is_sentinel)) return "wrote past the end";
  if (std::memcmp(result, whole.data(), bytes) == 0) return "";
  for (std::size_t i = 0; i < bytes; i += of.reference.extent) {  // the padding is the sentinel's
    Bytes expected(whole.begin() + static_cast<std::ptrdiff_t>(i),
                   whole.begin() + static_cast<std::ptrdiff_t>(i + of.reference.extent));
    for (std::byte* element : {result + i, expected.data()}) {
      of.reference.clear_padding(element);
      if (makes_nans(of.op)) of.reference.normalise(element);
    }
    if (std::memcmp(result + i, expected.data(), expected.size()) != 0) {
      return "element " + std::to_string(i / of.reference.extent) + " differs";
    }
  }
  return "";
}

class Kernels : public ::testing::TestWithParam<Op> {
 protected:
  // Calls `check` for every element that has this operator, on every instruction set.
  template <class Check>
  void for_each_kernel(Check check) {
    std::printf("seed %llu (--gtest_random_seed replays it)\n", static_cast<unsigned long long>(seed()));
    for (int e = 0; e < static_cast<int>(Element::count_); ++e) {
      const auto element = static_cast<Element>(e);
      if (reduce_kernel(GetParam(), element) == nullptr) continue;
      const Case of = make_case(GetParam(), element);
      ASSERT_EQ(of.reference.extent, extent(element));
      for (const TargetKernels& target : targets()) {
        const ReduceKernel kernel = target.table.at(GetParam(), element);
        const std::string where =
            std::string(target.target) + " " + std::string(name(GetParam())) + " of " + std::string(name(element));
        ASSERT_NE(kernel, nullptr) << where;
        check(of, kernel, where);
        if (HasFatalFailure()) return;
      }
    }
  }

  GuardedPages result_{long_lengths.back() * 32 + 128}, left_{long_lengths.back() * 32 + 128},
      right_{long_lengths.back() * 32 + 128};
};

// The arrays end `gap` bytes before their guard pages: every alignment, and a crash for a step past
// the end.
TEST_P(Kernels, AgreeWithTheReferenceAtEveryLengthAndAlignment) {
  Random random(seed());
  for_each_kernel([&](const Case& of, ReduceKernel kernel, const std::string& where) {
    for (const std::size_t count : lengths()) {
      const std::size_t bytes = count * of.reference.extent;
      for (std::size_t gap = 0; gap < 8; ++gap) {
        const auto other = [&] { return gap == 0 ? 0 : random() % 8; };
        const Placed at = {result_.last(bytes, gap), left_.last(bytes, other()), right_.last(bytes, other())};
        std::fill_n(at.result + bytes, gap, sentinel);
        for (const InPlace in_place : {InPlace::none, InPlace::left, InPlace::right}) {
          ASSERT_EQ(run(of, kernel, in_place, at, count), "") << where << ", gap " << gap;
        }
        ASSERT_TRUE(std::all_of(at.result + bytes, at.result + bytes + gap, [](std::byte b) { return b == sentinel; }))
            << where << ", gap " << gap << ": wrote past the end";
      }
    }
  });
}

TEST_P(Kernels, StepNowhereBeforeTheStart) {
  for_each_kernel([&](const Case& of, ReduceKernel kernel, const std::string& where) {
    for (const std::size_t count : lengths()) {
      const Placed at = {result_.first(), left_.first(), right_.first()};
      ASSERT_EQ(run(of, kernel, InPlace::none, at, count), "") << where;
    }
  });
}

// Every length up to the longest where elements are computed by vectors, many of them elsewhere, each at another
// alignment of result and operands. What the kernel makes of the longest run, which is compared with the reference, is
// what it must make of a shorter one: an element's bits do not depend on where it stands.
TEST_P(Kernels, MakeTheSameOfAnElementAtEveryLengthAndAlignment) {
  Random random(seed());
  for_each_kernel([&](const Case& of, ReduceKernel kernel, const std::string& where) {
    const std::size_t extent = of.reference.extent, longest = long_lengths.back();
    Placed at = {result_.first(), left_.first(), right_.first()};
    ASSERT_EQ(run(of, kernel, InPlace::none, at, longest), "") << where;
    std::copy_n(of.left.data(), longest * extent, at.left);
    kernel(at.result, at.left, at.right, longest);
    const Bytes whole(at.result, at.result + longest * extent);
    const std::size_t most_stride = detail::many_kernels().at(of.op, of.element) != nullptr ? 1 : 61;
    for (std::size_t count = 0; count <= longest; count += 1 + random() % most_stride) {
      if (count % 16 == 0 || most_stride > 1) {
        at.left = left_.first() + random() % 64;
        at.right = right_.first() + random() % 64;
        std::copy_n(of.left.data(), longest * extent, at.left);
        std::copy_n(of.right.data(), longest * extent, at.right);
      }
      ASSERT_EQ(run_short(of, kernel, whole, at, result_.first() + random() % 64, count), "") << where << " " << count;
    }
  });
}

TEST_P(Kernels, TakeNullPointersForNothing) {
  for_each_kernel([](const Case&, ReduceKernel kernel, const std::string&) { kernel(nullptr, nullptr, nullptr, 0); });
}

std::string op_name(const ::testing::TestParamInfo<Op>& info) { return std::string(name(info.param)); }

INSTANTIATE_TEST_SUITE_P(EveryOp, Kernels,
                         ::testing::Values(Op::max, Op::min, Op::sum, Op::prod, Op::land, Op::band, Op::lor, Op::bor,
                                           Op::lxor, Op::bxor, Op::maxloc, Op::minloc),
                         op_name);

TEST(KernelTables, CoverThisProcessorsBestAndTheFallback) {
  ASSERT_GE(targets().size(), 2u) << "one instruction set only: nothing to dispatch";
  EXPECT_EQ(targets().front().table.at(Op::sum, Element::f64), reduce_kernel(Op::sum, Element::f64));
  for (const TargetKernels& target : targets()) std::printf("%s ", std::string(target.target).c_str());
  std::printf("\n");
}

// ---- What the header promises, in plain numbers ----

template <class T>
std::vector<T> reduced(ReduceKernel kernel, const std::vector<T>& left, const std::vector<T>& right) {
  std::vector<T> result(left.size());
  kernel(result.data(), left.data(), right.data(), left.size());
  return result;
}

template <class T>
auto bits(T value) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(value);
}

template <class T>
void expect_right_wins(Element element, T left, T right) {
  for (const TargetKernels& target : targets()) {
    for (const Op op : {Op::max, Op::min}) {
      for (const std::size_t count : {1u, 3u, 7u, 16u, 33u, 129u}) {
        const auto result =
            reduced<T>(target.table.at(op, element), std::vector<T>(count, left), std::vector<T>(count, right));
        for (const T& value : result) {
          ASSERT_EQ(bits(value), bits(right)) << target.target << " " << name(op) << " " << value;
        }
      }
    }
  }
}

TEST(KernelValues, OfANanAndANumberTheRightOneIsMaxAndMin) {
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  expect_right_wins<double>(Element::f64, not_a_number, 1);
  expect_right_wins<double>(Element::f64, 1, not_a_number);
  expect_right_wins<double>(Element::f64, not_a_number, -not_a_number);
  expect_right_wins<float>(Element::f32, static_cast<float>(not_a_number), 1);
  expect_right_wins<float>(Element::f32, 1, static_cast<float>(not_a_number));
}

TEST(KernelValues, OfTwoZerosTheRightOneIsMaxAndMin) {
  expect_right_wins<double>(Element::f64, 0.0, -0.0);
  expect_right_wins<double>(Element::f64, -0.0, 0.0);
  expect_right_wins<float>(Element::f32, 0.0f, -0.0f);
  expect_right_wins<float>(Element::f32, -0.0f, 0.0f);
}

TEST(KernelValues, DenormalsAreNotFlushed) {
  constexpr double tiny = std::numeric_limits<double>::denorm_min();
  for (const TargetKernels& target : targets()) {
    const auto sum = target.table.at(Op::sum, Element::f64);
    EXPECT_EQ(reduced<double>(sum, std::vector<double>(9, tiny), std::vector<double>(9, tiny)),
              std::vector<double>(9, 2 * tiny));
  }
}

TEST(KernelValues, IntegersWrapAround) {
  for (const TargetKernels& target : targets()) {
    EXPECT_EQ(reduced<std::int8_t>(target.table.at(Op::sum, Element::i8), {127, -128, 100}, {1, -1, 100}),
              (std::vector<std::int8_t>{-128, 127, -56}));
    EXPECT_EQ(reduced<std::int8_t>(target.table.at(Op::prod, Element::i8), {-128, 16, -3}, {-1, 16, 5}),
              (std::vector<std::int8_t>{-128, 0, -15}));
    constexpr auto largest = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(reduced<std::int64_t>(target.table.at(Op::sum, Element::i64), {largest}, {1}),
              (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()}));
    EXPECT_EQ(
        reduced<std::int64_t>(target.table.at(Op::prod, Element::i64), {largest, 1LL << 33}, {largest, 1LL << 33}),
        (std::vector<std::int64_t>{1, 0}));
  }
}

// 0.1f * 0.1f - 0.01f is 0 when the product is rounded, and not when it is fused into the
// subtraction.
TEST(KernelValues, ComplexProductsAreNotFused) {
  const float product = 0.1f * 0.1f;
  for (const TargetKernels& target : targets()) {
    const auto prod = target.table.at(Op::prod, Element::c32);
    std::vector<float> left, right;
    for (int i = 0; i < 33; ++i) {
      left.insert(left.end(), {0.1f, product});
      right.insert(right.end(), {0.1f, 1.0f});
    }
    std::vector<float> result(66);
    prod(result.data(), left.data(), right.data(), 33);
    for (std::size_t i = 0; i < 66; i += 2) ASSERT_EQ(result[i], 0.0f) << target.target << " " << i;
  }
}

TEST(KernelValues, ComplexProductsOfInfinitiesAreNotRescued) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const TargetKernels& target : targets()) {
    const double left[2] = {infinity, infinity}, right[2] = {infinity, infinity};
    double result[2];
    target.table.at(Op::prod, Element::c64)(result, left, right, 1);
    EXPECT_TRUE(std::isnan(result[0])) << target.target;
    EXPECT_EQ(result[1], infinity) << target.target;
  }
}

TEST(KernelValues, TiesGoToTheSmallerIndex) {
  struct IndexedDouble {
    double value;
    int index;
  };
  const IndexedDouble left[4] = {{1, 5}, {1, 2}, {2, 9}, {-0.0, 3}};
  const IndexedDouble right[4] = {{1, 3}, {1, 4}, {1, 1}, {0.0, 4}};
  IndexedDouble result[4] = {};
  reduce_kernel(Op::maxloc, Element::pair_f64_i32)(result, left, right, 4);
  EXPECT_EQ(result[0].index, 3);
  EXPECT_EQ(result[1].index, 2);
  EXPECT_EQ(result[2].value, 2);
  EXPECT_EQ(result[2].index, 9);
  EXPECT_TRUE(std::signbit(result[3].value)) << "a value and its own index";
  reduce_kernel(Op::minloc, Element::pair_f64_i32)(result, left, right, 4);
  EXPECT_EQ(result[0].index, 3);
  EXPECT_EQ(result[2].value, 1);
  EXPECT_EQ(result[2].index, 1);
}

TEST(KernelValues, AnyNonZeroIsTrue) {
  const std::vector<std::int32_t> left = {0, 0, 256, -1, 2}, right = {0, 65536, 0, 1, 4};
  const auto of = [&](Op op) { return reduced<std::int32_t>(reduce_kernel(op, Element::logical32), left, right); };
  EXPECT_EQ(of(Op::land), (std::vector<std::int32_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(of(Op::lor), (std::vector<std::int32_t>{0, 1, 1, 1, 1}));
  EXPECT_EQ(of(Op::lxor), (std::vector<std::int32_t>{0, 1, 1, 0, 0}));
}

}  // namespace
}  // namespace plait

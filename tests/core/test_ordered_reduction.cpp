// Sums and products that do not depend on the order of their operands: the same bits for any order, with zeros added,
// in both forms and any grouping; within their bound of exact sums; as IEEE has infinities, NaNs, zeros and overflow.
#include "core/reproducible/ordered_reduction.h"

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
#include <vector>

#include "core/reproducible/ordered_kernels.h"
#include "core/reproducible/ordered_sum.h"
#include "tests/core/exact_sum.h"
#include "tests/core/kernel_reference.h"

namespace plait {
namespace {

using detail::F128;
using detail::F32;
using detail::F64;
using detail::F80;
using test::Random;
using test::seed;

using Value = std::array<std::byte, 32>;
using Values = std::vector<Value>;

// ---- Operands ----

enum class Mix { near, far, subnormal, cancelling, huge, special, zeros };
constexpr std::array mixes = {Mix::near, Mix::far,     Mix::subnormal, Mix::cancelling,
                              Mix::huge, Mix::special, Mix::zeros};

template <class F>
void put(std::byte* to, bool negative, int field, detail::Uint128 significand) {
  using Word = typename F::Significand;
  constexpr Word first = Word{1} << (F::precision - 1);
  Word stored = static_cast<Word>(significand) & (first - 1);
  if (!F::hidden_bit && field != 0) stored |= first;
  detail::real_detail::store<F>(to, negative, field, stored);
}

template <class F>
void put_real(std::byte* to, Random& random, Mix mix, std::size_t i) {
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
  constexpr int middle = F::special_field / 2, top = F::special_field - 1;
  const detail::Uint128 bits = static_cast<detail::Uint128>(random()) << 64 | random();
  const bool negative = random() % 2 == 0;
  switch (mix) {
    case Mix::near:
      return put<F>(to, negative, middle + below(8), bits);
    case Mix::far:
      return put<F>(to, negative, below(F::special_field), random() % 4 == 0 ? 0 : bits);
    case Mix::subnormal:
      return put<F>(to, negative, below(4), bits >> below(20));
    case Mix::cancelling: {  // pairs that differ in the last bits
      const auto pair = static_cast<detail::Uint128>(i / 2 * 0x9E3779B97F4A7C15u);
      return put<F>(to, i % 2 == 0, middle + static_cast<int>(i / 2 * 7 % 50), (pair << 60) + (bits & 3));
    }
    case Mix::huge:
      return put<F>(to, negative, top - below(3), bits);
    case Mix::special:
      if (below(6) != 0) return put<F>(to, negative, middle, bits);
      return below(3) == 0 ? put<F>(to, negative, F::special_field, bits | 1) : detail::store_infinity<F>(to, negative);
    default:
      return detail::store_zero<F>(to, negative);
  }
}

template <class F>
Values make_values(Random& random, Mix mix, std::size_t count, std::size_t reals) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t r = 0; r < reals; ++r) put_real<F>(values[i].data() + r * F::extent, random, mix, i);
  return values;
}

// ---- Results ----

Value at_once(const OrderedReduction& reduction, const Values& values) {
  std::vector<const std::byte*> sources;
  for (const Value& value : values) sources.push_back(value.data());
  Value result{};
  std::byte* const to = result.data();
  reduction.at_once.many({.results = &to,
                          .result_count = 1,
                          .sources = sources.data(),
                          .source_count = sources.size(),
                          .elements = 1,
                          .streaming = false});
  return result;
}

// Steps are added in a random order.
Value by_steps(const WideSum& sum, Values values, Random& random) {
  using Words = std::array<std::byte, 32>;
  Words largest{};
  for (const Value& value : values) {
    Words keys{};
    sum.make_keys(keys.data(), value.data(), sum.reals);
    sum.keys.kernel(largest.data(), largest.data(), keys.data(), sum.reals);
  }
  std::vector<Words> steps(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sum.cut(steps[i].data(), values[i].data(), largest.data(), sum.reals);
  while (steps.size() > 1) {
    std::swap(steps[random() % (steps.size() - 1)], steps[steps.size() - 2]);
    Words& left = steps[steps.size() - 2];
    sum.steps.kernel(left.data(), left.data(), steps.back().data(), sum.reals);
    steps.pop_back();
  }
  Value result{};
  sum.round(result.data(), steps[0].data(), largest.data(), sum.reals);
  return result;
}

Values shuffled(Values values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
  return values;
}

std::string text_of(const Value& value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = bytes; i-- > 0;) {
    text += "0123456789abcdef"[std::to_integer<int>(value[i] >> 4)];
    text += "0123456789abcdef"[std::to_integer<int>(value[i] & std::byte{15})];
  }
  return text;
}

// ---- Properties ----

template <class F>
struct Type {
  using Format = F;
  Element real, complex;
};

template <class Check>
void for_each_format(Check&& check) {
  check(Type<F32>{Element::f32, Element::c32});
  check(Type<F64>{Element::f64, Element::c64});
  check(Type<F80>{Element::f80, Element::c80});
  check(Type<F128>{Element::f128, Element::c128});
}

constexpr std::array<std::size_t, 10> counts = {2, 3, 4, 7, 16, 17, 64, 128, 129, 500};

TEST(OrderedReduction, IsThereForFloatingSumsAndProductsAlone) {
  for_each_format([](auto type) {
    for (const Element element : {type.real, type.complex}) {
      EXPECT_NE(ordered_reduction(Op::sum, element), nullptr);
      EXPECT_NE(ordered_reduction(Op::prod, element), nullptr);
      EXPECT_EQ(ordered_reduction(Op::max, element), nullptr);
    }
  });
  EXPECT_EQ(ordered_reduction(Op::sum, Element::i32), nullptr);
  EXPECT_EQ(ordered_reduction(Op::count_, Element::count_), nullptr);
}

TEST(OrderedReduction, DoesNotDependOnTheOrder) {
  Random random(seed());
  for_each_format([&](auto type) {
    using F = typename decltype(type)::Format;
    for (const Op op : {Op::sum, Op::prod})
      for (const std::size_t reals : {1, 2})
        for (const Mix mix : mixes)
          for (const std::size_t count : counts) {
            const OrderedReduction& reduction = *ordered_reduction(op, reals == 1 ? type.real : type.complex);
            const Values values = make_values<F>(random, mix, count, reals);
            const Value expected = at_once(reduction, values);
            for (int order = 0; order < 4; ++order)
              ASSERT_EQ(text_of(at_once(reduction, shuffled(values, random)), F::extent * reals),
                        text_of(expected, F::extent * reals))
                  << name(op) << " of " << count << " " << name(type.real) << ", mix " << static_cast<int>(mix);
          }
  });
}

TEST(OrderedReduction, ZerosChangeNoSum) {
  Random random(seed());
  for_each_format([&](auto type) {
    using F = typename decltype(type)::Format;
    const OrderedReduction& reduction = *ordered_reduction(Op::sum, type.real);
    for (const Mix mix : mixes)
      for (const std::size_t count : counts) {
        Values values = make_values<F>(random, mix, count, 1);
        detail::store_zero<F>(values[0].data(), false);
        const Value expected = at_once(reduction, values);
        for (int more = 0; more < 20; ++more) {
          Value zero{};
          detail::store_zero<F>(zero.data(), random() % 2 == 0);
          values.push_back(zero);
        }
        ASSERT_EQ(text_of(at_once(reduction, shuffled(values, random)), F::extent), text_of(expected, F::extent));
      }
  });
}

TEST(OrderedReduction, StepsGiveTheSameBits) {
  Random random(seed());
  for_each_format([&](auto type) {
    using F = typename decltype(type)::Format;
    for (const std::size_t reals : {1, 2})
      for (const Mix mix : mixes)
        for (const std::size_t count : counts)
          for (const std::size_t room : {count, std::max<std::size_t>(count, 1000)}) {
            const OrderedReduction& reduction = *ordered_reduction(Op::sum, reals == 1 ? type.real : type.complex);
            if (reduction.wide == nullptr) continue;
            const WideSum* wide = reduction.wide(static_cast<int>(room));
            ASSERT_NE(wide, nullptr);
            const Values values = make_values<F>(random, mix, count, reals);
            ASSERT_EQ(text_of(by_steps(*wide, values, random), F::extent * reals),
                      text_of(at_once(reduction, values), F::extent * reals))
                << count << " " << name(type.real) << ", mix " << static_cast<int>(mix);
          }
  });
}

// ---- The vector kernels ----

// `reals` of each operand, one after the other; now and then one of another mix.
template <class F>
std::vector<test::Bytes> make_arrays(Random& random, Mix mix, std::size_t count, std::size_t reals) {
  std::vector<test::Bytes> arrays(count, test::Bytes(reals * F::extent));
  for (std::size_t r = 0; r < reals; ++r) {
    const Mix own = random() % 16 == 0 ? mixes[random() % mixes.size()] : mix;
    for (std::size_t i = 0; i < count; ++i) put_real<F>(arrays[i].data() + r * F::extent, random, own, i);
  }
  return arrays;
}

template <class F>
test::Bytes reference_sums(const std::vector<test::Bytes>& arrays) {
  test::Bytes sums(arrays[0].size());
  for (std::size_t offset = 0; offset < sums.size(); offset += F::extent) {
    int key = 0;
    for (const test::Bytes& array : arrays)
      key = std::max(key, detail::key_of(detail::real_of<F>(array.data() + offset)));
    detail::GridSum<F> sum(key);
    for (const test::Bytes& array : arrays) sum.add(detail::real_of<F>(array.data() + offset));
    sum.store(sums.data() + offset);
  }
  return sums;
}

// What a kernel leaves to others.
template <class F>
void sum_otherwise(const ManyOperands& of, std::size_t begin, std::size_t end) {
  for (std::size_t offset = begin * F::extent; offset < end * F::extent; offset += F::extent) {
    std::vector<test::Bytes> one(of.source_count);
    for (std::size_t s = 0; s < of.source_count; ++s)
      one[s].assign(of.sources[s] + offset, of.sources[s] + offset + F::extent);
    std::ranges::copy(reference_sums<F>(one), of.results[0] + offset);
  }
}

template <class F, class Kernels>
void check_sums(const Kernels& kernels, const std::vector<test::Bytes>& arrays) {
  std::vector<const std::byte*> sources;
  for (const test::Bytes& array : arrays) sources.push_back(array.data());
  test::Bytes sums(arrays[0].size());
  std::byte* const to = sums.data();
  kernels.sum({.results = &to,
               .result_count = 1,
               .sources = sources.data(),
               .source_count = sources.size(),
               .elements = sums.size() / F::extent,
               .streaming = false},
              sums.size() / F::extent, sum_otherwise<F>);
  ASSERT_EQ(sums, reference_sums<F>(arrays)) << arrays.size() << " operands";
}

TEST(OrderedKernels, EveryInstructionSetSumsAsTheReferenceDoes) {
  Random random(seed());
  for (const detail::OrderedKernels& kernels : detail::ordered_kernels_of_all_targets())
    for (const Mix mix : mixes)
      for (const std::size_t count : {2, 3, 5, 64, 1000}) {
        check_sums<F64>(kernels.f64, make_arrays<F64>(random, mix, count, 45));
        check_sums<F32>(kernels.f32, make_arrays<F32>(random, mix, count, 45));
      }
}

template <class F, class Key, class Kernels>
void check_steps(const Kernels& kernels, const std::vector<test::Bytes>& arrays) {
  using Word = std::conditional_t<sizeof(Key) == 2, std::int64_t, std::int32_t>;
  const std::size_t reals = arrays[0].size() / F::extent;
  std::vector<Key> largest(reals);
  for (const test::Bytes& array : arrays) {
    std::vector<Key> keys(reals);
    kernels.make_keys(keys.data(), array.data(), reals);
    for (std::size_t r = 0; r < reals; ++r) {
      ASSERT_EQ(keys[r], detail::key_of(detail::real_of<F>(array.data() + r * F::extent)));
      largest[r] = std::max(largest[r], keys[r]);
    }
  }
  std::vector<Word> sum(reals), steps(reals);
  // Those that are left to others are not looked at.
  const auto nothing = [](void*, const void*, const void*, std::size_t) {};
  for (const test::Bytes& array : arrays) {
    kernels.cut(steps.data(), array.data(), largest.data(), reals, nothing);
    for (std::size_t r = 0; r < reals; ++r) sum[r] += steps[r];
  }
  const test::Bytes wanted = reference_sums<F>(arrays);
  test::Bytes got = wanted;
  kernels.round(got.data(), sum.data(), largest.data(), reals, nothing);
  for (std::size_t r = 0; r < reals; ++r) {
    if (r >= reals / 16 * 16) break;  // the ends of arrays are left to others
    // So are vectors of up to 16, as a whole.
    const auto first = largest.begin() + static_cast<std::ptrdiff_t>(r / 16 * 16);
    const auto last = largest.begin() + static_cast<std::ptrdiff_t>(std::min(r / 16 * 16 + 16, reals));
    if (std::find(first, last, F::special_field) != last) continue;
    ASSERT_EQ(test::Bytes(got.begin() + static_cast<std::ptrdiff_t>(r * F::extent),
                          got.begin() + static_cast<std::ptrdiff_t>((r + 1) * F::extent)),
              test::Bytes(wanted.begin() + static_cast<std::ptrdiff_t>(r * F::extent),
                          wanted.begin() + static_cast<std::ptrdiff_t>((r + 1) * F::extent)));
  }
}

TEST(OrderedKernels, EveryInstructionSetCutsAndRoundsAsTheReferenceDoes) {
  Random random(seed());
  for (const detail::OrderedKernels& kernels : detail::ordered_kernels_of_all_targets())
    for (const Mix mix : mixes)
      for (const std::size_t count : {2, 3, 5, 16}) {
        check_steps<F64, std::uint16_t>(kernels.f64, make_arrays<F64>(random, mix, count, 69));
        check_steps<F32, std::uint8_t>(kernels.f32, make_arrays<F32>(random, mix, count, 69));
      }
}

// |result - sum| <= half a step of the grid for each operand but the largest, and half a unit of the result's last
// place.
TEST(OrderedReduction, IsWithinItsBoundOfTheExactSum) {
  Random random(seed());
  for_each_format([&](auto type) {
    using F = typename decltype(type)::Format;
    const OrderedReduction& reduction = *ordered_reduction(Op::sum, type.real);
    for (const Mix mix : {Mix::near, Mix::far, Mix::subnormal, Mix::cancelling})
      for (const std::size_t count : counts)
        for (int round = 0; round < (F::precision > 64 ? 2 : 20); ++round) {
          const Values values = make_values<F>(random, mix, count, 1);
          const Value sum = at_once(reduction, values);
          const detail::Real<F> result = detail::real_of<F>(sum.data());
          if (result.kind != detail::Kind::finite) continue;
          int key = 1;
          test::ExactSum error(F::special_field);
          for (const Value& value : values) {
            key = std::max(key, detail::real_of<F>(value.data()).field);
            error.template add<F>(value.data());
          }
          error.template add<F>(sum.data(), true);
          if (error.sign() < 0) error.negate();
          for (int doubled = 0; doubled < 1 + detail::guard_bits; ++doubled) error.double_it();
          error.add(count - 1, key, true);
          error.add(1, result.field + detail::guard_bits, true);
          ASSERT_LE(error.sign(), 0) << count << " " << name(type.real) << ", mix " << static_cast<int>(mix);
        }
  });
}

// What a plain sum of doubles may be wrong by, (n - 1) u sum|x|, bounds it for three operands and more.
TEST(OrderedReduction, IsNoWorseThanAPlainSum) {
  Random random(seed());
  const OrderedReduction& reduction = *ordered_reduction(Op::sum, Element::f64);
  double worst = 0, worst_plain = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t count = 3 + random() % 60;
    const Values values = make_values<F64>(random, Mix::near, count, 1);
    const Value sum = at_once(reduction, values);
    long double exact = 0, size = 0;
    double plain = 0;
    for (const Value& value : values) {
      double x = 0;
      std::memcpy(&x, value.data(), sizeof x);
      exact += static_cast<long double>(x);  // 11 bits more: exact but for its last ones
      size += std::fabs(static_cast<long double>(x));
      plain += x;
    }
    double result = 0;
    std::memcpy(&result, sum.data(), sizeof result);
    const long double unit = static_cast<long double>(count - 1) * 0x1p-53L * size;
    ASSERT_LE(std::fabs(result - exact), unit * 1.001L);
    worst = std::max(worst, static_cast<double>(std::fabs(result - exact) / size));
    worst_plain = std::max(worst_plain, static_cast<double>(std::fabs(plain - exact) / size));
  }
  EXPECT_LE(worst, worst_plain);
}

// ---- As IEEE has it ----

double sum_of(std::vector<double> numbers, Op op = Op::sum) {
  Values values(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(values[i].data(), &numbers[i], sizeof(double));
  const OrderedReduction& reduction = *ordered_reduction(op, Element::f64);
  const Value sum = at_once(reduction, values);
  if (op == Op::sum) {
    Random random(seed());
    EXPECT_EQ(text_of(by_steps(*reduction.wide(64), values, random), 8), text_of(sum, 8));
  }
  double result = 0;
  std::memcpy(&result, sum.data(), sizeof result);
  return result;
}

std::uint64_t bits_of(double number) { return std::bit_cast<std::uint64_t>(number); }

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN(),
                 most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();

TEST(OrderedReduction, SumsInfinitiesAndNans) {
  EXPECT_EQ(sum_of({1, infinity, -most}), infinity);
  EXPECT_EQ(sum_of({1, -infinity, most}), -infinity);
  EXPECT_EQ(bits_of(sum_of({1, infinity, -infinity})), bits_of(nan));
  EXPECT_EQ(bits_of(sum_of({1, -nan, -infinity})), bits_of(nan));
  EXPECT_EQ(sum_of({infinity, infinity, infinity, infinity}), infinity);
}

TEST(OrderedReduction, SumsZerosOfBothSigns) {
  EXPECT_EQ(bits_of(sum_of({-0.0, -0.0})), bits_of(-0.0));
  EXPECT_EQ(bits_of(sum_of({-0.0, 0.0})), bits_of(0.0));
  EXPECT_EQ(bits_of(sum_of({-1, 1, -0.0})), bits_of(0.0));
  EXPECT_EQ(bits_of(sum_of({least, -least})), bits_of(0.0));
}

// Only the sum itself overflows, not what a plain sum has on the way.
TEST(OrderedReduction, OverflowsWhereTheSumDoes) {
  EXPECT_EQ(sum_of({most, most, -most}), most);
  EXPECT_EQ(sum_of({most, most}), infinity);
  EXPECT_EQ(sum_of({-most, -most, least}), -infinity);
  EXPECT_EQ(sum_of({most, 0x1p969}), most);
  EXPECT_EQ(sum_of({most, 0x1p970}), infinity);  // half a unit of the last place: to the even one, which is beyond
}

TEST(OrderedReduction, SumsSubnormalNumbersExactly) {
  EXPECT_EQ(sum_of({least, least, least}), 3 * least);
  EXPECT_EQ(sum_of({0x1p-1022, -least}), 0x1p-1022 - least);
  EXPECT_EQ(sum_of({0x1.8p-1022, -0x1p-1022, least}), 0x1p-1023 + least);
}

TEST(OrderedReduction, SumsOfWholeNumbersAreExact) {
  EXPECT_EQ(sum_of({1e15, 1, 2, 3, -4}), 1e15 + 2);
  EXPECT_EQ(sum_of({1, 0x1p-53}), 1);
  EXPECT_EQ(sum_of({1, 0x1p-53, 0x1p-53}), 1 + 0x1p-52);  // a plain sum has 1 in that order
}

TEST(OrderedReduction, MultipliesAsIeeeHasIt) {
  EXPECT_EQ(sum_of({3, -5, 7}, Op::prod), -105);
  EXPECT_EQ(sum_of({0x1p-1000, 0x1p-1000, 0x1p1000, 0x1p1000, 3}, Op::prod), 3);
  EXPECT_EQ(sum_of({most, 2, -1}, Op::prod), -infinity);
  EXPECT_EQ(sum_of({least, 0.5}, Op::prod), 0);
  EXPECT_EQ(sum_of({least, 0.75}, Op::prod), least);
  EXPECT_EQ(bits_of(sum_of({least, -0.0}, Op::prod)), bits_of(-0.0));
  EXPECT_EQ(bits_of(sum_of({infinity, 1, 0}, Op::prod)), bits_of(nan));
  EXPECT_EQ(sum_of({infinity, -1, 2}, Op::prod), -infinity);
}

TEST(OrderedReduction, ProductsAreRoundedOnce) {
  Random random(seed());
  for (int round = 0; round < 2000; ++round) {
    const auto factor = [&] { return 1 + static_cast<double>(random() >> 12) * 0x1p-52; };
    const double a = factor(), b = factor();
    EXPECT_EQ(sum_of({a, 1, b, 0.5, 1}, Op::prod), a * b * 0.5);
    const double c = factor();
    const long double exact = static_cast<long double>(a) * b * c;
    EXPECT_NEAR(static_cast<double>(sum_of({a, b, c}, Op::prod) / exact - 1), 0, 0x1.01p-53);
  }
}

TEST(OrderedReduction, WidthsFollowFromTheOperands) {
  const OrderedReduction& doubles = *ordered_reduction(Op::sum, Element::f64);
  EXPECT_EQ(doubles.wide(128)->steps.element_bytes, 8u);
  EXPECT_EQ(doubles.wide(129)->steps.element_bytes, 12u);
  const OrderedReduction& floats = *ordered_reduction(Op::sum, Element::f32);
  EXPECT_EQ(floats.wide(16)->steps.element_bytes, 4u);
  EXPECT_EQ(floats.wide(17)->steps.element_bytes, 6u);
}

}  // namespace
}  // namespace plait

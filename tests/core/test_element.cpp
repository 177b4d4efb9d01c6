#include "core/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/short_real.h"

namespace plait {
namespace {

std::vector<Element> all_elements() {
  std::vector<Element> result(static_cast<std::size_t>(Element::count_));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<Element>(i);
  return result;
}

std::vector<Op> all_ops() {
  std::vector<Op> result(static_cast<std::size_t>(Op::count_));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<Op>(i);
  return result;
}

TEST(Element, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const Element element : all_elements()) EXPECT_TRUE(names.insert(name(element)).second) << name(element);
  EXPECT_EQ(name(Element::i8), "i8");
  EXPECT_EQ(name(Element::u64), "u64");
  EXPECT_EQ(name(Element::f80), "f80");
  EXPECT_EQ(name(Element::c128), "c128");
  EXPECT_EQ(name(Element::logical64), "logical64");
  EXPECT_EQ(name(Element::byte8), "byte8");
  EXPECT_EQ(name(Element::pair_f64_f64), "pair_f64_f64");
}

TEST(Op, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const Op op : all_ops()) EXPECT_TRUE(names.insert(name(op)).second) << name(op);
  EXPECT_EQ(name(Op::max), "max");
  EXPECT_EQ(name(Op::minloc), "minloc");
}

TEST(Element, ExtentsAreThoseOfTheCTypes) {
  struct ShortInt {
    short value;
    int index;
  };
  struct DoubleInt {
    double value;
    int index;
  };
  struct LongInt {
    long value;
    int index;
  };
  struct LongDoubleInt {
    long double value;
    int index;
  };
  EXPECT_EQ(extent(Element::i8), 1u);
  EXPECT_EQ(extent(Element::u16), 2u);
  EXPECT_EQ(extent(Element::f16), 2u);
  EXPECT_EQ(extent(Element::bf16), 2u);
  EXPECT_EQ(extent(Element::f32), 4u);
  EXPECT_EQ(extent(Element::i64), 8u);
  EXPECT_EQ(extent(Element::f80), sizeof(long double));
  EXPECT_EQ(extent(Element::f128), 16u);
  EXPECT_EQ(extent(Element::c32), sizeof(std::complex<float>));
  EXPECT_EQ(extent(Element::c64), sizeof(std::complex<double>));
  EXPECT_EQ(extent(Element::c80), sizeof(std::complex<long double>));
  EXPECT_EQ(extent(Element::c128), 32u);
  EXPECT_EQ(extent(Element::bool8), sizeof(bool));
  EXPECT_EQ(extent(Element::logical32), 4u);
  EXPECT_EQ(extent(Element::byte8), 1u);
  EXPECT_EQ(extent(Element::pair_f32_i32), 8u);
  EXPECT_EQ(extent(Element::pair_i32_i32), 8u);
  EXPECT_EQ(extent(Element::pair_i16_i32), sizeof(ShortInt));
  EXPECT_EQ(extent(Element::pair_f64_i32), sizeof(DoubleInt));
  EXPECT_EQ(extent(Element::pair_i64_i32), sizeof(LongInt));
  EXPECT_EQ(extent(Element::pair_f80_i32), sizeof(LongDoubleInt));
  EXPECT_EQ(extent(Element::pair_f32_f32), 8u);
  EXPECT_EQ(extent(Element::pair_f64_f64), 16u);
}

// MPI 3.1, section 5.9.2, spelt out again: which groups of types each operator takes. Reals of 16 bits are reals.
bool legal(Op op, Element element) {
  const bool integer = element <= Element::u64;
  const bool floating = element >= Element::f16 && element <= Element::f128;
  const bool complex = element >= Element::c32 && element <= Element::c128;
  const bool logical = element >= Element::bool8 && element <= Element::logical64;
  const bool byte = element == Element::byte8;
  const bool pair = element >= Element::pair_f32_i32 && element <= Element::pair_f64_f64;
  switch (op) {
    case Op::max:
    case Op::min:
      return integer || floating;
    case Op::sum:
    case Op::prod:
      return integer || floating || complex;
    case Op::land:
    case Op::lor:
    case Op::lxor:
      return integer || logical;
    case Op::band:
    case Op::bor:
    case Op::bxor:
      return integer || byte;
    case Op::maxloc:
    case Op::minloc:
      return pair;
    case Op::count_:
      break;
  }
  return false;
}

TEST(ReduceKernel, ExistsWhereMpiDefinesTheCombination) {
  for (const Op op : all_ops()) {
    for (const Element element : all_elements()) {
      EXPECT_EQ(reduce_kernel(op, element) != nullptr, legal(op, element)) << name(op) << " of " << name(element);
    }
  }
}

// Each by way of an f32, both ways: all bits of an f16 and a bf16 come back, and what lies between two is rounded to
// the nearest, the even one where there are two.
TEST(ShortReal, IsRoundedToTheNearestAndTiesToEven) {
  for (unsigned bits = 0; bits < 0x1'0000; ++bits) {
    const auto each = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7fff) <= 0x7c00) {
      EXPECT_EQ(F16::rounded(F16::value(each)), each);
    }
    if ((bits & 0x7fff) <= 0x7f80) {
      EXPECT_EQ(Bf16::rounded(Bf16::value(each)), each);
    }
  }
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const auto below = static_cast<std::uint16_t>(bits), above = static_cast<std::uint16_t>(bits + 1);
    const float half = (F16::value(below) + F16::value(above)) / 2;
    EXPECT_EQ(F16::rounded(half), bits % 2 == 0 ? below : above);
    EXPECT_EQ(F16::rounded(std::nextafter(half, 0.0F)), below);
    EXPECT_EQ(F16::rounded(-std::nextafter(half, 1e9F)), above | 0x8000);
  }
  EXPECT_EQ(F16::rounded(65520.0F), 0x7c00);
  EXPECT_EQ(F16::rounded(65519.9F), 0x7bff);
  EXPECT_EQ(Bf16::rounded(1.0F + 1.0F / 256), 0x3f80);
  EXPECT_EQ(Bf16::rounded(1.0F + 3.0F / 256), 0x3f82);
  EXPECT_NE(F16::value(F16::rounded(std::nanf(""))), F16::value(F16::rounded(std::nanf(""))));
  EXPECT_NE(Bf16::value(Bf16::rounded(std::nanf(""))), Bf16::value(Bf16::rounded(std::nanf(""))));
}

TEST(ReduceKernel, IsTheSameForEveryThread) {
  std::vector<ReduceKernel> kernels(8);
  std::vector<std::jthread> threads;
  threads.reserve(kernels.size());
  for (ReduceKernel& kernel : kernels) threads.emplace_back([&] { kernel = reduce_kernel(Op::sum, Element::f64); });
  threads.clear();
  EXPECT_EQ(std::set<ReduceKernel>(kernels.begin(), kernels.end()).size(), 1u);
}

TEST(Reducer, AppliesTheKernel) {
  const Reducer reducer = make_reducer(Op::sum, Element::f64);
  EXPECT_EQ(reducer.kernel, reduce_kernel(Op::sum, Element::f64));
  EXPECT_EQ(reducer.element_bytes, 8u);
  const double left[3] = {1, 2, 3};
  const double right[3] = {10, 20, 30};
  double result[3] = {};
  reducer.apply(reducer, result, left, right, 3);
  EXPECT_EQ(result[0], 11);
  EXPECT_EQ(result[2], 33);
}

TEST(Reducer, KnowsWhetherTheOrderShowsInTheResult) {
  EXPECT_TRUE(make_reducer(Op::sum, Element::i32).exact);
  EXPECT_TRUE(make_reducer(Op::maxloc, Element::pair_i32_i32).exact);
  EXPECT_TRUE(make_reducer(Op::bxor, Element::byte8).exact);
  EXPECT_FALSE(make_reducer(Op::sum, Element::f64).exact);
  EXPECT_FALSE(make_reducer(Op::max, Element::f32).exact) << "of -0 and 0";
  EXPECT_FALSE(make_reducer(Op::prod, Element::c64).exact);
  EXPECT_FALSE(make_reducer(Op::minloc, Element::pair_f64_i32).exact);
  EXPECT_FALSE(Reducer().exact) << "of an operator that nothing is known of";
}

TEST(Reducer, IsEmptyWhereMpiDefinesNothing) {
  const Reducer reducer = make_reducer(Op::band, Element::f64);
  EXPECT_EQ(reducer.kernel, nullptr);
  EXPECT_EQ(reducer.apply, nullptr);
}

}  // namespace
}  // namespace plait

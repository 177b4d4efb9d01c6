// Every kernel of every instruction set of this machine against a scalar reference, bit by bit:
// lengths around all vector widths, any alignment, in place on either side, between guard pages,
// with padding watched.
#include "core/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/element.h"

namespace plait {
namespace {

using detail::TargetKernels;
using Quad = __float128;

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// ---- Reference ----

// The bytes that hold the value: x87's 80 bits stand in 16 bytes.
constexpr std::size_t long_double_bytes = std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double);
template <class T>
constexpr std::size_t value_bytes = std::is_same_v<T, long double> ? long_double_bytes : sizeof(T);

template <class T>
T get(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, value_bytes<T>);
  return value;
}

template <class T>
void put(std::byte* to, const T& value) {
  std::memcpy(to, &value, value_bytes<T>);
}

// All NaNs alike: which one a sum of two NaNs is, nobody promises.
template <class T>
T with_one_nan(T value) {
  const bool is_nan = value != value;  // NOLINT(misc-redundant-expression): isnan has no __float128
  return is_nan ? static_cast<T>(std::numeric_limits<double>::quiet_NaN()) : value;
}

template <class T>
T integer_result(Op op, T left, T right) {
  // Wide enough to hold the low bits of any result; a negative byte is meant to extend its sign.
  const auto a = static_cast<std::uint64_t>(left);   // NOLINT(bugprone-signed-char-misuse)
  const auto b = static_cast<std::uint64_t>(right);  // NOLINT(bugprone-signed-char-misuse)
  switch (op) {
    case Op::max:
      return left < right ? right : left;
    case Op::min:
      return right < left ? right : left;
    case Op::sum:
      return static_cast<T>(a + b);
    case Op::prod:
      return static_cast<T>(a * b);
    case Op::band:
      return static_cast<T>(a & b);
    case Op::bor:
      return static_cast<T>(a | b);
    case Op::bxor:
      return static_cast<T>(a ^ b);
    case Op::land:
      return left != 0 && right != 0 ? 1 : 0;
    case Op::lor:
      return left != 0 || right != 0 ? 1 : 0;
    case Op::lxor:
      return (left != 0) != (right != 0) ? 1 : 0;
    default:
      break;
  }
  ADD_FAILURE() << "no reference for " << name(op);
  return {};
}

template <class T>
T floating_result(Op op, T left, T right) {
  switch (op) {
    case Op::max:
      return left > right ? left : right;
    case Op::min:
      return left < right ? left : right;
    case Op::sum:
      return with_one_nan<T>(left + right);
    case Op::prod:
      return with_one_nan<T>(left * right);
    default:
      break;
  }
  ADD_FAILURE() << "no reference for " << name(op);
  return {};
}

// One element's way through the reference. `result` keeps the padding it has.
struct Step {
  Op op;
  std::byte* result;
  const std::byte* left;
  const std::byte* right;
};

template <class T>
struct Real {
  static constexpr std::size_t extent_bytes = sizeof(T);
  static void combine(const Step& step) {
    const T left = get<T>(step.left);
    const T right = get<T>(step.right);
    if constexpr (std::is_integral_v<T>) {
      put(step.result, integer_result<T>(step.op, left, right));
    } else {
      put(step.result, floating_result<T>(step.op, left, right));
    }
  }
  static void normalise(std::byte* element) {
    if constexpr (!std::is_integral_v<T>) put(element, with_one_nan(get<T>(element)));
  }
  template <class Draw>
  static void fill(std::byte* element, Draw&& draw) {
    put(element, draw.template value<T>());
  }
};

template <class T>
struct Complex {
  static constexpr std::size_t extent_bytes = 2 * sizeof(T);
  static void combine(const Step& step) {
    const T a = get<T>(step.left), b = get<T>(step.left + sizeof(T));
    const T c = get<T>(step.right), d = get<T>(step.right + sizeof(T));
    const bool sum = step.op == Op::sum;
    put(step.result, with_one_nan<T>(sum ? a + c : a * c - b * d));
    put(step.result + sizeof(T), with_one_nan<T>(sum ? b + d : a * d + b * c));
  }
  static void normalise(std::byte* element) {
    Real<T>::normalise(element);
    Real<T>::normalise(element + sizeof(T));
  }
  template <class Draw>
  static void fill(std::byte* element, Draw&& draw) {
    put(element, draw.template value<T>());
    put(element + sizeof(T), draw.template value<T>());
  }
};

template <class Value, class Index>
struct Pair {
  struct Layout {
    Value value;
    Index index;
  };
  static constexpr std::size_t extent_bytes = sizeof(Layout);
  static constexpr std::size_t index_offset = offsetof(Layout, index);
  static void combine(const Step& step) {
    const auto left = get<Value>(step.left);
    const auto right = get<Value>(step.right);
    const auto left_index = get<Index>(step.left + index_offset);
    const auto right_index = get<Index>(step.right + index_offset);
    bool take_left = false;
    if (left == right) {
      take_left = left_index < right_index;
    } else {
      take_left = step.op == Op::maxloc ? left > right : left < right;
    }
    put(step.result, take_left ? left : right);
    put(step.result + index_offset, take_left ? left_index : right_index);
  }
  static void normalise(std::byte*) {}  // one operand, unchanged
  template <class Draw>
  static void fill(std::byte* element, Draw&& draw) {
    put(element, draw.template tied<Value>());
    put(element + index_offset, draw.template tied<Index>());
  }
};

// ---- Operands: mostly the values where something can go wrong ----

struct Drawing {
  Random& random;
  bool truth_only;  // C's bool holds 0 and 1, nothing else

  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); }

  template <class T>
  T value() {
    if constexpr (std::is_integral_v<T>) {
      if (truth_only) return static_cast<T>(below(2));
      const std::array<T, 6> special = {
          0, 0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
      return below(3) == 0 ? special[below(special.size())] : static_cast<T>(random());
    } else {
      using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Quad>, double, T>>;
      const std::array<T, 11> special = {0,
                                         -T{0},
                                         1,
                                         static_cast<T>(Limits::denorm_min()),
                                         static_cast<T>(-Limits::denorm_min()),
                                         static_cast<T>(Limits::min()),
                                         static_cast<T>(Limits::max()),
                                         static_cast<T>(Limits::lowest()),
                                         static_cast<T>(Limits::infinity()),
                                         static_cast<T>(-Limits::infinity()),
                                         static_cast<T>(Limits::quiet_NaN())};
      if (below(3) == 0) return special[below(special.size())];
      return static_cast<T>(std::normal_distribution<double>(0, 100)(random)) / static_cast<T>(3);
    }
  }

  // Few distinct values, so that ties are frequent.
  template <class T>
  T tied() {
    if (below(8) == 0) return value<T>();
    return static_cast<T>(static_cast<int>(below(5)) - 2);
  }
};

// The reference of one element type, without its type.
struct Reference {
  std::size_t extent;
  void (*combine)(const Step&);
  void (*normalise)(std::byte*);
  void (*fill)(std::byte*, Drawing);
};

template <class Type>
constexpr Reference reference_of() {
  return {Type::extent_bytes, Type::combine, Type::normalise,
          [](std::byte* element, Drawing d) { Type::fill(element, d); }};
}

Reference reference(Element element) {
  switch (element) {
    case Element::i8:
      return reference_of<Real<std::int8_t>>();
    case Element::i16:
      return reference_of<Real<std::int16_t>>();
    case Element::i32:
      return reference_of<Real<std::int32_t>>();
    case Element::i64:
      return reference_of<Real<std::int64_t>>();
    case Element::u8:
    case Element::bool8:
    case Element::logical8:
    case Element::byte8:
      return reference_of<Real<std::uint8_t>>();
    case Element::u16:
    case Element::logical16:
      return reference_of<Real<std::uint16_t>>();
    case Element::u32:
    case Element::logical32:
      return reference_of<Real<std::uint32_t>>();
    case Element::u64:
    case Element::logical64:
      return reference_of<Real<std::uint64_t>>();
    case Element::f32:
      return reference_of<Real<float>>();
    case Element::f64:
      return reference_of<Real<double>>();
    case Element::f80:
      return reference_of<Real<long double>>();
    case Element::f128:
      return reference_of<Real<Quad>>();
    case Element::c32:
      return reference_of<Complex<float>>();
    case Element::c64:
      return reference_of<Complex<double>>();
    case Element::c80:
      return reference_of<Complex<long double>>();
    case Element::c128:
      return reference_of<Complex<Quad>>();
    case Element::pair_f32_i32:
      return reference_of<Pair<float, std::int32_t>>();
    case Element::pair_f64_i32:
      return reference_of<Pair<double, std::int32_t>>();
    case Element::pair_i64_i32:
      return reference_of<Pair<std::int64_t, std::int32_t>>();
    case Element::pair_i32_i32:
      return reference_of<Pair<std::int32_t, std::int32_t>>();
    case Element::pair_i16_i32:
      return reference_of<Pair<std::int16_t, std::int32_t>>();
    case Element::pair_f80_i32:
      return reference_of<Pair<long double, std::int32_t>>();
    case Element::pair_f32_f32:
      return reference_of<Pair<float, float>>();
    case Element::pair_f64_f64:
      return reference_of<Pair<double, double>>();
    case Element::count_:
      break;
  }
  return {};
}

bool makes_nans(Op op) { return op == Op::sum || op == Op::prod; }

// ---- Memory ----

// Some pages with an unreadable one on either side: a step outside is a crash, not luck.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (bytes + page - 1) / page * page;
    mapped_ = size_ + 2 * page;
    void* memory = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    first_ = static_cast<std::byte*>(memory) + page;
    if (::mprotect(first_, size_, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~GuardedPages() { ::munmap(first_ - (mapped_ - size_) / 2, mapped_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  std::byte* first() const { return first_; }
  // The last `bytes` but `gap`.
  std::byte* last(std::size_t bytes, std::size_t gap = 0) const { return first_ + size_ - gap - bytes; }

 private:
  std::byte* first_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

// ---- The sweep ----

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const auto given = static_cast<std::uint64_t>(::testing::GTEST_FLAG(random_seed));
    return given != 0 ? given : std::random_device()() % 99999 + 1;
  }();
  return value;
}

const std::vector<TargetKernels>& targets() {
  static const std::vector<TargetKernels> value = detail::kernel_tables_of_all_targets();
  return value;
}

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
            .reference = reference(element),
            .left = {},
            .right = {},
            .before = {},
            .expected = {}};
  const std::size_t bytes = long_lengths.back() * made.reference.extent;
  const Drawing drawing{random, element == Element::bool8};
  for (Bytes* operand : {&made.left, &made.right, &made.before}) {
    operand->resize(bytes);
    for (std::byte& b : *operand) b = static_cast<std::byte>(random());  // padding is not zero
  }
  for (Bytes* operand : {&made.left, &made.right}) {
    for (std::size_t i = 0; i < bytes; i += made.reference.extent) made.reference.fill(operand->data() + i, drawing);
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

  GuardedPages result_{long_lengths.back() * 32 + 64}, left_{long_lengths.back() * 32 + 64},
      right_{long_lengths.back() * 32 + 64};
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

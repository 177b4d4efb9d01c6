#include "core/reproducible/ordered_reduction.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "core/reproducible/ordered_kernels.h"
#include "core/reproducible/ordered_product.h"
#include "core/reproducible/ordered_sum.h"
#include "core/reproducible/wide_sum.h"

namespace plait {
namespace detail {
namespace {

constexpr std::size_t most_value_bytes = 2 * sizeof(long double);
// Operands that need no memory of the heap.
constexpr std::size_t few_operands = 64;

// Room for one value of each operand.
template <class Value>
class Room {
 public:
  explicit Room(std::size_t operands) {
    if (operands > few_operands) many_.resize(operands);
    values_ = {operands > few_operands ? many_.data() : few_.data(), operands};
  }
  std::span<Value> values() const { return values_; }

 private:
  std::array<Value, few_operands> few_;
  std::vector<Value> many_;
  std::span<Value> values_;
};

template <class F>
void write_to_all(const ManyOperands& of, std::size_t offset, const std::byte* value) {
  for (std::size_t r = 0; r < of.result_count; ++r) std::memcpy(of.results[r] + offset, value, F::value_bytes);
}

// ---- Of all operands at once ----

template <class F>
void sum_range(const ManyOperands& of, std::size_t begin, std::size_t end) {
  std::array<std::byte, most_value_bytes> sum{};
  for (std::size_t offset = begin * F::extent; offset < end * F::extent; offset += F::extent) {
    int key = 0;
    for (std::size_t s = 0; s < of.source_count; ++s) key = std::max(key, key_of(real_of<F>(of.sources[s] + offset)));
    GridSum<F> all(key);
    for (std::size_t s = 0; s < of.source_count; ++s) all.add(real_of<F>(of.sources[s] + offset));
    all.store(sum.data());
    write_to_all<F>(of, offset, sum.data());
  }
}

template <class F>
SumKernel vector_sum() {
  if constexpr (std::is_same_v<F, F32>) return ordered_kernels().f32.sum;
  if constexpr (std::is_same_v<F, F64>) return ordered_kernels().f64.sum;
  return nullptr;
}

template <class F, std::size_t Reals>
void sum_at_once(const ManyOperands& of) {
  const std::size_t reals = of.elements * Reals;
  const SumKernel kernel = vector_sum<F>();
  const bool fits = kernel != nullptr && of.source_count <= most_vector_operands && rounds_to_nearest();
  return fits ? kernel(of, reals, sum_range<F>) : sum_range<F>(of, 0, reals);
}

template <class F>
void product_at_once(const ManyOperands& of) {
  const Room<Uint128> room(of.source_count);
  std::array<std::byte, most_value_bytes> product{};
  for (std::size_t i = 0, offset = 0; i < of.elements; ++i, offset += F::extent) {
    store_product<F>(product.data(), room.values(), [&](std::size_t s) { return of.sources[s] + offset; });
    write_to_all<F>(of, offset, product.data());
  }
}

// The values' bytes, whatever stands in the padding.
template <class F>
bool comes_before(const std::byte* a, const std::byte* b) {
  const int real = std::memcmp(a, b, F::value_bytes);
  return real != 0 ? real < 0 : std::memcmp(a + F::extent, b + F::extent, F::value_bytes) < 0;
}

// Complex products round in each step, and how depends on both parts: they are taken in the order of the operands'
// bits, by the kernel that others use.
template <class F, Element Complex>
void complex_product_at_once(const ManyOperands& of) {
  static const ReduceKernel multiply_two = reduce_kernel(Op::prod, Complex);
  const Room<const std::byte*> room(of.source_count);
  const std::span<const std::byte*> operands = room.values();
  std::array<std::byte, 2 * F::extent> product{};
  for (std::size_t i = 0, offset = 0; i < of.elements; ++i, offset += 2 * F::extent) {
    for (std::size_t s = 0; s < of.source_count; ++s) operands[s] = of.sources[s] + offset;
    std::ranges::sort(operands, comes_before<F>);
    std::memcpy(product.data(), operands[0], product.size());
    for (const std::byte* operand : operands.subspan(1)) multiply_two(product.data(), product.data(), operand, 1);
    for (const std::size_t part : {std::size_t{0}, F::extent}) {
      if (real_of<F>(product.data() + part).kind == Kind::nan) store_nan<F>(product.data() + part);
      write_to_all<F>(of, offset + part, product.data() + part);
    }
  }
}

// ---- As reducers ----

template <ManyKernel AtOnce>
void of_two(void* result, const void* left, const void* right, std::size_t count) {
  std::byte* const to = static_cast<std::byte*>(result);
  const std::array<const std::byte*, 2> both = {static_cast<const std::byte*>(left),
                                                static_cast<const std::byte*>(right)};
  AtOnce({.results = &to,
          .result_count = 1,
          .sources = both.data(),
          .source_count = both.size(),
          .elements = count,
          .streaming = false});
}

template <ManyKernel AtOnce>
Reducer reducer_of(Op op, Element element) {
  Reducer reducer = make_reducer(op, element);
  reducer.kernel = of_two<AtOnce>;
  reducer.many = AtOnce;
  return reducer;
}

using Table = std::array<std::array<OrderedReduction, static_cast<std::size_t>(Element::count_)>,
                         static_cast<std::size_t>(Op::count_)>;

OrderedReduction& at(Table& table, Op op, Element element) {
  return table[static_cast<std::size_t>(op)][static_cast<std::size_t>(element)];
}

template <class F, Element Number, Element Complex>
void add_format(Table& table) {
  at(table, Op::sum, Number).at_once = reducer_of<sum_at_once<F, 1>>(Op::sum, Number);
  at(table, Op::sum, Complex).at_once = reducer_of<sum_at_once<F, 2>>(Op::sum, Complex);
  at(table, Op::prod, Number).at_once = reducer_of<product_at_once<F>>(Op::prod, Number);
  at(table, Op::prod, Complex).at_once = reducer_of<complex_product_at_once<F, Complex>>(Op::prod, Complex);
}

const Table& ordered_table() {
  static const Table table = [] {
    Table made;
    add_format<F32, Element::f32, Element::c32>(made);
    add_format<F64, Element::f64, Element::c64>(made);
    add_format<F80, Element::f80, Element::c80>(made);
    add_format<F128, Element::f128, Element::c128>(made);
    at(made, Op::sum, Element::f32).wide = [](int operands) { return wide_sum_of_f32(1, operands); };
    at(made, Op::sum, Element::c32).wide = [](int operands) { return wide_sum_of_f32(2, operands); };
    at(made, Op::sum, Element::f64).wide = [](int operands) { return wide_sum_of_f64(1, operands); };
    at(made, Op::sum, Element::c64).wide = [](int operands) { return wide_sum_of_f64(2, operands); };
    return made;
  }();
  return table;
}

}  // namespace
}  // namespace detail

const OrderedReduction* ordered_reduction(Op op, Element element) {
  if (op >= Op::count_ || element >= Element::count_) return nullptr;
  const OrderedReduction& found =
      detail::ordered_table()[static_cast<std::size_t>(op)][static_cast<std::size_t>(element)];
  return found.at_once.apply != nullptr ? &found : nullptr;
}

}  // namespace plait

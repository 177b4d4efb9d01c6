#include "plugin/ucc/types.h"

#include <array>
#include <cstdint>
#include <optional>

#include "core/element.h"
#include "core/reduction.h"
#include "core/short_real.h"

namespace plait::plugin {
namespace {

struct Known {
  ucc_datatype_t type;
  std::size_t bytes;
  std::optional<Element> element;  // nothing: it is moved, not reduced
};

// UCC's 128-bit reals are the compiler's long double, as its own reductions have them.
constexpr bool long_double_fills = sizeof(long double) == 16;
constexpr std::optional<Element> long_real = long_double_fills ? std::optional(Element::f80) : std::nullopt;
constexpr std::optional<Element> long_complex = long_double_fills ? std::optional(Element::c80) : std::nullopt;

const std::array<Known, UCC_DT_PREDEFINED_LAST> known = {{
    {UCC_DT_INT8, 1, Element::i8},
    {UCC_DT_INT16, 2, Element::i16},
    {UCC_DT_INT32, 4, Element::i32},
    {UCC_DT_INT64, 8, Element::i64},
    {UCC_DT_INT128, 16, {}},
    {UCC_DT_UINT8, 1, Element::u8},
    {UCC_DT_UINT16, 2, Element::u16},
    {UCC_DT_UINT32, 4, Element::u32},
    {UCC_DT_UINT64, 8, Element::u64},
    {UCC_DT_UINT128, 16, {}},
    {UCC_DT_FLOAT16, 2, Element::f16},
    {UCC_DT_FLOAT32, 4, Element::f32},
    {UCC_DT_FLOAT64, 8, Element::f64},
    {UCC_DT_BFLOAT16, 2, Element::bf16},
    {UCC_DT_FLOAT128, 16, long_real},
    {UCC_DT_FLOAT32_COMPLEX, 8, Element::c32},
    {UCC_DT_FLOAT64_COMPLEX, 16, Element::c64},
    {UCC_DT_FLOAT128_COMPLEX, 32, long_complex},
}};

std::size_t number_of(ucc_datatype_t type) { return static_cast<std::size_t>(type >> UCC_DATATYPE_SHIFT); }

constexpr std::size_t operators = static_cast<std::size_t>(Op::count_);
using Reducers = std::array<Reducer, operators>;

struct Table {
  std::array<Reducers, known.size()> reducers;
  std::array<TypeFacts, known.size()> facts;
  std::array<std::uint8_t, UCC_DT_PREDEFINED_LAST> place{};  // by UCC's number of the type

  Table() {
    for (std::size_t i = 0; i < known.size(); ++i) {
      place[number_of(known[i].type)] = static_cast<std::uint8_t>(i);
      facts[i].size = facts[i].true_extent = known[i].bytes;
      facts[i].extent = static_cast<std::ptrdiff_t>(known[i].bytes);
      facts[i].contiguous = facts[i].gapless = facts[i].predefined = true;
      for (std::size_t op = 0; known[i].element && op < operators; ++op)
        reducers[i][op] = make_reducer(static_cast<Op>(op), *known[i].element);
      facts[i].reducers = reducers[i].data();
    }
  }
};

constexpr Operator operator_for(Op op) { return {.op = op}; }
// By ucc_reduction_op_t; those of pairs, which UCC has no types for, are left out.
constexpr std::array<Operator, UCC_OP_LAST> by_number = {{
    operator_for(Op::sum),
    operator_for(Op::prod),
    operator_for(Op::max),
    operator_for(Op::min),
    operator_for(Op::land),
    operator_for(Op::lor),
    operator_for(Op::lxor),
    operator_for(Op::band),
    operator_for(Op::bor),
    operator_for(Op::bxor),
    operator_for(Op::count_),
    operator_for(Op::count_),
    operator_for(Op::sum),
}};
static_assert(UCC_OP_SUM == 0 && UCC_OP_BXOR == 9 && UCC_OP_AVG == 12);

template <class Real>
void divide_reals(void* elements, std::size_t count, int by) {
  auto* values = static_cast<Real*>(elements);
  for (std::size_t i = 0; i < count; ++i) values[i] /= static_cast<Real>(by);
}

template <class Format>
void divide_short_reals(void* elements, std::size_t count, int by) {
  auto* values = static_cast<std::uint16_t*>(elements);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = Format::rounded(Format::value(values[i]) / static_cast<float>(by));
}

}  // namespace

const TypeFacts* type_of(ucc_datatype_t type) {
  static const Table* table = new Table;  // calls may come until the process ends
  const std::size_t number = number_of(type);
  if (number >= known.size()) return nullptr;
  const std::size_t place = table->place[number];
  return known[place].type == type ? &table->facts[place] : nullptr;
}

const Operator* operator_of(ucc_reduction_op_t op) {
  const auto number = static_cast<std::size_t>(op);
  return number < by_number.size() && by_number[number].op != Op::count_ ? &by_number[number] : nullptr;
}

bool has_average(ucc_datatype_t type) {
  for (const ucc_datatype_t one : {UCC_DT_FLOAT16, UCC_DT_BFLOAT16, UCC_DT_FLOAT32, UCC_DT_FLOAT64, UCC_DT_FLOAT128,
                                   UCC_DT_FLOAT32_COMPLEX, UCC_DT_FLOAT64_COMPLEX, UCC_DT_FLOAT128_COMPLEX})
    if (one == type) return true;
  return false;
}

void divide(void* elements, std::size_t count, ucc_datatype_t type, int by) {
  if (type == UCC_DT_FLOAT16) return divide_short_reals<F16>(elements, count, by);
  if (type == UCC_DT_BFLOAT16) return divide_short_reals<Bf16>(elements, count, by);
  if (type == UCC_DT_FLOAT32) return divide_reals<float>(elements, count, by);
  if (type == UCC_DT_FLOAT64) return divide_reals<double>(elements, count, by);
  if (type == UCC_DT_FLOAT128) return divide_reals<long double>(elements, count, by);
  if (type == UCC_DT_FLOAT32_COMPLEX) return divide_reals<float>(elements, 2 * count, by);
  if (type == UCC_DT_FLOAT64_COMPLEX) return divide_reals<double>(elements, 2 * count, by);
  if (type == UCC_DT_FLOAT128_COMPLEX) return divide_reals<long double>(elements, 2 * count, by);
}

}  // namespace plait::plugin

#include "core/reproducible/wide_sum.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/reproducible/ordered_kernels.h"
#include "core/reproducible/ordered_sum.h"

namespace plait::detail {
namespace {

// ---- Whole numbers of some bytes ----

// As one that the processor computes with: in its low bytes where there is none of that width.
template <std::size_t Bytes>
using Whole = std::conditional_t<(Bytes > 8), Int128, std::conditional_t<(Bytes > 4), std::int64_t, std::int32_t>>;

template <std::size_t Bytes>
Whole<Bytes> load(const std::byte* at) {
  using Word = Whole<Bytes>;
  constexpr int above = 8 * (sizeof(Word) - Bytes);
  Word word = 0;
  std::memcpy(&word, at, Bytes);
  if constexpr (above == 0) return word;
  using Unsigned = std::conditional_t<(Bytes > 8), Uint128, std::uint64_t>;
  return static_cast<Word>(static_cast<Unsigned>(word) << above) >> above;
}

template <std::size_t Bytes>
void add(void* result, const void* left, const void* right, std::size_t count) {
  auto* to = static_cast<std::byte*>(result);
  const auto *a = static_cast<const std::byte*>(left), *b = static_cast<const std::byte*>(right);
  for (std::size_t i = 0; i < count * Bytes; i += Bytes) {
    const Whole<Bytes> sum = load<Bytes>(a + i) + load<Bytes>(b + i);
    std::memcpy(to + i, &sum, Bytes);
  }
}

template <std::size_t Bytes>
void apply_add(const Reducer&, void* result, const void* left, const void* right, std::size_t count) {
  add<Bytes>(result, left, right, count);
}

template <std::size_t Bytes>
Reducer adding() {
  if constexpr (Bytes == 4) return make_reducer(Op::sum, Element::i32);
  if constexpr (Bytes == 8) return make_reducer(Op::sum, Element::i64);
  return {.apply = apply_add<Bytes>,
          .kernel = add<Bytes>,
          .many = nullptr,
          .context = nullptr,
          .element_bytes = Bytes,
          .exact = true};
}

// ---- Keys and steps ----

// What is not finite is counted, by kind, in parts of a whole number that cannot run over.
template <std::size_t Bytes>
struct Counts {
  static constexpr int bits = static_cast<int>(8 * Bytes / 3);
  using Word = Whole<Bytes>;
  static constexpr Word positive = 1, negative = Word{1} << bits, nan = Word{1} << (2 * bits);

  static Word of(bool is_nan, bool is_negative) { return is_nan ? nan : is_negative ? negative : positive; }
  static Specials read(Word word) {
    constexpr Word all = (Word{1} << bits) - 1;
    return {.nan = word >> (2 * bits) != 0, .positive = (word & all) != 0, .negative = (word >> bits & all) != 0};
  }
};

template <class F>
using Key = std::conditional_t<(F::field_bits > 8), std::uint16_t, std::uint8_t>;

template <class F, std::size_t Bytes>
void cut(void* steps, const void* operands, const void* largest_keys, std::size_t count) {
  using Word = Whole<Bytes>;
  auto* to = static_cast<std::byte*>(steps);
  const auto* from = static_cast<const std::byte*>(operands);
  const auto* keys = static_cast<const Key<F>*>(largest_keys);
  for (std::size_t i = 0; i < count; ++i) {
    const Real<F> real = real_of<F>(from + i * F::extent);
    Word word = 0;
    if (keys[i] != F::special_field)
      word = real.negative ? -static_cast<Word>(steps_of(real, keys[i])) : static_cast<Word>(steps_of(real, keys[i]));
    else if (real.kind != Kind::finite)
      word = Counts<Bytes>::of(real.kind == Kind::nan, real.negative);
    std::memcpy(to + i * Bytes, &word, Bytes);
  }
}

template <class F, std::size_t Bytes>
void round(void* results, const void* steps, const void* largest_keys, std::size_t count) {
  using Unsigned = std::conditional_t<(Bytes > 8), Uint128, std::uint64_t>;
  auto* to = static_cast<std::byte*>(results);
  const auto* from = static_cast<const std::byte*>(steps);
  const auto* keys = static_cast<const Key<F>*>(largest_keys);
  for (std::size_t i = 0; i < count; ++i) {
    const Whole<Bytes> sum = load<Bytes>(from + i * Bytes);
    if (keys[i] == F::special_field) {
      Counts<Bytes>::read(sum).template store_sum<F>(to + i * F::extent);
    } else {
      const auto bits = static_cast<Unsigned>(sum);
      store_sum<F>(to + i * F::extent, keys[i], sum < 0, sum < 0 ? Unsigned{0} - bits : bits);
    }
  }
}

// ---- By vectors, where steps are as wide as the type ----

template <class F>
const auto& vector_kernels() {
  if constexpr (std::is_same_v<F, F32>)
    return ordered_kernels().f32;
  else
    return ordered_kernels().f64;
}

template <class F>
void cut_by_vectors(void* steps, const void* operands, const void* largest_keys, std::size_t count) {
  vector_kernels<F>().cut(steps, operands, largest_keys, count, cut<F, F::extent>);
}

template <class F>
void round_by_vectors(void* results, const void* steps, const void* largest_keys, std::size_t count) {
  if (!rounds_to_nearest()) return round<F, F::extent>(results, steps, largest_keys, count);
  vector_kernels<F>().round(results, steps, largest_keys, count, round<F, F::extent>);
}

// ---- Which width ----

// How many operands a width has room for: of steps, and of counts.
template <class F, std::size_t Bytes>
constexpr std::int64_t most_operands() {
  constexpr int beyond = static_cast<int>(8 * Bytes) - 1 - F::precision - guard_bits;
  constexpr int bits = beyond < Counts<Bytes>::bits - 1 ? beyond : Counts<Bytes>::bits - 1;
  return std::int64_t{1} << bits;
}

template <class F, std::size_t Bytes>
WideSum make_wide_sum(std::size_t reals) {
  constexpr bool as_wide = Bytes == F::extent;
  constexpr Element key = sizeof(Key<F>) == 1 ? Element::u8 : Element::u16;
  return {.reals = reals,
          .keys = make_reducer(Op::max, key),
          .steps = adding<Bytes>(),
          .real_bytes = F::extent,
          .make_keys = vector_kernels<F>().make_keys,
          .cut = as_wide ? cut_by_vectors<F> : cut<F, Bytes>,
          .round = as_wide ? round_by_vectors<F> : round<F, Bytes>};
}

template <class F, std::size_t Bytes>
const WideSum* wide_sum(int reals) {
  static const std::array<WideSum, 2> sums = {make_wide_sum<F, Bytes>(1), make_wide_sum<F, Bytes>(2)};
  return &sums[static_cast<std::size_t>(reals - 1)];
}

template <class F, std::size_t Narrow, std::size_t Wide>
const WideSum* narrowest(int reals, int operands) {
  if (operands <= most_operands<F, Narrow>()) return wide_sum<F, Narrow>(reals);
  if (operands <= most_operands<F, Wide>()) return wide_sum<F, Wide>(reals);
  return nullptr;
}

}  // namespace

const WideSum* wide_sum_of_f32(int reals, int operands) { return narrowest<F32, 4, 6>(reals, operands); }
const WideSum* wide_sum_of_f64(int reals, int operands) { return narrowest<F64, 8, 12>(reals, operands); }

}  // namespace plait::detail

#include "core/element.h"

#include <array>

namespace plait {
namespace {

template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

constexpr std::size_t quad_bytes = 16;

struct Properties {
  std::string_view name;
  std::size_t extent;
};

// In the order of Element.
constexpr auto properties = std::to_array<Properties>({
    {"i8", 1},
    {"i16", 2},
    {"i32", 4},
    {"i64", 8},
    {"u8", 1},
    {"u16", 2},
    {"u32", 4},
    {"u64", 8},
    {"f16", 2},
    {"bf16", 2},
    {"f32", 4},
    {"f64", 8},
    {"f80", sizeof(long double)},
    {"f128", quad_bytes},
    {"c32", 8},
    {"c64", 16},
    {"c80", 2 * sizeof(long double)},
    {"c128", 2 * quad_bytes},
    {"bool8", 1},
    {"logical8", 1},
    {"logical16", 2},
    {"logical32", 4},
    {"logical64", 8},
    {"byte8", 1},
    {"pair_f32_i32", sizeof(Pair<float, std::int32_t>)},
    {"pair_f64_i32", sizeof(Pair<double, std::int32_t>)},
    {"pair_i64_i32", sizeof(Pair<std::int64_t, std::int32_t>)},
    {"pair_i32_i32", sizeof(Pair<std::int32_t, std::int32_t>)},
    {"pair_i16_i32", sizeof(Pair<std::int16_t, std::int32_t>)},
    {"pair_f80_i32", sizeof(Pair<long double, std::int32_t>)},
    {"pair_f32_f32", sizeof(Pair<float, float>)},
    {"pair_f64_f64", sizeof(Pair<double, double>)},
});
static_assert(properties.size() == static_cast<std::size_t>(Element::count_));

constexpr auto op_names = std::to_array<std::string_view>(
    {"max", "min", "sum", "prod", "land", "band", "lor", "bor", "lxor", "bxor", "maxloc", "minloc"});
static_assert(op_names.size() == static_cast<std::size_t>(Op::count_));

}  // namespace

std::string_view name(Element element) { return properties[static_cast<std::size_t>(element)].name; }

std::string_view name(Op op) { return op_names[static_cast<std::size_t>(op)]; }

std::size_t extent(Element element) { return properties[static_cast<std::size_t>(element)].extent; }

}  // namespace plait

#include "runtime/types/element_kind.h"

#include <initializer_list>

namespace plait::runtime {
namespace {

// The candidate whose size is `bytes`.
struct Sized {
  std::size_t bytes;
  Element element;
};
std::optional<Element> pick(std::size_t bytes, std::initializer_list<Sized> candidates) {
  for (const Sized& candidate : candidates)
    if (candidate.bytes == bytes) return candidate.element;
  return std::nullopt;
}

std::optional<Element> scalar_element(ElementKind kind, std::size_t bytes) {
  switch (kind) {
    case ElementKind::signed_integer:
      return pick(bytes, {{1, Element::i8}, {2, Element::i16}, {4, Element::i32}, {8, Element::i64}});
    case ElementKind::unsigned_integer:
      return pick(bytes, {{1, Element::u8}, {2, Element::u16}, {4, Element::u32}, {8, Element::u64}});
    case ElementKind::real:
      return pick(bytes, {{4, Element::f32}, {8, Element::f64}, {16, Element::f128}});
    case ElementKind::complex:
      return pick(bytes, {{8, Element::c32}, {16, Element::c64}, {32, Element::c128}});
    case ElementKind::logical:
      return pick(bytes,
                  {{1, Element::logical8}, {2, Element::logical16}, {4, Element::logical32}, {8, Element::logical64}});
    case ElementKind::long_real:
      return Element::f80;
    case ElementKind::long_complex:
      return Element::c80;
    case ElementKind::boolean:
      return Element::bool8;
    case ElementKind::byte:
      return Element::byte8;
    default:
      return std::nullopt;
  }
}

std::optional<Element> any_element(ElementKind kind, std::size_t bytes) {
  switch (kind) {
    case ElementKind::pair_float_int:
      return Element::pair_f32_i32;
    case ElementKind::pair_double_int:
      return Element::pair_f64_i32;
    case ElementKind::pair_long_int:
      return sizeof(long) == 8 ? Element::pair_i64_i32 : Element::pair_i32_i32;
    case ElementKind::pair_two_int:
      return Element::pair_i32_i32;
    case ElementKind::pair_short_int:
      return Element::pair_i16_i32;
    case ElementKind::pair_long_double_int:
      return Element::pair_f80_i32;
    case ElementKind::pair_two_real:
      return Element::pair_f32_f32;
    case ElementKind::pair_two_double:
      return Element::pair_f64_f64;
    default:
      return scalar_element(kind, bytes);
  }
}

}  // namespace

std::optional<Element> element_of(ElementKind kind, const Layout& layout) {
  const std::optional<Element> element = any_element(kind, layout.size);
  if (!element || extent(*element) != static_cast<std::size_t>(layout.extent)) return std::nullopt;
  return element;
}

bool has_long_reals(ElementKind kind, std::size_t bytes) {
  constexpr std::size_t real_bytes = 16;
  const bool made_of_them =
      kind == ElementKind::long_real || kind == ElementKind::long_complex || kind == ElementKind::pair_long_double_int;
  return made_of_them || (kind == ElementKind::real && bytes == real_bytes) ||
         (kind == ElementKind::complex && bytes == 2 * real_bytes);
}

}  // namespace plait::runtime

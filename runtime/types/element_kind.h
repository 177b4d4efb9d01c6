// Which of core's elements the types are that come with a caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/element.h"
#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::runtime {

// How the bytes of a type are to be understood.
enum class ElementKind : std::uint8_t {
  opaque,  // moved, not reduced
  signed_integer,
  unsigned_integer,
  real,
  long_real,
  complex,
  long_complex,
  boolean,
  logical,
  byte,
  pair_float_int,
  pair_double_int,
  pair_long_int,
  pair_two_int,
  pair_short_int,
  pair_long_double_int,
  pair_two_real,
  pair_two_double,
};

// The element of that kind which lies in memory as the layout says; nullopt: there is none.
std::optional<Element> element_of(ElementKind kind, const Layout& layout);

// Whether a type of so many bytes is made of 16-byte reals.
bool has_long_reals(ElementKind kind, std::size_t bytes);

}  // namespace plait::runtime

// Counts or displacements by place, as a caller has them: integers of its own width.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/layer.h"

namespace plait::runtime {

enum class NumberKind : std::uint8_t { i32, u32, i64 };  // i64: also of a caller's unsigned ones, which are as small

inline std::int64_t number_at(const void* numbers, NumberKind kind, std::size_t place) {
  if (kind == NumberKind::i32) [[likely]]
    return static_cast<const std::int32_t*>(numbers)[place];
  return kind == NumberKind::u32 ? static_cast<std::int64_t>(static_cast<const std::uint32_t*>(numbers)[place])
                                 : static_cast<const std::int64_t*>(numbers)[place];
}

// Not owned.
struct NumberList {
  const void* numbers = nullptr;  // nullptr: there are none
  NumberKind kind = NumberKind::i32;

  NumberList() = default;
  NumberList(const int* list) : numbers(list) {}  // as MPI has them
  NumberList(const void* list, NumberKind of) : numbers(list), kind(of) {}
  static NumberList unsigned_32(const std::uint32_t* list) { return {list, NumberKind::u32}; }
  static NumberList unsigned_64(const std::uint64_t* list) { return {list, NumberKind::i64}; }

  bool given() const { return numbers != nullptr; }
  std::int64_t operator[](std::size_t place) const { return number_at(numbers, kind, place); }
};

}  // namespace plait::runtime

// A short hash of a text, the same on every machine and in every version: what ranks compare, and what files are named
// by. Against nobody's malice (keyed_hash.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace plait {

inline constexpr std::uint64_t hash_begin = 0xcbf29ce484222325u;

// FNV-1a, 64 bits (Fowler, Noll, Vo). `hash`: of what stands before the text.
constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t hash = hash_begin) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace plait

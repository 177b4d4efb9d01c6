#pragma once
#include <cstring>
#include "core/element.h"
#if !__has_include("core/reduce_many.h")
namespace plait {
struct ManyOperands {
  std::byte* const* results;
  std::size_t result_count;
  const std::byte* const* sources;
  std::size_t source_count;
  std::size_t elements;
  bool streaming;
};
inline void reduce_many(const Reducer& r, const ManyOperands& o) {
  const std::size_t piece = 4096 / r.element_bytes > 0 ? 4096 / r.element_bytes : 1;
  for (std::size_t at = 0; at < o.elements; at += piece) {
    const std::size_t n = o.elements - at < piece ? o.elements - at : piece;
    const std::size_t off = at * r.element_bytes;
    alignas(64) static thread_local std::byte buffer[8192];
    const std::byte* left = o.sources[0] + off;
    for (std::size_t k = 1; k < o.source_count; ++k) {
      if (r.kernel)
        r.kernel(buffer, left, o.sources[k] + off, n);
      else
        r.apply(r, buffer, left, o.sources[k] + off, n);
      left = buffer;
    }
    for (std::size_t j = 0; j < o.result_count; ++j) std::memcpy(o.results[j] + off, left, n * r.element_bytes);
  }
}
}  // namespace plait
#endif

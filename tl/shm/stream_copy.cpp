#include "tl/shm/stream_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/work_team.h"
#include "tl/memory.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace plait::tl::detail {
namespace {

#if defined(__SSE2__)

void stream_unordered(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t unaligned = std::min<std::size_t>(-reinterpret_cast<std::uintptr_t>(to) % 64, bytes);
  std::memcpy(to, from, unaligned);
  to += unaligned;
  from += unaligned;
  bytes -= unaligned;
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
    const __m128i* source = reinterpret_cast<const __m128i*>(from);
    __m128i* destination = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(destination, a);
    _mm_stream_si128(destination + 1, b);
    _mm_stream_si128(destination + 2, c);
    _mm_stream_si128(destination + 3, d);
  }
  std::memcpy(to, from, bytes);
}

// Streaming stores are not ordered by a release store.
void fence() { _mm_sfence(); }

#else

void stream_unordered(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void fence() {}

#endif

// Other threads order what they stored themselves.
void stream_shared(std::byte* to, const std::byte* from, std::size_t bytes) {
  share_out({.elements = bytes, .element_bytes = 1, .written = to}, [&](std::size_t begin, std::size_t count) {
    stream_unordered(to + begin, from + begin, count);
    if (count != bytes) fence();
  });
}

}  // namespace

void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  stream_shared(to, from, bytes);
  fence();
}

void stream_out(const Memory& from, std::uint64_t offset, std::byte* to, std::size_t bytes) {
  for (MemoryCursor cursor(from, offset); bytes > 0;) {
    std::size_t piece = bytes;
    if (cursor.in_short_runs()) {
      std::array<std::byte, 2048> gathered;
      piece = std::min(piece, gathered.size());
      cursor.take(gathered.data(), piece);
      stream_unordered(to, gathered.data(), piece);
    } else {
      piece = std::min<std::size_t>(cursor.contiguous(), piece);
      stream_shared(to, cursor.data(), piece);
      cursor.advance(piece);
    }
    to += piece;
    bytes -= piece;
  }
  fence();
}

// Lines that are written in part are not worth to be streamed.
void stream_in(const Memory& to, std::uint64_t offset, const std::byte* from, std::size_t bytes) {
  for (MemoryCursor cursor(to, offset); bytes > 0;) {
    std::size_t piece = bytes;
    if (cursor.in_short_runs()) {
      cursor.put(from, piece);
    } else {
      piece = std::min<std::size_t>(cursor.contiguous(), piece);
      stream_shared(cursor.data(), from, piece);
      cursor.advance(piece);
    }
    from += piece;
    bytes -= piece;
  }
  fence();
}

}  // namespace plait::tl::detail

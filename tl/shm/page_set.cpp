#include "tl/shm/page_set.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

namespace plait::tl {
namespace {

std::size_t bytes_for(std::uint32_t pages) { return (std::size_t{pages} + 63) / 64 * sizeof(std::uint64_t); }

}  // namespace

PageSet::~PageSet() {
  if (words_ != nullptr) munmap(static_cast<void*>(words_), bytes_for(pages_));
}

bool PageSet::create(std::uint32_t pages) {
  void* memory =
      mmap(nullptr, bytes_for(pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  words_ = static_cast<std::atomic<std::uint64_t>*>(memory);
  pages_ = pages;
  return true;
}

void PageSet::insert(Span span) { set(span, true); }

void PageSet::erase(Span span) { set(span, false); }

void PageSet::set(Span span, bool in) {
  for (std::uint32_t page = span.first; page < end_of(span); ++page) {
    if (holds(page) == in) continue;
    const std::uint64_t bit = std::uint64_t{1} << (page % word_bits);
    words_[page / word_bits].fetch_xor(bit, std::memory_order_relaxed);
    if (in)
      count_.fetch_add(1, std::memory_order_release);
    else
      count_.fetch_sub(1, std::memory_order_release);
  }
}

// Words without a page that is looked for are passed at once.
std::uint32_t PageSet::first_from(std::uint32_t from, std::uint32_t end, bool in) const {
  const std::uint64_t uninteresting = in ? 0 : ~std::uint64_t{0};
  while (from < end && holds(from) != in) {
    const bool skips_word =
        from % word_bits == 0 && words_[from / word_bits].load(std::memory_order_relaxed) == uninteresting;
    from += skips_word ? std::min(word_bits, end - from) : 1;
  }
  return from;
}

Span PageSet::run(Span span, std::uint32_t from, bool in) const {
  const std::uint32_t first = first_from(std::max(from, span.first), end_of(span), in);
  return {.first = first, .pages = first_from(first, end_of(span), !in) - first};
}

}  // namespace plait::tl

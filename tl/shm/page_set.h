// A set of a shared heap's pages: a bit for each. Looks may be taken while another thread changes the set; changes need
// a lock around them. Makes no system call after create().
#pragma once

#include <atomic>
#include <cstdint>

#include "tl/shm/span_table.h"

namespace plait::tl {

class PageSet {
 public:
  PageSet() = default;
  ~PageSet();
  PageSet(const PageSet&) = delete;
  PageSet& operator=(const PageSet&) = delete;

  // Empty. false: no memory. Precondition: called once.
  bool create(std::uint32_t pages);

  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  void insert(Span span);
  void erase(Span span);
  bool holds_any(Span span) const { return !empty() && first_from(span.first, end_of(span), true) != end_of(span); }
  bool holds_all(Span span) const { return first_from(span.first, end_of(span), false) == end_of(span); }

  // The first run of pages of the span that are in the set, or are not, from page `from` on; without pages: none.
  Span run_inside(Span span, std::uint32_t from) const { return run(span, from, true); }
  Span run_outside(Span span, std::uint32_t from) const { return run(span, from, false); }

 private:
  static constexpr std::uint32_t word_bits = 64;
  static std::uint32_t end_of(Span span) { return span.first + span.pages; }
  bool holds(std::uint32_t page) const {
    return (words_[page / word_bits].load(std::memory_order_relaxed) >> (page % word_bits) & 1) != 0;
  }
  void set(Span span, bool in);
  std::uint32_t first_from(std::uint32_t from, std::uint32_t end, bool in) const;
  Span run(Span span, std::uint32_t from, bool in) const;

  std::atomic<std::uint64_t>* words_ = nullptr;
  std::uint32_t pages_ = 0;
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace plait::tl

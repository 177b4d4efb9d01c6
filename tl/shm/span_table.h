// Which pages of a shared heap are in use: a two-level segregated fit (M. Masmano et al., "TLSF: a new dynamic memory
// allocator for real-time systems", ECRTS 2004) over page numbers. It never touches the pages, and its own memory lies
// apart from them.
//
// Every page belongs to one span. A free span is clean (the system holds no memory for it, it reads as zeros) or dirty
// (it may have memory and contents); neighbours of one kind are merged at once. Dirty spans are used first.
//
// Not thread-safe. Makes no system call after create(); every function takes constant time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace plait::tl {

struct Span {
  std::uint32_t first = 0;
  std::uint32_t pages = 0;  // 0: none
  bool clean = false;
};

class SpanTable {
 public:
  static constexpr std::size_t page_bytes = 4096;
  // Numbers of pages that allocate() takes; others it rounds up, by at most a sixteenth.
  static std::uint32_t round_up(std::uint32_t pages);

  SpanTable() = default;
  ~SpanTable();
  SpanTable(const SpanTable&) = delete;
  SpanTable& operator=(const SpanTable&) = delete;

  // All pages clean. false: no memory for the records. Precondition: called once, pages >= 1.
  bool create(std::uint32_t pages);

  // A used span of at least `pages` that starts at a multiple of `alignment` pages, a power of two. Without pages: none
  // is long enough (dirty and clean neighbours are not joined).
  Span allocate(std::uint32_t pages, std::uint32_t alignment = 1);
  // The used span becomes dirty.
  void release(std::uint32_t first);
  // Pages of the used span that starts here; 0: none does.
  std::uint32_t used_at(std::uint32_t first) const;
  // Makes a used span longer, by free pages behind it, or shorter. false, and nothing changed: not enough behind it.
  bool resize(std::uint32_t first, std::uint32_t pages);

  // Takes the dirty span that was freed longest ago, or the end of it when it has more than `most` pages. It is neither
  // used nor free until it is given back. Without pages: no dirty span.
  Span take_dirty(std::uint32_t most);
  void give_clean(Span span);
  void give_dirty(Span span);

  std::uint32_t pages() const { return pages_; }
  std::uint32_t used_pages() const { return used_pages_; }
  std::uint32_t used_spans() const { return used_spans_; }
  std::uint32_t dirty_pages() const { return dirty_pages_; }

  // The used span that contains or follows the page; without pages: none. Walks over the spans from `from`, which is
  // the start of a span.
  Span next_used(std::uint32_t from) const;

 private:
  enum class State : std::uint8_t { inner, used, dirty, clean, taken };
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr int bin_count = 16 + 28 * 16;
  struct Record {  // of a span's first page; of a free span's last one only `first`
    std::uint32_t pages;
    std::uint32_t first;
    std::uint32_t before, after;  // in the bin
    std::uint32_t older, newer;   // among the dirty ones
    State state;
  };
  struct Bins {
    std::array<std::uint32_t, bin_count> head;
    std::array<std::uint64_t, (bin_count + 63) / 64> filled;
  };

  static int bin_of(std::uint32_t pages);
  Bins& bins(State state) { return state == State::dirty ? dirty_ : clean_; }
  std::uint32_t find(const Bins& bins, std::uint32_t pages) const;
  void insert(std::uint32_t first, std::uint32_t pages, State state);
  void insert_merged(std::uint32_t first, std::uint32_t pages, State state);
  void remove(std::uint32_t first);
  void put_newest(std::uint32_t first);
  void drop_age(std::uint32_t first);
  void set_used(std::uint32_t first, std::uint32_t pages);
  bool is_free(std::uint32_t first, State state) const;

  Record* records_ = nullptr;
  std::uint32_t pages_ = 0, used_pages_ = 0, used_spans_ = 0, dirty_pages_ = 0;
  std::uint32_t oldest_ = none, newest_ = none;
  Bins dirty_{}, clean_{};
};

}  // namespace plait::tl

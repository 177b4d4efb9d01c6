#include "tl/shm/span_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace plait::tl {

namespace {

// Bins: one for each number of pages below 16, then 16 for each power of two.
constexpr int fine_bits = 4;
constexpr std::uint32_t fine = 1u << fine_bits;

std::uint32_t step_of(std::uint32_t pages) { return pages < fine ? 1 : 1u << (std::bit_width(pages) - 1 - fine_bits); }

}  // namespace

std::uint32_t SpanTable::round_up(std::uint32_t pages) {
  if (pages == 0) return 1;
  const std::uint32_t step = step_of(pages);
  const std::uint64_t rounded = (std::uint64_t{pages} + step - 1) / step * step;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rounded, none));
}

int SpanTable::bin_of(std::uint32_t pages) {
  if (pages < fine) return static_cast<int>(pages);
  const int power = std::bit_width(pages) - 1;
  const int sub = static_cast<int>((pages >> (power - fine_bits)) & (fine - 1));
  return static_cast<int>(fine) * (1 + power - fine_bits) + sub;
}

SpanTable::~SpanTable() {
  if (records_ != nullptr) munmap(records_, std::size_t{pages_} * sizeof(Record));
}

bool SpanTable::create(std::uint32_t pages) {
  void* memory = mmap(nullptr, std::size_t{pages} * sizeof(Record), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  records_ = static_cast<Record*>(memory);
  pages_ = pages;
  dirty_.head.fill(none);
  clean_.head.fill(none);
  insert(0, pages, State::clean);
  return true;
}

Span SpanTable::allocate(std::uint32_t pages, std::uint32_t alignment) {
  const std::uint64_t wanted = round_up(std::max(pages, 1u));
  const std::uint64_t searched = wanted + (alignment - 1);
  if (searched > pages_) return {};
  const std::uint32_t search = round_up(static_cast<std::uint32_t>(searched));
  State state = State::dirty;
  std::uint32_t found = find(dirty_, search);
  if (found == none) {
    state = State::clean;
    found = find(clean_, search);
  }
  if (found == none) return {};
  const std::uint32_t all = records_[found].pages;
  remove(found);
  const std::uint32_t first = (found + (alignment - 1)) & ~(alignment - 1);
  const auto taken = static_cast<std::uint32_t>(wanted);
  const std::uint32_t skipped = first - found;
  if (skipped > 0) insert(found, skipped, state);
  if (all - skipped > taken) insert(first + taken, all - skipped - taken, state);
  set_used(first, taken);
  return {.first = first, .pages = taken, .clean = state == State::clean};
}

void SpanTable::release(std::uint32_t first) {
  const std::uint32_t pages = records_[first].pages;
  used_pages_ -= pages;
  --used_spans_;
  records_[first].state = State::inner;
  insert_merged(first, pages, State::dirty);
}

std::uint32_t SpanTable::used_at(std::uint32_t first) const {
  return first < pages_ && records_[first].state == State::used ? records_[first].pages : 0;
}

bool SpanTable::resize(std::uint32_t first, std::uint32_t pages) {
  const std::uint32_t had = records_[first].pages;
  const std::uint32_t wanted = round_up(std::max(pages, 1u));
  if (wanted <= had) {
    if (wanted == had) return true;
    records_[first].pages = wanted;
    used_pages_ -= had - wanted;
    insert_merged(first + wanted, had - wanted, State::dirty);
    return true;
  }
  const std::uint32_t behind = first + had;
  const std::uint32_t more = wanted - had;
  if (behind >= pages_) return false;
  const State state = records_[behind].state;
  if ((state != State::dirty && state != State::clean) || records_[behind].pages < more) return false;
  const std::uint32_t all = records_[behind].pages;
  remove(behind);
  if (all > more) insert(behind + more, all - more, state);
  records_[first].pages = wanted;
  used_pages_ += more;
  return true;
}

Span SpanTable::take_dirty(std::uint32_t most) {
  const std::uint32_t first = oldest_;
  if (first == none || most == 0) return {};
  const std::uint32_t all = records_[first].pages;
  remove(first);
  const std::uint32_t taken = std::min(all, most);
  if (taken < all) insert(first, all - taken, State::dirty);
  const std::uint32_t start = first + (all - taken);
  records_[start].pages = taken;
  records_[start].state = State::taken;
  return {.first = start, .pages = taken, .clean = false};
}

void SpanTable::give_clean(Span span) {
  records_[span.first].state = State::inner;
  insert_merged(span.first, span.pages, State::clean);
}

void SpanTable::give_dirty(Span span) {
  records_[span.first].state = State::inner;
  insert_merged(span.first, span.pages, State::dirty);
}

Span SpanTable::next_used(std::uint32_t from) const {
  while (from < pages_) {
    const Record& record = records_[from];
    if (record.state == State::used) return {.first = from, .pages = record.pages, .clean = false};
    from += record.pages;
  }
  return {};
}

std::uint32_t SpanTable::find(const Bins& bins, std::uint32_t pages) const {
  const auto bin = static_cast<std::size_t>(bin_of(pages));
  std::size_t word = bin / 64;
  if (word >= bins.filled.size()) return none;
  std::uint64_t filled = bins.filled[word] & (~std::uint64_t{0} << (bin % 64));
  while (filled == 0) {
    if (++word == bins.filled.size()) return none;
    filled = bins.filled[word];
  }
  return bins.head[word * 64 + static_cast<std::size_t>(std::countr_zero(filled))];
}

void SpanTable::insert(std::uint32_t first, std::uint32_t pages, State state) {
  const auto bin = static_cast<std::size_t>(bin_of(pages));
  Bins& kind = bins(state);
  const std::uint32_t head = kind.head[bin];
  records_[first + pages - 1].first = first;
  Record& record = records_[first];
  record.pages = pages;
  record.first = first;
  record.before = none;
  record.after = head;
  record.state = state;
  if (pages > 1) records_[first + pages - 1].state = State::inner;
  if (head != none) records_[head].before = first;
  kind.head[bin] = first;
  kind.filled[bin / 64] |= std::uint64_t{1} << (bin % 64);
  if (state != State::dirty) return;
  put_newest(first);
  dirty_pages_ += pages;
}

void SpanTable::insert_merged(std::uint32_t first, std::uint32_t pages, State state) {
  if (first > 0) {
    const std::uint32_t left = records_[first - 1].first;
    // What stands in a used span's last page may be old: only a free span that ends here counts.
    if (left < first && is_free(left, state) && left + records_[left].pages == first) {
      const std::uint32_t more = records_[left].pages;
      remove(left);
      first = left;
      pages += more;
    }
  }
  const std::uint32_t right = first + pages;
  if (right < pages_ && is_free(right, state)) {
    const std::uint32_t more = records_[right].pages;
    remove(right);
    pages += more;
  }
  insert(first, pages, state);
}

void SpanTable::remove(std::uint32_t first) {
  Record& record = records_[first];
  const auto bin = static_cast<std::size_t>(bin_of(record.pages));
  Bins& kind = bins(record.state);
  if (record.after != none) records_[record.after].before = record.before;
  if (record.before != none)
    records_[record.before].after = record.after;
  else
    kind.head[bin] = record.after;
  if (kind.head[bin] == none) kind.filled[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  if (record.state == State::dirty) {
    drop_age(first);
    dirty_pages_ -= record.pages;
  }
  record.state = State::inner;
}

void SpanTable::put_newest(std::uint32_t first) {
  records_[first].older = newest_;
  records_[first].newer = none;
  if (newest_ != none)
    records_[newest_].newer = first;
  else
    oldest_ = first;
  newest_ = first;
}

void SpanTable::drop_age(std::uint32_t first) {
  const Record& record = records_[first];
  (record.older != none ? records_[record.older].newer : oldest_) = record.newer;
  (record.newer != none ? records_[record.newer].older : newest_) = record.older;
}

void SpanTable::set_used(std::uint32_t first, std::uint32_t pages) {
  records_[first].pages = pages;
  records_[first].state = State::used;
  used_pages_ += pages;
  ++used_spans_;
}

bool SpanTable::is_free(std::uint32_t first, State state) const { return records_[first].state == state; }

}  // namespace plait::tl

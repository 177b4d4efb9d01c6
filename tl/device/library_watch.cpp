#include "tl/device/library_watch.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

namespace plait::tl {
namespace {

struct Look {
  LibraryWatch& watch;
  std::uint64_t count = 0;
};

// Under the linker's lock, so that count and words are of one moment.
int take_count(dl_phdr_info* info, std::size_t, void* argument) {
  auto& look = *static_cast<Look*>(argument);
  look.count = info->dlpi_adds;
  look.watch.note(look.count);
  return 1;
}

}  // namespace

void LibraryWatch::start() {
  void* state = dlsym(RTLD_DEFAULT, "_rtld_global");
  Dl_info found{};
  const ElfW(Sym)* symbol = nullptr;
  if (state == nullptr ||
      dladdr1(state, &found, const_cast<void**>(reinterpret_cast<const void**>(&symbol)), RTLD_DL_SYMENT) == 0)
    return;
  if (symbol == nullptr || found.dli_saddr != state) return;
  using Word = std::atomic<std::uint64_t>;
  static_assert(sizeof(Word) == sizeof(std::uint64_t) && Word::is_always_lock_free);
  start({static_cast<const Word*>(state), symbol->st_size / sizeof(Word)});
}

void LibraryWatch::start(std::span<const std::atomic<std::uint64_t>> words) {
  words_ = words.first(std::min(words.size(), most_words));
  differs_.fill(false);
  counts_ = 0;
  word_ = nullptr;
}

std::uint64_t LibraryWatch::look() {
  Look look{*this};
  dl_iterate_phdr(take_count, &look);
  return look.count;
}

void LibraryWatch::note(std::uint64_t count) {
  if (counts_ == 0 || count != last_) counts_ = std::min(counts_ + 1, wanted_counts);
  last_ = count;
  const std::atomic<std::uint64_t>* same = nullptr;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    differs_[i] = differs_[i] || words_[i].load(std::memory_order_relaxed) != count;
    if (!differs_[i]) same = &words_[i];
  }
  word_ = counts_ == wanted_counts ? same : nullptr;
}

}  // namespace plait::tl

// Whether a library has been loaded into the process since the last look, for the price of a load from memory.
//
// The dynamic linker counts what it loads, and says the count to who walks its list, under a lock. Where it keeps the
// count it does not say; the GNU C library keeps it among the words of its own state, which every process has under a
// name. The last word there that has had the count's value each time that somebody looked, in looks with at least two
// different counts, is where it is kept: before it only the number of libraries that there are can be the same, while
// none was unloaded. It is compared again in every look, and never relied on again after it has differed once. It is
// only read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace plait::tl {

// Not thread-safe but for count().
class LibraryWatch {
 public:
  // Finds the linker's state. Before all else; without it no word is ever found.
  void start();
  // The count, in a walk of the list: the words are compared with it.
  std::uint64_t look();
  // Where the count stands; nullptr: not known (yet).
  const std::atomic<std::uint64_t>* word() const { return word_; }

  // For tests: other words in the place of the linker's.
  void start(std::span<const std::atomic<std::uint64_t>> words);
  void note(std::uint64_t count);

 private:
  static constexpr std::size_t most_words = 2048;
  static constexpr int wanted_counts = 2;

  std::span<const std::atomic<std::uint64_t>> words_;
  std::array<bool, most_words> differs_{};
  std::uint64_t last_ = 0;
  int counts_ = 0;  // different ones, up to those wanted
  const std::atomic<std::uint64_t>* word_ = nullptr;
};

}  // namespace plait::tl

#include "runtime/oob/verdict.h"

#include <array>
#include <cassert>
#include <cstddef>

namespace plait::runtime {

// The lowest print and the lowest of its negative: the ranks' prints are the same where the two are each other's.
Status compare(Oob& oob, bool well, std::span<const std::uint64_t> prints, std::string_view what, Verdict& verdict) {
  assert(prints.size() <= most_subjects);
  std::array<std::int64_t, 1 + 2 * most_subjects> own{}, lowest{};
  std::size_t count = 0;
  own[count++] = well ? oob.ranks() : oob.rank();
  for (const std::uint64_t hash : prints) {
    const auto print = static_cast<std::int64_t>(hash >> 1);
    own[count++] = print;
    own[count++] = -print;
  }
  if (Status met = oob.reduce_all(own.data(), lowest.data(), count, Element::i64, Op::min, what); !met.ok()) return met;
  verdict = {};
  if (lowest[0] < oob.ranks()) verdict.first_refusing = static_cast<int>(lowest[0]);
  for (std::size_t i = prints.size(); i-- > 0;)
    if (lowest[2 * i + 1] != -lowest[2 * i + 2]) verdict.first_differing = static_cast<int>(i);
  return {};
}

}  // namespace plait::runtime

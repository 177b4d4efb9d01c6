#include "runtime/reshard/agreement.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/text_hash.h"
#include "runtime/oob/verdict.h"

namespace plait::runtime {
namespace {

// What the one rank that tells says, on all ranks.
std::string told_to_all(Oob& oob, bool tells, const std::string& text) {
  std::array<unsigned char, 200> own{}, all{};  // room is left for the rank
  if (tells) std::copy_n(text.begin(), std::min(text.size(), own.size() - 1), own.begin());
  if (!reduce_all(oob, own, all, Op::max, "tell what is wrong").ok())
    return "arguments: those of another rank cannot be used";
  return reinterpret_cast<const char*>(all.data());
}

}  // namespace

Status agree(Oob& oob, const Status& mine, const std::vector<Said>& said) {
  std::vector<std::uint64_t> prints;
  prints.reserve(said.size());
  for (const Said& one : said) prints.push_back(hash_text(one.text));
  Verdict verdict;
  const Status met = compare(oob, mine.ok(), prints, "agree on their arguments", verdict);
  // From here on all ranks come to the same end.
  return attempt([&]() -> Status {
    if (!met.ok()) return met;
    if (verdict.some_refuse()) {
      const std::string complaint = told_to_all(oob, verdict.first_refusing == oob.rank(), mine.message());
      if (!mine.ok()) return mine;
      return {Code::invalid, complaint + " (on rank " + std::to_string(verdict.first_refusing) + ")"};
    }
    if (verdict.all_same()) return {};
    const char* subject = said[static_cast<std::size_t>(verdict.first_differing)].subject;
    return {Code::invalid, std::string(subject) + ": the ranks do not give the same"};
  });
}

Status all_prepared(Oob& oob, const Status& mine, const char* what) noexcept {
  const std::array<std::int64_t, 1> good = {mine.ok() ? 1 : 0};
  std::array<std::int64_t, 1> all_good = {0};
  if (Status met = reduce_all(oob, good, all_good, Op::min, what); !met.ok()) return met;
  if (all_good[0] != 0 || !mine.ok()) return mine;
  return attempt([&] { return Status(Code::unavailable, std::string("another rank could not ") + what); });
}

}  // namespace plait::runtime

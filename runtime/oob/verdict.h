// Whether all ranks can go on with what the program asks of all of them, and whether it asks the same of all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {

struct Verdict {
  int first_refusing = -1;   // the lowest rank that cannot go on; negative: none
  int first_differing = -1;  // the first subject of which the ranks say something else; negative: none

  bool some_refuse() const { return first_refusing >= 0; }
  bool all_same() const { return first_differing < 0; }
  // The lowest rank that has something to complain of: one that refuses, else the first. Precondition: there is such.
  int speaker() const { return some_refuse() ? first_refusing : 0; }
};

inline constexpr std::size_t most_subjects = 8;

// A step of all ranks, with as many `prints` on each: hashes of what it says of each subject, of which all but the
// lowest bit count. Precondition: at most `most_subjects`. `what` as in Oob. Needs no memory.
Status compare(Oob& oob, bool well, std::span<const std::uint64_t> prints, std::string_view what, Verdict& verdict);

}  // namespace plait::runtime

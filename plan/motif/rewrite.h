// The algebra of motifs (Mahajan et al., NSDI '23, section 4.2.1 and appendix A.1): operators that turn a motif into a
// composition of smaller ones. Each application is checked here and proven by plan/motif/meaning.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/motif/motif.h"

namespace plait::plan::motif {

struct Rule {
  enum class Kind {
    segment,  // the payload in `number` equal parts, in parallel
    spline,  // the pattern in `number` parts of as many distances each: in parallel, or, where the parts combine at one
             // rank, in sequence
    ring,    // an allreduce as a reduce-scatter and an all-gather, a bcast as scatter and all-gather, a reduce as
             // reduce-scatter and gather
    tree,    // groups of `number` members: to their first ones, among these, and back
  };
  Kind kind = Kind::segment;
  int number = 0;  // 0: the rule has none
  bool operator==(const Rule&) const = default;
};

// "segment:4", "spline:2", "ring", "tree:4"; a list is separated by commas. Fails (invalid) with what was expected.
Result<std::vector<Rule>> parse_rules(std::string_view text);
std::string text(const Rule& rule);
std::string text(std::span<const Rule> rules);

// Whether the rule says something of such a motif.
bool fits(const Rule& rule, const Motif& motif);

// One motif rewritten, in units of which the payload has enough (units_factor()). Fails (invalid) where the rule does
// not fit.
Result<Term> apply(const Rule& rule, const Motif& motif);

// By how much units must become smaller before the rule can cut the motif's payload.
int units_factor(const Rule& rule, const Motif& motif);

// Every motif that the rule fits is rewritten. Fails (invalid) where it fits none, or where the units become too many.
Result<Rewriting> rewrite(const Rewriting& rewriting, const Rule& rule);
Result<Rewriting> rewrite(const Rewriting& rewriting, std::span<const Rule> rules);
// Only the motif of that number, from the left.
Result<Rewriting> rewrite_one(const Rewriting& rewriting, std::size_t motif, const Rule& rule);

inline constexpr int most_units = 1 << 14;
inline constexpr int most_motifs = 1 << 12;

// Lists of up to `depth` rules that rewrite the collective in different ways, the shortest first, the empty one (as it
// is) in front. Numbers are divisors of the group's sizes; segments are cut in `segments`. At most so many lists, of so
// many motifs each.
inline constexpr std::size_t most_lists = 1000, most_listed_motifs = 256;
std::vector<std::vector<Rule>> rewritings(const Rewriting& whole, int depth, std::span<const int> segments);

}  // namespace plait::plan::motif

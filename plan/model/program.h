// Programs of the P² method (Xie et al., MLSys 2022, section 3): a collective as a list of smaller ones, each over all
// groups of ranks that agree on the coordinates outside a range of levels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace plait::plan {

inline constexpr int most_levels = 8;

// The first five are P²'s; gather and scatter are ours, for the rooted collectives and for leaders.
enum class Instruct : std::uint8_t { all_reduce, reduce_scatter, all_gather, reduce, broadcast, gather, scatter };
inline constexpr int p2_instructs = 5;
inline constexpr int all_instructs = 7;
std::string_view name(Instruct what);  // "AR", "RS", "AG", "RD", "BC", "GA", "SC"

enum class Algorithm : std::uint8_t {
  ring,                // AR, RS, AG
  recursive_doubling,  // AR: whole vectors; AG: growing pieces, powers of two only
  recursive_halving,   // RS; AR: halving, then doubling. Powers of two only
  direct,              // AR, RS, AG, GA, SC: a message to each member
  dissemination,       // AG
  tree,                // AR: double binary tree between the outermost groups, chains within
  binomial,            // RD, BC, GA, SC
  knomial4,            // RD, BC
  knomial8,            // RD, BC
  chain,               // RD, BC
  flat,                // RD, BC
  shared,              // all: one operation of all ranks of a node in their shared memory
};
inline constexpr int algorithm_count = 12;
std::string_view name(Algorithm algorithm);  // "ring", "rd", ...

// Whether the algorithm can do this instruction in a group of so many members.
bool fits(Instruct what, Algorithm algorithm, int members);
// The one that a program's text means when it names none.
Algorithm default_algorithm(Instruct what);
// Whether it cuts the data into a piece for each member.
bool scatters(Instruct what, Algorithm algorithm);

// One instruction over levels first..last (0-based, outermost is 0, both included).
struct Instruction {
  Instruct what = Instruct::all_reduce;
  int first = 0, last = 0;
  Algorithm algorithm = Algorithm::ring;
  bool algorithm_given = true;  // false: the text named none, and any may be taken
  bool operator==(const Instruction&) const = default;
};

struct Program {
  std::vector<Instruction> instructions;
  bool operator==(const Program&) const = default;
};

// "RS.2(ring) AR.1(ring) AG.2(ring)": levels are numbered from 1, outermost first; "AG.12" spans levels 1 and 2.
// An algorithm that is left out is the first that fits: ring for AR, RS and AG, binomial for the others.
Result<Program> parse_program(std::string_view text);
std::string text(const Program& program);
std::string text_without_algorithms(const Program& program);  // "RS.2 AR.1 AG.2"

}  // namespace plait::plan

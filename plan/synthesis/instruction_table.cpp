#include "plan/synthesis/instruction_table.h"

#include <bit>

namespace plait::plan {

namespace {

bool power_of_two(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

}  // namespace

Extent extent_of(const GroupModel& model, int first, int last) {
  Extent extent;
  extent.several_levels = first < last;
  extent.whole_node = first == model.first_in_node && last == static_cast<int>(model.levels.size()) - 1;
  for (int l = first; l <= last; ++l) {
    const int cardinality = model.levels[static_cast<std::size_t>(l)].cardinality;
    extent.members *= cardinality;
    extent.aligned = extent.aligned && (l == first || power_of_two(cardinality)) && (model.uneven >> l & 1) == 0;
  }
  if (first == 0 && last == static_cast<int>(model.levels.size()) - 1) extent.members = model.members;
  return extent;
}

bool possible(Instruct what, Algorithm algorithm, const Extent& extent) {
  return fits(what, algorithm, extent.members) && (algorithm != Algorithm::shared || extent.whole_node);
}

// Of algorithms that are the same in such groups, one is enough; trees that cross levels without regard to them are
// never better than one tree a level.
bool worth_trying(Instruct what, Algorithm algorithm, const Extent& extent) {
  const int members = extent.members;
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::tree:
    case Algorithm::shared:
      return true;
    case Algorithm::recursive_doubling:
      return what == Instruct::all_reduce || (members > 2 && extent.aligned);
    case Algorithm::recursive_halving:
      return members > 2 && extent.aligned;
    case Algorithm::direct:
      return members > 2 || what >= Instruct::gather;
    case Algorithm::dissemination:
      return members > 2 && !extent.several_levels && !power_of_two(members);
    case Algorithm::binomial:
      return (!extent.several_levels || extent.aligned) && (members > 2 || what < Instruct::gather);
    case Algorithm::knomial4:
      return members > 4 && !extent.several_levels;
    case Algorithm::knomial8:
      return members > 8 && !extent.several_levels;
    case Algorithm::chain:
    case Algorithm::flat:
      return members > 2;
  }
  return false;
}

bool keeps_order(const Instruction& instruction) {
  return instruction.what != Instruct::all_reduce || instruction.algorithm == Algorithm::recursive_doubling ||
         instruction.algorithm == Algorithm::shared;
}

InstructionTable::InstructionTable(const SynthesisTask& task, const GroupModel& model, std::uint32_t algorithms,
                                   Choice choice)
    : levels_(task.levels) {
  first_.push_back(0);
  shapes_.reserve(256);
  for (int first = 0; first < levels_; ++first)
    for (int last = first; last < levels_; ++last) {
      const Extent extent = extent_of(model, first, last);
      for (int kind = 0; kind < all_instructs; ++kind) {
        const auto what = static_cast<Instruct>(kind);
        for (int a = 0; a < algorithm_count; ++a) {
          const Instruction instruction{what, first, last, static_cast<Algorithm>(a)};
          const bool wanted = (algorithms >> a & 1u) != 0 && (task.extended || kind < p2_instructs) &&
                              possible(what, instruction.algorithm, extent) &&
                              (choice == Choice::all || worth_trying(what, instruction.algorithm, extent)) &&
                              (!task.ordered || keeps_order(instruction));
          if (wanted) shapes_.push_back(shape_of(model, instruction));
        }
        first_.push_back(static_cast<std::uint32_t>(shapes_.size()));
      }
    }
}

std::span<const InstructionShape> InstructionTable::of(int range, Instruct what) const {
  const auto at = static_cast<std::size_t>(range * all_instructs + static_cast<int>(what));
  return std::span(shapes_).subspan(first_[at], first_[at + 1] - first_[at]);
}

}  // namespace plait::plan

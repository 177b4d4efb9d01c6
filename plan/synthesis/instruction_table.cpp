#include "plan/synthesis/instruction_table.h"

#include <algorithm>
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

bool possible(Instruct what, const Algorithm& algorithm, const Extent& extent) {
  return algorithm.fits(what, extent.members) && (!algorithm.needs_whole_node || extent.whole_node);
}

bool keeps_order(const Instruction& instruction) {
  return !reduces(instruction.what) || instruction.algorithm->keeps_order;
}

bool is_among(const Algorithm& algorithm, Algorithms allowed) {
  return allowed.empty() ? algorithm.usual : std::find(allowed.begin(), allowed.end(), &algorithm) != allowed.end();
}

InstructionTable::InstructionTable(const SynthesisTask& task, const GroupModel& model, Algorithms algorithms,
                                   Choice choice)
    : levels_(task.levels) {
  first_.push_back(0);
  shapes_.reserve(256);
  for (int first = 0; first < levels_; ++first)
    for (int last = first; last < levels_; ++last) {
      const Extent extent = extent_of(model, first, last);
      for (int kind = 0; kind < all_instructs; ++kind) {
        const auto what = static_cast<Instruct>(kind);
        for (const Algorithm* algorithm : all_algorithms) {
          const Instruction instruction{what, first, last, algorithm};
          const bool wanted = is_among(*algorithm, algorithms) && (task.extended || kind < p2_instructs) &&
                              possible(what, *algorithm, extent) &&
                              (choice == Choice::all || algorithm->worth_trying(what, extent)) &&
                              (!task.ordered || keeps_order(instruction)) &&
                              (!task.provable || small_enough_to_prove(*algorithm, what, extent.members));
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

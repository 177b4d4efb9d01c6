#include "runtime/types/runs.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/types/array_part.h"
#include "runtime/types/contiguity.h"

namespace plait::runtime {
namespace {

class Runs {
 public:
  void add(std::ptrdiff_t begin, std::size_t bytes) {
    if (bytes == 0) return;
    if (!runs_.empty() && runs_.back().begin + static_cast<std::ptrdiff_t>(runs_.back().bytes) == begin)
      runs_.back().bytes += bytes;
    else
      runs_.push_back({begin, bytes});
  }
  std::vector<ByteRun> take() { return std::move(runs_); }

 private:
  std::vector<ByteRun> runs_;
};

// What the parts are elements of. Its runs are looked for once, however many parts there are.
class Part {
 public:
  Part(TypeHandle type, const TypeReader& reader) {
    const TypeFacts facts = reader.facts(type);
    extent_ = facts.extent;
    runs_ = runs_of(facts, type, reader);
  }
  std::ptrdiff_t extent() const { return extent_; }
  void add_block(Runs& runs, std::int64_t length, std::ptrdiff_t at) const {
    for (std::int64_t i = 0; i < length; ++i)
      for (const ByteRun& run : runs_) runs.add(at + i * extent_ + run.begin, run.bytes);
  }

 private:
  std::ptrdiff_t extent_ = 0;
  std::vector<ByteRun> runs_;
};

void add_blocks(Runs& runs, const Part& part, const Blocks& blocks) {
  const std::ptrdiff_t unit = blocks.in_bytes ? 1 : part.extent();
  for (std::size_t i = 0; i < blocks.size(); ++i)
    part.add_block(runs, blocks.length(i), blocks.displacements[i] * unit);
}

void add_structure(Runs& runs, const ReadConstruction& made, const TypeReader& reader) {
  const Blocks blocks = made.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks.length(i) > 0) Part(made.parts()[i], reader).add_block(runs, blocks.length(i), blocks.displacements[i]);
}

void add_array(Runs& runs, const Part& part, const ArrayPart& array) {
  for_each_element(array, [&](std::int64_t element) { part.add_block(runs, 1, element * part.extent()); });
}

void add_parts(Runs& runs, const ReadConstruction& made, const TypeReader& reader) {
  if (made.combiner() == Combiner::structure) return add_structure(runs, made, reader);
  if (made.parts().empty()) return;
  const Part part(made.parts().front(), reader);
  const Numbers numbers = made.numbers();
  switch (made.combiner()) {
    case Combiner::contiguous:
      return part.add_block(runs, numbers[0], 0);
    case Combiner::vector:
    case Combiner::hvector: {
      const std::ptrdiff_t unit = made.combiner() == Combiner::vector ? part.extent() : 1;
      for (std::int64_t i = 0; i < numbers[0]; ++i) part.add_block(runs, numbers[1], i * numbers[2] * unit);
      return;
    }
    case Combiner::indexed:
    case Combiner::hindexed:
    case Combiner::indexed_block:
    case Combiner::hindexed_block:
      return add_blocks(runs, part, made.blocks());
    case Combiner::subarray:
      return add_array(runs, part, subarray(numbers));
    case Combiner::darray:
      return add_array(runs, part, distributed_array(numbers));
    default:  // a duplicate, or other bounds: the same data
      return part.add_block(runs, 1, 0);
  }
}

// Of pairs of numbers, which may have a gap between them, the second is an int.
void add_pair(Runs& runs, std::size_t bytes) {
  const std::size_t first = bytes - sizeof(int);
  const std::size_t second_at = (first + alignof(int) - 1) / alignof(int) * alignof(int);
  runs.add(0, first);
  runs.add(static_cast<std::ptrdiff_t>(second_at), sizeof(int));
}

}  // namespace

std::vector<ByteRun> runs_of(const TypeFacts& facts, TypeHandle type, const TypeReader& reader) {
  Runs runs;
  if (facts.size == 0) return {};
  if (const std::optional<ByteRun> whole = run_of(facts, type, reader)) {
    runs.add(whole->begin, whole->bytes);
    return runs.take();
  }
  const ReadConstruction made(type, reader);
  if (made.combiner() == Combiner::named)
    add_pair(runs, facts.size);
  else
    add_parts(runs, made, reader);
  return runs.take();
}

}  // namespace plait::runtime

#include "runtime/types/contiguity.h"

#include <cstddef>
#include <cstdint>

namespace plait::runtime {
namespace {

using MaybeRun = std::optional<ByteRun>;

MaybeRun repeated(const MaybeRun& one, std::int64_t count, std::ptrdiff_t step) {
  if (!one || count == 1 || one->bytes == 0) return one;
  if (count <= 0) return ByteRun{};
  if (step != static_cast<std::ptrdiff_t>(one->bytes)) return {};
  return ByteRun{one->begin, one->bytes * static_cast<std::size_t>(count)};
}

// Parts in the order in which the type names them: each begins where the one before it ended.
class Chain {
 public:
  bool add(const MaybeRun& part, std::ptrdiff_t displacement) {
    if (!part) return false;
    if (part->bytes == 0) return true;
    const std::ptrdiff_t begin = part->begin + displacement;
    if (run_.bytes == 0) run_.begin = begin;
    if (begin != run_.begin + static_cast<std::ptrdiff_t>(run_.bytes)) return false;
    run_.bytes += part->bytes;
    return true;
  }
  const ByteRun& run() const { return run_; }

 private:
  ByteRun run_;
};

// The type that all parts have, but for those of a struct.
struct Part {
  MaybeRun run;
  std::ptrdiff_t extent = 0;

  Part(TypeHandle type, const TypeReader& reader) {
    const TypeFacts facts = reader.facts(type);
    run = run_of(facts, type, reader);
    extent = facts.extent;
  }
  MaybeRun block(std::int64_t length) const { return repeated(run, length, extent); }
};

MaybeRun chain_of(const Part& part, const Blocks& blocks) {
  const std::ptrdiff_t unit = blocks.in_bytes ? 1 : part.extent;
  Chain chain;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks.length(i) > 0 && !chain.add(part.block(blocks.length(i)), blocks.displacements[i] * unit)) return {};
  return chain.run();
}

MaybeRun run_of_structure(const ReadConstruction& made, const TypeReader& reader) {
  const Blocks blocks = made.blocks();
  Chain chain;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks.length(i) > 0 &&
        !chain.add(Part(made.parts()[i], reader).block(blocks.length(i)), blocks.displacements[i]))
      return {};
  return chain.run();
}

// An array, or a part of one, visits no element twice and goes upwards: where its elements are gapless and it is as
// long as it has data, there is no gap.
MaybeRun run_of_array(const Layout& measured, const Part& part) {
  if (!part.run) return {};
  const bool gapless = part.run->begin == 0 && part.extent == static_cast<std::ptrdiff_t>(part.run->bytes);
  const bool one_element = measured.size == part.run->bytes;
  if (!gapless && !one_element) return {};
  return ByteRun{measured.true_lower_bound, measured.size};
}

MaybeRun run_of_parts(const Layout& measured, const ReadConstruction& made, const TypeReader& reader) {
  if (made.combiner() == Combiner::structure) return run_of_structure(made, reader);
  if (made.parts().size() != 1) return {};
  const Part part(made.parts().front(), reader);
  const Numbers numbers = made.numbers();
  switch (made.combiner()) {
    case Combiner::dup:
    case Combiner::resized:
      return part.run;
    case Combiner::contiguous:
      return part.block(numbers[0]);
    case Combiner::vector:
      return repeated(part.block(numbers[1]), numbers[0], numbers[2] * part.extent);
    case Combiner::hvector:
      return repeated(part.block(numbers[1]), numbers[0], numbers[2]);
    case Combiner::indexed:
    case Combiner::hindexed:
    case Combiner::indexed_block:
    case Combiner::hindexed_block:
      return chain_of(part, made.blocks());
    case Combiner::subarray:
    case Combiner::darray:
      return run_of_array(measured, part);
    default:
      return {};
  }
}

}  // namespace

std::optional<ByteRun> run_of(const TypeFacts& facts, TypeHandle type, const TypeReader& reader) {
  if (facts.size == 0) return ByteRun{};
  if (facts.size != facts.true_extent) return {};
  const ByteRun whole{facts.true_lower_bound, facts.size};
  if (facts.predefined) return whole;
  const ReadConstruction made(type, reader);
  return made.combiner() == Combiner::named ? whole : run_of_parts(facts, made, reader);
}

bool is_contiguous(const TypeFacts& facts, TypeHandle type, const TypeReader& reader) {
  return fills_its_extent(facts) && run_of(facts, type, reader).has_value();
}

}  // namespace plait::runtime

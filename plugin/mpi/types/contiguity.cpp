#include "plugin/mpi/types/contiguity.h"

#include <cstdint>
#include <optional>
#include <span>

#include "plugin/mpi/types/predefined_types.h"
#include "plugin/mpi/types/type_contents.h"

namespace plait::plugin {
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

  explicit Part(MPI_Datatype type) {
    const Datatype facts = facts_of(type);
    run = run_of(facts);
    extent = facts.extent;
  }
  MaybeRun block(std::int64_t length) const { return repeated(run, length, extent); }
};

// `unit`: bytes that displacements are counted in.
MaybeRun chain_of(const Part& part, std::span<const std::int64_t> lengths, std::span<const std::int64_t> displacements,
                  std::ptrdiff_t unit) {
  Chain chain;
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    const std::int64_t length = lengths[lengths.size() > 1 ? i : 0];
    if (length > 0 && !chain.add(part.block(length), displacements[i] * unit)) return {};
  }
  return chain.run();
}

MaybeRun run_of_struct(const TypeContents& contents) {
  const auto parts = static_cast<std::size_t>(contents.values()[0]);
  const auto lengths = contents.values().subspan(1, parts), displacements = contents.values().subspan(1 + parts, parts);
  Chain chain;
  for (std::size_t i = 0; i < parts; ++i)
    if (lengths[i] > 0 && !chain.add(Part(contents.types()[i]).block(lengths[i]), displacements[i])) return {};
  return chain.run();
}

// An array, or a part of one, visits no element twice and goes upwards: where its elements are gapless and it is as
// long as it has data, there is no gap.
MaybeRun run_of_array(const Datatype& measured, const Part& part) {
  if (!part.run) return {};
  const bool gapless = part.run->begin == 0 && part.extent == static_cast<std::ptrdiff_t>(part.run->bytes);
  const bool one_element = measured.size == part.run->bytes;
  if (!gapless && !one_element) return {};
  return ByteRun{measured.true_lower_bound, measured.size};
}

MaybeRun run_of_parts(const Datatype& measured, const TypeContents& contents) {
  const std::span<const std::int64_t> values = contents.values();
  if (contents.combiner() == MPI_COMBINER_STRUCT) return run_of_struct(contents);
  if (contents.types().size() != 1) return {};
  const Part part(contents.types().front());
  const auto list = [&](std::size_t from) { return values.subspan(from, static_cast<std::size_t>(values[0])); };
  const auto count = [&] { return static_cast<std::size_t>(values[0]); };
  switch (contents.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return part.run;
    case MPI_COMBINER_CONTIGUOUS:
      return part.block(values[0]);
    case MPI_COMBINER_VECTOR:
      return repeated(part.block(values[1]), values[0], values[2] * part.extent);
    case MPI_COMBINER_HVECTOR:
      return repeated(part.block(values[1]), values[0], values[2]);
    case MPI_COMBINER_INDEXED:
      return chain_of(part, list(1), list(1 + count()), part.extent);
    case MPI_COMBINER_HINDEXED:
      return chain_of(part, list(1), list(1 + count()), 1);
    case MPI_COMBINER_INDEXED_BLOCK:
      return chain_of(part, values.subspan(1, 1), list(2), part.extent);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return chain_of(part, values.subspan(1, 1), list(2), 1);
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY:
      return run_of_array(measured, part);
    default:
      return {};
  }
}

}  // namespace

Datatype facts_of(MPI_Datatype type) {
  if (const Datatype* known = find_predefined(type)) return *known;
  Datatype measured;
  measured.handle = type;
  measure(measured);
  return measured;
}

std::optional<ByteRun> run_of(const Datatype& measured) {
  if (measured.size == 0) return ByteRun{};
  if (measured.size != measured.true_extent) return {};
  const ByteRun whole{measured.true_lower_bound, measured.size};
  if (measured.predefined) return whole;
  const TypeContents contents(measured.handle);
  return contents.predefined() ? whole : run_of_parts(measured, contents);
}

bool is_contiguous(MPI_Datatype type) {
  if (const Datatype* known = find_predefined(type)) return known->contiguous;
  return is_contiguous(facts_of(type));
}

bool is_contiguous(const Datatype& measured) { return fills_its_extent(measured) && run_of(measured).has_value(); }

}  // namespace plait::plugin

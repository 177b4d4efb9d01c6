#include "plugin/mpi/types/type_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/mpi/types/predefined_types.h"

namespace plait::plugin {
namespace {

struct NamedCombiner {
  int mpi;
  Combiner combiner;
};
constexpr std::array<NamedCombiner, 16> combiners = {{{MPI_COMBINER_NAMED, Combiner::named},
                                                      {MPI_COMBINER_F90_INTEGER, Combiner::named},
                                                      {MPI_COMBINER_F90_REAL, Combiner::named},
                                                      {MPI_COMBINER_F90_COMPLEX, Combiner::named},
                                                      {MPI_COMBINER_DUP, Combiner::dup},
                                                      {MPI_COMBINER_CONTIGUOUS, Combiner::contiguous},
                                                      {MPI_COMBINER_VECTOR, Combiner::vector},
                                                      {MPI_COMBINER_HVECTOR, Combiner::hvector},
                                                      {MPI_COMBINER_INDEXED, Combiner::indexed},
                                                      {MPI_COMBINER_HINDEXED, Combiner::hindexed},
                                                      {MPI_COMBINER_INDEXED_BLOCK, Combiner::indexed_block},
                                                      {MPI_COMBINER_HINDEXED_BLOCK, Combiner::hindexed_block},
                                                      {MPI_COMBINER_STRUCT, Combiner::structure},
                                                      {MPI_COMBINER_SUBARRAY, Combiner::subarray},
                                                      {MPI_COMBINER_DARRAY, Combiner::darray},
                                                      {MPI_COMBINER_RESIZED, Combiner::resized}}};

Combiner combiner_of(int mpi) {
  for (const NamedCombiner& named : combiners)
    if (named.mpi == mpi) return named.combiner;
  return Combiner::unknown;
}

// ---- Contents ----

// How many of each kind of arguments a constructor had. `counts`: large ones, as MPI 4 has them.
#if MPI_VERSION >= 4
using Number = MPI_Count;
#else
using Number = int;
#endif
struct Envelope {
  Number integers = 0, addresses = 0, counts = 0, types = 0;
  int combiner = MPI_COMBINER_NAMED;
};

// A type that was made with large counts has none that the older functions could tell: they raise an error.
Envelope envelope_of(MPI_Datatype type) {
  Envelope found;
#if MPI_VERSION >= 4
  PMPI_Type_get_envelope_c(type, &found.integers, &found.addresses, &found.counts, &found.types, &found.combiner);
#else
  PMPI_Type_get_envelope(type, &found.integers, &found.addresses, &found.types, &found.combiner);
#endif
  return found;
}

struct Contents {
  FewValues<int> integers;
  FewValues<MPI_Aint> addresses;
  FewValues<MPI_Count> counts;
  FewValues<MPI_Datatype> types;

  explicit Contents(const Envelope& envelope) {
    integers.make(static_cast<std::size_t>(envelope.integers));
    addresses.make(static_cast<std::size_t>(envelope.addresses));
    counts.make(static_cast<std::size_t>(envelope.counts));
    types.make(static_cast<std::size_t>(envelope.types));
  }
  std::size_t numbers() const { return integers.values().size() + addresses.values().size() + counts.values().size(); }
  void ask(MPI_Datatype type, const Envelope& envelope) {
#if MPI_VERSION >= 4
    PMPI_Type_get_contents_c(type, envelope.integers, envelope.addresses, envelope.counts, envelope.types,
                             integers.data(), addresses.data(), counts.data(), types.data());
#else
    PMPI_Type_get_contents(type, envelope.integers, envelope.addresses, envelope.types, integers.data(),
                           addresses.data(), types.data());
#endif
  }
};

// ---- Numbers of arrays, in our order and words ----

std::int64_t last_is_fastest(std::int64_t order) { return order == MPI_ORDER_C ? 1 : 0; }

// Large counts come after all others.
void rewrite_subarray(std::span<std::int64_t> numbers, bool large) {
  if (large) std::rotate(numbers.begin() + 1, numbers.begin() + 2, numbers.end());
  numbers.back() = last_is_fastest(numbers.back());
}

Distribution distribution_of(std::int64_t mpi) {
  if (mpi == MPI_DISTRIBUTE_NONE) return Distribution::none;
  return mpi == MPI_DISTRIBUTE_CYCLIC ? Distribution::cyclic : Distribution::block;
}

void rewrite_darray(std::span<std::int64_t> numbers, bool large) {
  const auto dimensions = static_cast<std::size_t>(numbers[2]);
  if (large) std::rotate(numbers.begin() + 3, numbers.end() - numbers[2], numbers.end());
  for (std::int64_t& way : numbers.subspan(3 + dimensions, dimensions))
    way = static_cast<std::int64_t>(distribution_of(way));
  for (std::int64_t& block : numbers.subspan(3 + 2 * dimensions, dimensions))
    if (block == MPI_DISTRIBUTE_DFLT_DARG) block = 0;
  numbers.back() = last_is_fastest(numbers.back());
}

class MpiTypes final : public TypeReader {
 public:
  TypeFacts facts(TypeHandle type) const override { return facts_of(type_of(type)); }

  void read(TypeHandle handle, Construction& made) const override {
    const Envelope envelope = envelope_of(type_of(handle));
    made.combiner = combiner_of(envelope.combiner);
    if (made.combiner == Combiner::named) return;
    Contents contents(envelope);
    // All memory is there before MPI hands out handles.
    std::int64_t* next = made.numbers.make(contents.numbers());
    TypeHandle* part = made.parts.make(contents.types.values().size());
    contents.ask(type_of(handle), envelope);
    next = std::ranges::copy(contents.integers.values(), next).out;
    next = std::ranges::copy(contents.addresses.values(), next).out;
    std::ranges::copy(contents.counts.values(), next);
    for (const MPI_Datatype type : contents.types.values()) *part++ = handle_of(type);
    if (made.combiner == Combiner::subarray) rewrite_subarray(made.numbers.values(), envelope.counts > 0);
    if (made.combiner == Combiner::darray) rewrite_darray(made.numbers.values(), envelope.counts > 0);
  }

  // MPI hands out derived types as new handles, predefined ones (which may have parameters) as they are.
  void release(TypeHandle part) const override {
    MPI_Datatype type = type_of(part);
    if (find_predefined(type) == nullptr && combiner_of(envelope_of(type).combiner) != Combiner::named)
      PMPI_Type_free(&type);
  }
};

constexpr MpiTypes types_of_mpi;

}  // namespace

const TypeReader& mpi_types() { return types_of_mpi; }

// An address or an int.
TypeHandle handle_of(MPI_Datatype type) { return static_cast<TypeHandle>((std::uintptr_t)type); }       // NOLINT
MPI_Datatype type_of(TypeHandle handle) { return (MPI_Datatype) static_cast<std::uintptr_t>(handle); }  // NOLINT

Datatype facts_of(MPI_Datatype type) {
  if (const Datatype* known = find_predefined(type)) return *known;
  Datatype measured;
  measured.handle = type;
  measure(measured);
  return measured;
}

}  // namespace plait::plugin

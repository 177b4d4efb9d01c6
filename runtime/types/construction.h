// What a type was made of, in the words of MPI's constructors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/layer.h"

namespace plait::runtime {

// A type, by what whoever knows it calls it: a handle of an MPI, or a place in a table.
enum class TypeHandle : std::uintptr_t {};

// A list that seldom has more than a few values: those take no allocation.
template <class T>
class FewValues {
 public:
  T* make(std::size_t size) {
    size_ = size;
    if (size_ > few_.size()) many_.resize(size_);
    return data();
  }
  T* data() { return size_ > few_.size() ? many_.data() : few_.data(); }
  const T* data() const { return size_ > few_.size() ? many_.data() : few_.data(); }
  std::span<T> values() { return {data(), size_}; }
  std::span<const T> values() const { return {data(), size_}; }

 private:
  std::size_t size_ = 0;
  std::array<T, 6> few_;
  std::vector<T> many_;
};

enum class Combiner : std::uint8_t {
  named,  // of nothing: it comes with the caller
  dup,
  contiguous,
  vector,
  hvector,
  indexed,
  hindexed,
  indexed_block,
  hindexed_block,
  structure,
  subarray,
  darray,
  resized,
  unknown,  // taken for the data of its first part; none where it has none
};

// How a dimension of an array is dealt out to processes.
enum class Distribution : std::uint8_t { none, block, cyclic };

// The numbers of a construction stand in this order, for each combiner; "..." is as many as the number before says,
// or as there are dimensions. Lengths count parts. Displacements and strides count the part's extents; bytes where the
// combiner has an h, and of a structure.
//
//   contiguous                       count
//   vector, hvector                  count, length, stride
//   indexed, hindexed, structure     count, lengths..., displacements...
//   indexed_block, hindexed_block    count, length, displacements...
//   subarray                         dimensions, sizes..., lengths..., starts..., last dimension is fastest
//   darray                           processes, rank, dimensions, sizes..., distributions..., blocks (0: by
//   default)...,
//                                    processes..., last dimension is fastest
struct Construction {
  Combiner combiner = Combiner::named;
  FewValues<std::int64_t> numbers;
  FewValues<TypeHandle> parts;  // one; of a structure `count`, of a named type none
};

using Numbers = std::span<const std::int64_t>;

// The blocks of a construction that names the place of each. They refer to its numbers.
struct Blocks {
  Numbers lengths;  // one for all of them, or one each
  Numbers displacements;
  bool in_bytes = false;  // else in extents
  std::size_t size() const { return displacements.size(); }
  std::int64_t length(std::size_t block) const { return lengths[lengths.size() > 1 ? block : 0]; }
};
inline Blocks blocks_of(Combiner combiner, Numbers numbers) {
  const auto count = static_cast<std::size_t>(numbers[0]);
  const bool alike = combiner == Combiner::indexed_block || combiner == Combiner::hindexed_block;
  const Numbers lengths = numbers.subspan(1, alike ? 1 : count);
  const bool in_extents = combiner == Combiner::indexed || combiner == Combiner::indexed_block;
  return {lengths, numbers.subspan(1 + lengths.size(), count), !in_extents};
}

}  // namespace plait::runtime

// Datatypes that lay the same sequence of basic elements out in memory in different ways.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>

#include "tests/differential/random.h"

namespace plait::test {

// A committed type of `elements` basic elements; owned unless it is predefined or somebody else's.
class Layout {
 public:
  // `elements` of somebody else's type.
  static Layout borrowed(MPI_Datatype type);
  // One of the derived layouts, of 1, 2, 3, 4 or 6 elements of `basic`; `columns` is how many of them follow each other
  // at most: some layouts interleave.
  static Layout derived(MPI_Datatype basic, std::size_t columns, Random& random);

  Layout(Layout&& other) noexcept;
  Layout& operator=(Layout&&) = delete;
  ~Layout();

  MPI_Datatype type() const { return type_; }
  const std::string& name() const { return name_; }
  std::size_t elements() const { return elements_; }
  std::size_t size() const { return size_; }  // bytes of data
  MPI_Aint extent() const { return extent_; }
  MPI_Aint true_lower_bound() const { return true_lower_bound_; }
  MPI_Aint true_extent() const { return true_extent_; }

 private:
  Layout(MPI_Datatype type, std::size_t elements, std::string name, bool owned);

  MPI_Datatype type_;
  std::size_t elements_;
  std::string name_;
  bool owned_;
  std::size_t size_ = 0;
  MPI_Aint extent_ = 0, true_lower_bound_ = 0, true_extent_ = 0;
};

// All counts of a call with derived layouts are multiples of this, so that any layout divides them.
inline constexpr std::size_t layout_multiple = 12;

// Types of one int, one double and one char, in this order of the signature, at different places. Made once.
class MixedTypes {
 public:
  MixedTypes();
  ~MixedTypes();
  MixedTypes(const MixedTypes&) = delete;
  MixedTypes& operator=(const MixedTypes&) = delete;
  MPI_Datatype any(Random& random) const { return types_[random.below(count)]; }
  static constexpr std::size_t size = sizeof(int) + sizeof(double) + sizeof(char);

 private:
  static constexpr std::size_t count = 3;
  MPI_Datatype types_[count];
};

}  // namespace plait::test

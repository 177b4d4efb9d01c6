// Random datatypes that all have one type signature, and buffers whose every byte is accounted for. Where the elements
// lie is worked out here, not asked of MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace road {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
  std::uint64_t next() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// A new datatype, and where its elements lie.
struct Made {
  MPI_Datatype type;
  std::vector<std::ptrdiff_t> offsets;
  std::ptrdiff_t extent;
};

// A datatype, how many of it a call names, and where its elements of the basic type lie.
class Layout {
 public:
  // Some layout for `elements` of `basic`, as one or several datatypes.
  static Layout draw(Random& random, MPI_Datatype basic, std::size_t elements);
  // One datatype of `elements`; a call names one of it.
  static Layout draw_unit(Random& random, MPI_Datatype basic, std::size_t elements);
  // A datatype that the caller made and keeps.
  static Layout of(MPI_Datatype type, MPI_Datatype basic, std::vector<std::ptrdiff_t> offsets, std::ptrdiff_t extent);

  // The same datatype, named so many times.
  Layout times(int count) const {
    Layout layout = *this;
    layout.count_ = count;
    return layout;
  }

  MPI_Datatype type() const { return *type_; }
  MPI_Datatype basic() const { return basic_; }
  int count() const { return count_; }
  std::ptrdiff_t extent() const { return extent_; }
  std::size_t elements() const { return static_cast<std::size_t>(count_) * offsets_.size(); }
  // Bytes from the address passed to MPI.
  std::ptrdiff_t offset(std::size_t element) const {
    const auto unit = static_cast<std::ptrdiff_t>(element / offsets_.size());
    return unit * extent_ + offsets_[element % offsets_.size()];
  }
  std::size_t basic_bytes() const { return basic_bytes_; }
  // Whether another datatype with the same signature may stand for it (not in reductions: all ranks name one type).
  bool replaceable() const { return replaceable_; }

 private:
  static Layout owning(Made made, MPI_Datatype basic);

  MPI_Datatype basic_ = MPI_DATATYPE_NULL;
  std::size_t basic_bytes_ = 1;
  std::shared_ptr<MPI_Datatype> type_;  // freed with the last layout that has it, unless it is not ours
  int count_ = 1;
  std::ptrdiff_t extent_ = 0;
  std::vector<std::ptrdiff_t> offsets_;  // of the elements in one datatype
  bool replaceable_ = false;
};

// Memory for `segments` times a layout, with room around it, in a known state.
class Side {
 public:
  Side(Layout layout, std::size_t segments, Random& random);

  // What MPI is told. Sometimes MPI_BOTTOM, with a datatype that holds the address.
  void* address() const { return at_bottom_ ? MPI_BOTTOM : origin_; }
  int count() const { return layout_.count(); }
  MPI_Datatype type() const { return at_bottom_ ? *absolute_ : layout_.type(); }

  // Elements run through the segments.
  std::uint64_t get(std::size_t element) const;
  void set(std::size_t element, std::uint64_t value);
  bool gaps_untouched() const;

 private:
  std::byte* place(std::size_t element) const { return origin_ + layout_.offset(element); }
  void use_bottom();

  Layout layout_;
  std::size_t elements_ = 0;
  std::vector<std::byte> memory_;
  std::byte* origin_ = nullptr;
  bool at_bottom_ = false;
  std::shared_ptr<MPI_Datatype> absolute_;
};

// Where segments of these lengths lie: in a random order, with gaps, none over another. Empty ones anywhere.
std::vector<int> draw_displacements(Random& random, const std::vector<int>& counts);
// One past the end of the last one.
std::size_t end_of(const std::vector<int>& counts, const std::vector<int>& displacements);

}  // namespace road

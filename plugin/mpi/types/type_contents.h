// What a datatype was made of, as MPI tells it.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plait::plugin {

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
  std::span<const T> values() const { return {data(), size_}; }

 private:
  std::size_t size_ = 0;
  std::array<T, 6> few_;
  std::vector<T> many_;
};

class TypeContents {
 public:
  explicit TypeContents(MPI_Datatype type);
  ~TypeContents();
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;

  int combiner() const { return combiner_; }
  bool predefined() const;
  // The constructor's numbers in its own order, whatever their types: lengths and displacements alike. Only those that
  // are large counts come after all others, which makes a difference to arrays.
  std::span<const std::int64_t> values() const { return values_.values(); }
  std::span<const MPI_Datatype> types() const { return types_.values(); }
  bool large() const { return large_; }  // it was made with large counts

 private:
  FewValues<std::int64_t> values_;
  FewValues<MPI_Datatype> types_;
  int combiner_ = MPI_COMBINER_NAMED;
  bool large_ = false;
};

}  // namespace plait::plugin

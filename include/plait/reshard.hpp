// Cross-mesh resharding for C++ programs: plait_reshard_* of plait_mpi.h as a class. Header-only; link with
// libplait.so.
//
//   plait::Reshard reshard(MPI_COMM_WORLD, {{2, 4}, "S0R", {0, 1, 2, 3, 4, 5, 6, 7}},
//                          {{2, 4}, "RS1", {8, 9, 10, 11, 12, 13, 14, 15}}, {1024, 4096}, MPI_FLOAT);
//   std::vector<float> mine(reshard.source_elements()), theirs(reshard.destination_elements());
//   reshard.execute(mine.data(), theirs.data());
#ifndef PLAIT_RESHARD_HPP
#define PLAIT_RESHARD_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plait/plait_mpi.h"

namespace plait {

// A mesh of ranks, row-major, and how the tensor lies on it. No ranks: 0, 1, ..
struct ReshardSide {
  std::vector<int> mesh;
  std::string spec;
  std::vector<int> ranks = {};
};

// What an error says, where the communicator's error handler returns (MPI_ERRORS_RETURN).
class ReshardError : public std::runtime_error {
 public:
  explicit ReshardError(int code) : std::runtime_error(text(code)), code_(code) {}
  int code() const { return code_; }  // MPI's

 private:
  static std::string text(int code) {
    std::string message(MPI_MAX_ERROR_STRING, '\0');
    int length = 0;
    if (MPI_Error_string(code, message.data(), &length) != MPI_SUCCESS) length = 0;
    message.resize(static_cast<std::size_t>(length));
    return message;
  }
  int code_;
};

// A plan. The functions do and want what those of the same name in plait_mpi.h do and want; an error is a ReshardError.
class Reshard {
 public:
  Reshard() = default;
  // Collective over `comm`.
  Reshard(MPI_Comm comm, const ReshardSide& source, const ReshardSide& destination,
          const std::vector<std::int64_t>& shape, MPI_Datatype element, const std::string& options = {})
      : dimensions_(shape.size()) {
    need(fits(source) && fits(destination) ? MPI_SUCCESS : MPI_ERR_ARG);
    need(plait_reshard_create(comm, size(source.mesh), source.mesh.data(), list(source.ranks), source.spec.c_str(),
                              size(destination.mesh), destination.mesh.data(), list(destination.ranks),
                              destination.spec.c_str(), size(shape), shape.data(), element, options.c_str(), &plan_));
  }
  // Collective over the ranks of the meshes.
  ~Reshard() {
    if (plan_ != PLAIT_RESHARD_NULL) plait_reshard_free(&plan_);
  }
  Reshard(Reshard&& other) noexcept
      : plan_(std::exchange(other.plan_, PLAIT_RESHARD_NULL)), dimensions_(other.dimensions_) {}
  Reshard& operator=(Reshard&& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(dimensions_, other.dimensions_);
    return *this;
  }

  void execute(const void* source, void* destination) { need(plait_reshard_execute(plan_, source, destination)); }
  MPI_Request start(const void* source, void* destination) {
    MPI_Request request = MPI_REQUEST_NULL;
    need(plait_reshard_start(plan_, source, destination, &request));
    return request;
  }

  // This rank's part of the tensor: elements in each dimension, and in all; 0 where it has none.
  std::vector<std::int64_t> source_shape() const { return lengths(PLAIT_RESHARD_SOURCE); }
  std::vector<std::int64_t> destination_shape() const { return lengths(PLAIT_RESHARD_DESTINATION); }
  std::size_t source_elements() const { return product(source_shape()); }
  std::size_t destination_elements() const { return product(destination_shape()); }
  std::string describe() const { return plait_reshard_describe(plan_); }
  plait_reshard handle() const { return plan_; }

 private:
  static void need(int code) {
    if (code != MPI_SUCCESS) throw ReshardError(code);
  }
  template <class T>
  static int size(const std::vector<T>& values) {
    return static_cast<int>(values.size());
  }
  static const int* list(const std::vector<int>& ranks) { return ranks.empty() ? nullptr : ranks.data(); }
  static std::size_t product(const std::vector<std::int64_t>& lengths) {
    std::size_t all = 1;
    for (const std::int64_t length : lengths) all *= static_cast<std::size_t>(length);
    return all;
  }
  // The C function reads as many ranks as the mesh has places.
  static bool fits(const ReshardSide& side) {
    if (side.ranks.empty()) return true;
    std::size_t places = 1;
    for (const int dim : side.mesh)
      places *= dim > 0 && places <= side.ranks.size() ? static_cast<std::size_t>(dim) : 1;
    return places == side.ranks.size();
  }
  std::vector<std::int64_t> lengths(int side) const {
    std::vector<std::int64_t> found(dimensions_);
    need(plait_reshard_local(plan_, side, nullptr, found.data()));
    return found;
  }

  plait_reshard plan_ = PLAIT_RESHARD_NULL;
  std::size_t dimensions_ = 0;
};

}  // namespace plait

#endif

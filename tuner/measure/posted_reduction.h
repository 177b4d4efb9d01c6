// A non-blocking allreduce with buffers of its own, for measuring, without mpi.h. It is made by MPI's own names, so
// that whatever stands before the MPI library takes part in it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/status.h"

namespace plait::tuner {

// Of 32-bit floats on MPI_COMM_WORLD. Used by one thread. All members are collective; a failure ends the job
// (MPI_ERRORS_ARE_FATAL).
class PostedReduction {
 public:
  // `bytes`: a multiple of 4, at most what MPI can count. Fails (unavailable) without memory, (invalid) for others.
  static Result<PostedReduction> make(std::size_t bytes);
  PostedReduction(PostedReduction&&) noexcept;
  PostedReduction& operator=(PostedReduction&&) noexcept;
  ~PostedReduction();

  void post();
  void wait();  // for what was posted; blocks
  // Whether the result is right. Local; after wait().
  bool right(int ranks) const;

 private:
  struct Request;
  PostedReduction();

  std::vector<float> input_, output_;
  std::unique_ptr<Request> request_;
};

}  // namespace plait::tuner

#include "tuner/measure/posted_reduction.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <new>

namespace plait::tuner {

struct PostedReduction::Request {
  MPI_Request request = MPI_REQUEST_NULL;
};

PostedReduction::PostedReduction() : request_(std::make_unique<Request>()) {}
PostedReduction::PostedReduction(PostedReduction&&) noexcept = default;
PostedReduction& PostedReduction::operator=(PostedReduction&&) noexcept = default;
PostedReduction::~PostedReduction() = default;

Result<PostedReduction> PostedReduction::make(std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  if (count == 0 || count > INT_MAX || bytes % sizeof(float) != 0)
    return Status(Code::invalid, "expected reductions of 4 B to 8 GiB, a multiple of 4, but " + std::to_string(bytes));
  PostedReduction reduction;
  try {
    reduction.input_.assign(count, 1);
    reduction.output_.assign(count, 0);
  } catch (const std::bad_alloc&) {
    return Status(Code::unavailable, "no memory for reductions of " + std::to_string(bytes) + " bytes");
  }
  return reduction;
}

void PostedReduction::post() {
  MPI_Iallreduce(input_.data(), output_.data(), static_cast<int>(input_.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                 &request_->request);
}

void PostedReduction::wait() { MPI_Wait(&request_->request, MPI_STATUS_IGNORE); }

bool PostedReduction::right(int ranks) const {
  const auto sum = static_cast<float>(ranks);
  return std::all_of(output_.begin(), output_.end(), [sum](float value) { return value == sum; });
}

}  // namespace plait::tuner

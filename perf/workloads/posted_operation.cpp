#include "perf/workloads/posted_operation.h"

#include <algorithm>

#include "perf/workloads/persistent_calls.h"

namespace plait::perf::workloads {
namespace {

using plan::Collective;

constexpr std::size_t few_elements = 64;
// Sums of so many ranks stay far from the ends of 32 bits, and parts of one another's data are told apart.
constexpr std::uint64_t values = 10007;

bool of_every_rank(Collective collective) {  // the input has a part for each
  return collective == Collective::alltoall || collective == Collective::reduce_scatter_block;
}

bool from_every_rank(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::allgather;
}

}  // namespace

bool PostedOperation::can_post(Collective collective) {
  switch (collective) {
    case Collective::alltoall:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::reduce_scatter_block:
    case Collective::bcast:
      return true;
    default:
      return false;
  }
}

PostedOperation::PostedOperation(const plan::step::Task& task, int number, Check check, MPI_Comm communicator)
    : collective_(*task.collective),
      number_(number),
      count_(std::max<std::size_t>(1, task.bytes / sizeof(std::int32_t))),
      check_(check),
      persistent_(task.persistent),
      communicator_(communicator) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  const std::size_t ranks = static_cast<std::size_t>(ranks_);
  input_.resize(count_ * (of_every_rank(collective_) ? ranks : 1));
  output_.resize(count_ * (from_every_rank(collective_) ? ranks : 1));
  if (persistent_) make_persistent();
}

PostedOperation::~PostedOperation() {
  if (persistent_) MPI_Request_free(&request_);
}

void PostedOperation::make_persistent() {
  const int count = static_cast<int>(count_);
  const MPI_Info no_info = MPI_INFO_NULL;
  switch (collective_) {
    case Collective::alltoall:
      alltoall_init(input_.data(), count, MPI_INT32_T, output_.data(), count, MPI_INT32_T, communicator_, no_info,
                    &request_);
      break;
    case Collective::allgather:
      allgather_init(input_.data(), count, MPI_INT32_T, output_.data(), count, MPI_INT32_T, communicator_, no_info,
                     &request_);
      break;
    case Collective::reduce_scatter_block:
      reduce_scatter_block_init(input_.data(), output_.data(), count, MPI_INT32_T, MPI_SUM, communicator_, no_info,
                                &request_);
      break;
    case Collective::bcast:
      bcast_init(output_.data(), count, MPI_INT32_T, 0, communicator_, no_info, &request_);
      break;
    default:
      allreduce_init(input_.data(), output_.data(), count, MPI_INT32_T, MPI_SUM, communicator_, no_info, &request_);
  }
}

std::size_t PostedOperation::stride() const {
  return check_ == Check::all_elements ? 1 : std::max<std::size_t>(1, count_ / few_elements) | 1;
}

// Of the iteration that is under way.
std::int32_t PostedOperation::element(int rank, std::size_t index) const {
  const std::uint64_t mixed = (static_cast<std::uint64_t>(rank) * 31 + static_cast<std::uint64_t>(number_)) * 131 +
                              static_cast<std::uint64_t>(iteration_);
  return static_cast<std::int32_t>((mixed * 8191 + index) % values);
}

std::int32_t PostedOperation::expected(std::size_t index) const {
  const std::size_t own_part = static_cast<std::size_t>(rank_) * count_;
  const int sender = static_cast<int>(index / count_);
  std::int32_t sum = 0;
  switch (collective_) {
    case Collective::alltoall:
      return element(sender, own_part + index % count_);
    case Collective::allgather:
      return element(sender, index % count_);
    case Collective::bcast:
      return element(0, index);
    default:  // reductions
      for (int rank = 0; rank < ranks_; ++rank)
        sum += element(rank, of_every_rank(collective_) ? own_part + index : index);
      return sum;
  }
}

// Receivers look at the same elements of each part.
void PostedOperation::fill() {
  for (std::size_t part = 0; part < input_.size(); part += count_)
    for (std::size_t i = 0; i < count_; i += stride()) input_[part + i] = element(rank_, part + i);
  if (collective_ == Collective::bcast && rank_ == 0) std::ranges::copy(input_, output_.begin());
}

void PostedOperation::look() {
  for (std::size_t part = 0; part < output_.size(); part += count_)
    for (std::size_t i = 0; i < count_; i += stride())
      if (output_[part + i] != expected(part + i)) ++wrong_;
}

void PostedOperation::post(int iteration) {
  wait();
  iteration_ = iteration;
  fill();
  if (persistent_)
    MPI_Start(&request_);
  else
    call();
}

void PostedOperation::call() {
  const int count = static_cast<int>(count_);
  switch (collective_) {
    case Collective::alltoall:
      MPI_Ialltoall(input_.data(), count, MPI_INT32_T, output_.data(), count, MPI_INT32_T, communicator_, &request_);
      break;
    case Collective::allgather:
      MPI_Iallgather(input_.data(), count, MPI_INT32_T, output_.data(), count, MPI_INT32_T, communicator_, &request_);
      break;
    case Collective::reduce_scatter_block:
      MPI_Ireduce_scatter_block(input_.data(), output_.data(), count, MPI_INT32_T, MPI_SUM, communicator_, &request_);
      break;
    case Collective::bcast:
      MPI_Ibcast(output_.data(), count, MPI_INT32_T, 0, communicator_, &request_);
      break;
    default:
      MPI_Iallreduce(input_.data(), output_.data(), count, MPI_INT32_T, MPI_SUM, communicator_, &request_);
  }
}

void PostedOperation::wait() {
  if (!under_way()) return;
  MPI_Wait(&request_, MPI_STATUS_IGNORE);
  look();
  iteration_ = idle;
}

}  // namespace plait::perf::workloads

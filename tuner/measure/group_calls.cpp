#include "tuner/measure/group_calls.h"

#include <mpi.h>

#include <chrono>
#include <thread>
#include <utility>

#include "plait/plait_mpi.h"

namespace plait::tuner {
namespace {

constexpr std::chrono::microseconds nap{500};

MPI_Comm handle(void* communicator) { return *static_cast<MPI_Comm*>(communicator); }

}  // namespace

MpiGroup::MpiGroup(void* communicator) : communicator_(communicator) {
  if (communicator_ == nullptr) return;
  MPI_Comm_rank(handle(communicator_), &rank_);
  MPI_Comm_size(handle(communicator_), &ranks_);
}

MpiGroup MpiGroup::split(int colour) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, colour < 0 ? MPI_UNDEFINED : colour, 0, &made);
  return MpiGroup(made == MPI_COMM_NULL ? nullptr : new MPI_Comm(made));
}

MpiGroup::MpiGroup(MpiGroup&& other) noexcept
    : communicator_(std::exchange(other.communicator_, nullptr)), rank_(other.rank_), ranks_(other.ranks_) {}

MpiGroup::~MpiGroup() {
  if (communicator_ == nullptr) return;
  auto* communicator = static_cast<MPI_Comm*>(communicator_);
  MPI_Comm_free(communicator);
  delete communicator;
}

bool MpiGroup::member() const { return communicator_ != nullptr; }

Status MpiGroup::take_channels(const std::string& channels) {
  if (plait_set_channels(handle(communicator_), channels.c_str()) == MPI_SUCCESS) return {};
  return {Code::invalid, "channels \"" + channels + "\" cannot carry a group's data"};
}

Status MpiGroup::take_plan(const std::string& plan) {
  if (plait_set_plan(handle(communicator_), plan.c_str()) == MPI_SUCCESS) return {};
  return {Code::invalid, "plan \"" + plan + "\" cannot run on a group of " + std::to_string(ranks_) + " ranks"};
}

void MpiGroup::barrier() { MPI_Barrier(handle(communicator_)); }

void MpiGroup::broadcast(std::byte* data, std::size_t bytes, int root) {
  MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, root, handle(communicator_));
}

void MpiGroup::reduce(const std::byte* data, std::byte* sums, std::size_t bytes, int root) {
  MPI_Reduce(data, sums, static_cast<int>(bytes / 4), MPI_INT32_T, MPI_SUM, root, handle(communicator_));
}

void MpiGroup::maxima(std::span<double> values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                handle(communicator_));
}

void MpiGroup::all_gather(const std::byte* mine, std::byte* all, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, handle(communicator_));
}

Status take_plan_of_job(const std::string& plan) {
  if (plait_set_plan(MPI_COMM_WORLD, plan.c_str()) == MPI_SUCCESS) return {};
  return {Code::invalid, "plan \"" + plan + "\" cannot run in this job"};
}

void meet_quietly() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0;) std::this_thread::sleep_for(nap);
}

}  // namespace plait::tuner

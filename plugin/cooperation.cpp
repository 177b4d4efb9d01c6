#include "plugin/cooperation.h"

#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <string>

#include "plugin/errors.h"
#include "plugin/host.h"

namespace plait::plugin {

namespace {

constexpr int nobody = std::numeric_limits<int>::max();

struct Meeting {
  int error = MPI_SUCCESS;  // of the host
  int missing = nobody;     // the first rank that does not go on

  bool complete() const { return error == MPI_SUCCESS && missing == nobody; }
};

// Does not block, so that who withdraws need not stay until the others come.
Meeting meet(MPI_Comm comm, int missing) noexcept {
  Meeting meeting;
  MPI_Request request = MPI_REQUEST_NULL;
  meeting.error = host().iallreduce(&missing, &meeting.missing, 1, MPI_INT, MPI_MIN, comm, &request);
  if (meeting.error == MPI_SUCCESS) meeting.error = host().wait(&request, MPI_STATUS_IGNORE);
  return meeting;
}

int rank_in(MPI_Comm comm) noexcept {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

// What the host may still send long after the rank has gone on. A process that runs out of memory more often tells
// another rank's number.
constinit std::array<int, 64> withdrawn{};
constinit std::atomic<unsigned> withdrawals{0};
constinit int nobody_reads_it = 0;

// Nothing is thrown from here on, where the others go other ways already.
Status failed(Code code, std::string_view what, const Meeting& meeting) noexcept {
  try {
    const std::string cause = meeting.error != MPI_SUCCESS
                                  ? status_of(meeting.error).message()
                                  : "rank " + std::to_string(meeting.missing) + " is out of memory";
    return {code, "the ranks could not " + std::string(what) + ": " + cause};
  } catch (const std::exception&) {
    return {code, "out of memory"};
  }
}

template <class Step>
Status after_meeting(MPI_Comm comm, std::string_view what, Step&& step) {
  Meeting meeting = meet(comm, nobody);
  if (meeting.complete()) meeting.error = step();
  return meeting.complete() ? Status() : failed(Code::peer_failed, what, meeting);
}

}  // namespace

void withdraw(MPI_Comm comm) noexcept {
  int& missing = withdrawn[withdrawals.fetch_add(1, std::memory_order_relaxed) % withdrawn.size()];
  missing = rank_in(comm);
  MPI_Request nobody_waits = MPI_REQUEST_NULL;
  static_cast<void>(host().iallreduce(&missing, &nobody_reads_it, 1, MPI_INT, MPI_MIN, comm, &nobody_waits));
}

Status go_on_together(MPI_Comm comm, const Status& mine) noexcept {
  const Meeting meeting = meet(comm, mine.ok() ? nobody : rank_in(comm));
  if (!mine.ok()) return {mine.code(), "out of memory"};
  return meeting.complete() ? Status() : failed(Code::unavailable, "go on together", meeting);
}

Status meet_all(MPI_Comm comm, std::string_view what) {
  return after_meeting(comm, what, [] { return MPI_SUCCESS; });
}

Status gather_all(const void* mine, int bytes, void* all, MPI_Comm comm, std::string_view what) {
  return after_meeting(comm, what, [&] { return host().allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm); });
}

Status tell_all(void* text, int bytes, MPI_Comm comm, std::string_view what) {
  return after_meeting(comm, what, [&] { return host().bcast(text, bytes, MPI_BYTE, 0, comm); });
}

Status reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                  std::string_view what) {
  return after_meeting(comm, what, [&] { return host().allreduce(mine, all, count, type, op, comm); });
}

}  // namespace plait::plugin

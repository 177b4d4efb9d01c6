#include "plugin/mpi/oob/mpi_oob.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "core/attempt.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/oob/failure_notice.h"
#include "plugin/mpi/oob/left_requests.h"
#include "runtime/job/job.h"

namespace plait::plugin {
namespace {

// The program's error handler must not see a failure of something the program did not ask for. Where other threads may
// use the communicator meanwhile, their errors come first.
class QuietCommunicator {
 public:
  explicit QuietCommunicator(MPI_Comm comm) : comm_(job().concurrent ? MPI_COMM_NULL : comm) {
    if (comm_ == MPI_COMM_NULL) return;
    PMPI_Comm_get_errhandler(comm_, &before_);
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~QuietCommunicator() {
    if (comm_ == MPI_COMM_NULL) return;
    PMPI_Comm_set_errhandler(comm_, before_);
    PMPI_Errhandler_free(&before_);
  }

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

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

MPI_Datatype type_of(Element element) {
  switch (element) {
    case Element::i8:
      return MPI_INT8_T;
    case Element::u8:
      return MPI_UINT8_T;
    case Element::i32:
      return MPI_INT32_T;
    case Element::u32:
      return MPI_UINT32_T;
    case Element::i64:
      return MPI_INT64_T;
    case Element::u64:
      return MPI_UINT64_T;
    case Element::f64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;  // the host says that it cannot be
  }
}

MPI_Op op_of(Op op) {
  switch (op) {
    case Op::sum:
      return MPI_SUM;
    case Op::min:
      return MPI_MIN;
    case Op::max:
      return MPI_MAX;
    case Op::band:
      return MPI_BAND;
    default:
      return MPI_OP_NULL;
  }
}

constexpr int word_tag = 32765, text_tag = 32766;
constexpr std::size_t max_piece = std::size_t{1} << 28;

void send_text(MPI_Comm comm, const std::string& text) {
  const std::uint64_t length = text.size();
  PMPI_Send(&length, sizeof length, MPI_BYTE, 0, text_tag, comm);
  for (std::size_t sent = 0; sent < length; sent += max_piece)
    PMPI_Send(text.data() + sent, static_cast<int>(std::min<std::size_t>(max_piece, length - sent)), MPI_BYTE, 0,
              text_tag, comm);
}

// Cut off at the first piece: its sender goes on.
void receive_nothing(MPI_Comm comm, int rank, std::uint64_t length) {
  std::byte none{};
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(comm, &before);
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (std::size_t got = 0; got < length; got += max_piece)
    PMPI_Recv(&none, 0, MPI_BYTE, rank, text_tag, comm, MPI_STATUS_IGNORE);
  PMPI_Comm_set_errhandler(comm, before);
  PMPI_Errhandler_free(&before);
}

std::string receive_text(MPI_Comm comm, int rank) {
  std::uint64_t length = 0;
  PMPI_Recv(&length, sizeof length, MPI_BYTE, rank, text_tag, comm, MPI_STATUS_IGNORE);
  std::string text;
  try {
    text.resize(length);
  } catch (const std::exception&) {
    receive_nothing(comm, rank, length);
    return {};
  }
  for (std::size_t got = 0; got < length; got += max_piece)
    PMPI_Recv(text.data() + got, static_cast<int>(std::min<std::size_t>(max_piece, length - got)), MPI_BYTE, rank,
              text_tag, comm, MPI_STATUS_IGNORE);
  return text;
}

}  // namespace

int MpiOob::rank() const { return rank_in(handle_); }

int MpiOob::ranks() const {
  int ranks = 1;
  PMPI_Comm_size(handle_, &ranks);
  return ranks;
}

void MpiOob::withdraw() noexcept {
  int& missing = withdrawn[withdrawals.fetch_add(1, std::memory_order_relaxed) % withdrawn.size()];
  missing = rank();
  MPI_Request nobody_waits = MPI_REQUEST_NULL;
  static_cast<void>(host().iallreduce(&missing, &nobody_reads_it, 1, MPI_INT, MPI_MIN, handle_, &nobody_waits));
  note_failure();
}

Status MpiOob::go_on_together(const Status& mine) noexcept {
  const Meeting meeting = plugin::meet(handle_, mine.ok() ? nobody : rank());
  if (!mine.ok()) return {mine.code(), "out of memory"};
  return meeting.complete() ? Status() : failed(Code::unavailable, "go on together", meeting);
}

Status MpiOob::meet(std::string_view what) {
  return after_meeting(handle_, what, [] { return MPI_SUCCESS; });
}

Status MpiOob::gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) {
  const int count = static_cast<int>(bytes);
  return after_meeting(handle_, what,
                       [&] { return host().allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, handle_); });
}

Status MpiOob::tell_all(void* data, std::size_t bytes, std::string_view what) {
  return after_meeting(handle_, what,
                       [&] { return host().bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, handle_); });
}

Status MpiOob::reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                          std::string_view what) {
  return after_meeting(handle_, what, [&] {
    return host().allreduce(mine, all, static_cast<int>(count), type_of(element), op_of(op), handle_);
  });
}

void MpiOob::abandon() noexcept {
  owned_ = false;
  note_failure();
}

void MpiOob::leave_word(int rank) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Isend(nullptr, 0, MPI_BYTE, rank, word_tag, handle_, &request) == MPI_SUCCESS) leave_request(request);
}

// The message is not received: it counts for all looks to come.
bool MpiOob::word_left() {
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, word_tag, handle_, &found, MPI_STATUS_IGNORE);
  return found != 0;
}

// What all write stands in memory that is left to the host where a rank does not come.
Status MpiOob::gather_all_unless(const std::function<Status()>& failed, const void* mine, std::size_t bytes, void* all,
                                 std::string_view what) {
  const int count = static_cast<int>(bytes);
  const std::size_t all_bytes = bytes * static_cast<std::size_t>(ranks());
  auto memory = std::make_unique<std::byte[]>(bytes + all_bytes);
  std::byte *own = memory.get(), *gathered = own + bytes;
  std::memcpy(own, mine, bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  Meeting meeting;
  meeting.error = host().iallgather(own, count, MPI_BYTE, gathered, count, MPI_BYTE, handle_, &request);
  for (int done = 0; meeting.error == MPI_SUCCESS && done == 0; sched_yield()) {
    meeting.error = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (meeting.error == MPI_SUCCESS && done != 0) break;
    Status failure = meeting.error != MPI_SUCCESS ? plugin::failed(Code::peer_failed, what, meeting)
                                                  : attempt([&] { return failed(); });
    if (failure.ok()) continue;
    abandon();
    static_cast<void>(memory.release());
    return failure;
  }
  if (meeting.error != MPI_SUCCESS) return plugin::failed(Code::peer_failed, what, meeting);
  std::memcpy(all, gathered, all_bytes);
  return {};
}

void MpiOob::gather_texts(const std::string& mine, const std::function<void(int rank, std::string text)>& take) {
  if (rank() != 0) return send_text(handle_, mine);
  const int all = ranks();
  for (int from = 0; from < all; ++from) {
    try {
      take(from, from == 0 ? mine : receive_text(handle_, from));
    } catch (const std::exception&) {
    }
  }
}

std::unique_ptr<FailureNotice> MpiOob::make_notice(std::uint64_t number, std::vector<int> near) {
  return std::make_unique<MpiFailureNotice>(handle_, number, std::move(near));
}

Status MpiOob::part(std::optional<int> colour, std::unique_ptr<Oob>& made, std::string_view what) {
  auto part = std::make_unique<MpiOob>(MPI_COMM_NULL);
  MPI_Comm split = MPI_COMM_NULL;
  Status met =
      after_meeting(handle_, what, [&] { return PMPI_Comm_split(handle_, colour.value_or(MPI_UNDEFINED), 0, &split); });
  if (!met.ok() || split == MPI_COMM_NULL) return met;
  PMPI_Comm_set_errhandler(split, MPI_ERRORS_RETURN);
  part->take(split);
  made = std::move(part);
  return met;
}

namespace {

// MPI_COMM_NULL where the host makes none. Needs no memory of ours.
MPI_Comm make_private(MPI_Comm user) noexcept {
  const QuietCommunicator quiet(user);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  PMPI_Comm_group(user, &group);
  const int error = host().comm_create(user, group, &made);
  PMPI_Group_free(&group);
  if (error != MPI_SUCCESS || made == MPI_COMM_NULL) return MPI_COMM_NULL;
  PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

}  // namespace

Status MpiOob::make_own(MPI_Comm user) noexcept {
  take(make_private(user));
  if (handle_ != MPI_COMM_NULL) return {};
  try {
    return {Code::unavailable, "no communicator of our own could be made"};
  } catch (const std::exception&) {
    return {Code::unavailable, "out of memory"};
  }
}

void decline_mpi_oob(MPI_Comm user) noexcept {
  MPI_Comm made = make_private(user);
  if (made == MPI_COMM_NULL) return;
  MpiOob oob(made);
  oob.withdraw();
  oob.abandon();
}

}  // namespace plait::plugin

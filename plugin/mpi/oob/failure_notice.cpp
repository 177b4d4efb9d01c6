#include "plugin/mpi/oob/failure_notice.h"

#include <algorithm>

#include "plugin/mpi/oob/left_requests.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

constexpr std::uint64_t longest_send_ns = 100'000'000;

}  // namespace

void MpiFailureNotice::look() {
  int found = 1;
  MPI_Status status;
  while (PMPI_Iprobe(MPI_ANY_SOURCE, tag, messages_, &found, &status) == MPI_SUCCESS && found != 0)
    [[unlikely]] if (!receive(status)) return;
}

// False where the host does not give it out.
bool MpiFailureNotice::receive(const MPI_Status& found) {
  Message notice;
  if (PMPI_Recv(&notice, sizeof notice, MPI_BYTE, found.MPI_SOURCE, tag, messages_, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return false;
  note_failure();
  if (notice.number != number_) return true;
  notice.reason.back() = 0;
  hear(found.MPI_SOURCE, notice.by_hearsay != 0 ? Code::peer_left : Code::peer_failed, notice.reason.data());
  return true;
}

// One request after the other, in turn: the one that had this place is waited for, or left.
void MpiFailureNotice::send_to(int rank, std::size_t slot, std::uint64_t until) noexcept {
  MPI_Request& request = requests_[slot];
  int sent = 0;
  while (sent == 0) {
    if (PMPI_Test(&request, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS || (sent == 0 && tl::monotonic_ns() >= until))
      break;
  }
  if (sent == 0) {
    leave_request(std::exchange(request, MPI_REQUEST_NULL));
    left_ = true;
  }
  if (PMPI_Isend(message_.get(), sizeof *message_, MPI_BYTE, rank, tag, messages_, &request) != MPI_SUCCESS)
    request = MPI_REQUEST_NULL;
}

// What the host has not sent by then goes out before MPI ends, and the text stays.
void MpiFailureNotice::tell(const Status& cause) noexcept {
  if (told_ || !improves(cause.code())) return;
  told_ = true;
  message_->number = number_;
  message_->by_hearsay = cause.code() == Code::peer_left ? 1 : 0;
  std::copy_n(cause.message().data(), std::min(cause.message().size(), message_->reason.size() - 1),
              message_->reason.data());
  const std::uint64_t until = tl::monotonic_ns() + longest_send_ns;
  std::size_t slot = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (std::ranges::binary_search(near_, rank)) continue;
    send_to(rank, slot++ % requests_.size(), until);
  }
  int sent = 0;
  while (sent == 0 && tl::monotonic_ns() < until)
    if (PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &sent, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      break;
  note_failure();
  if (sent != 0 && !left_) return;
  for (MPI_Request& request : requests_) leave_request(std::exchange(request, MPI_REQUEST_NULL));
  static_cast<void>(message_.release());
}

}  // namespace plait::plugin

#include "plugin/failure_notice.h"

#include <algorithm>
#include <new>
#include <string>

#include "tl/trace.h"

namespace plait::plugin {
namespace {

constexpr std::uint64_t longest_send_ns = 100'000'000;

}  // namespace

// False where the host does not give it out.
bool FailureNotice::hear(MPI_Comm messages, const MPI_Status& found) {
  Message notice;
  if (PMPI_Recv(&notice, sizeof notice, MPI_BYTE, found.MPI_SOURCE, tag, messages, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return false;
  const Code code = notice.by_hearsay != 0 ? Code::peer_left : Code::peer_failed;
  if (notice.communicator != communicator_ || !improves(code)) return true;
  notice.reason.back() = 0;
  try {
    heard_ = {code, "rank " + std::to_string(found.MPI_SOURCE) + " has failed: " + notice.reason.data()};
  } catch (const std::bad_alloc&) {
    heard_ = {code, "a rank failed"};
  }
  return true;
}

// What the host has not sent by then is left to it, and the text as well.
void FailureNotice::tell(MPI_Comm messages, const Status& cause) noexcept {
  if (told_ || !improves(cause.code()) || messages == MPI_COMM_NULL) return;
  told_ = true;
  message_->communicator = communicator_;
  message_->by_hearsay = cause.code() == Code::peer_left ? 1 : 0;
  std::copy_n(cause.message().data(), std::min(cause.message().size(), message_->reason.size() - 1),
              message_->reason.data());
  for (std::size_t i = 0; i < others_.size(); ++i)
    if (PMPI_Isend(message_.get(), sizeof *message_, MPI_BYTE, others_[i], tag, messages, &requests_[i]) != MPI_SUCCESS)
      requests_[i] = MPI_REQUEST_NULL;
  int sent = 0;
  const std::uint64_t until = tl::monotonic_ns() + longest_send_ns;
  while (sent == 0 && tl::monotonic_ns() < until)
    if (PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &sent, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      break;
  if (sent != 0) return;
  for (MPI_Request& request : requests_)
    if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
  static_cast<void>(message_.release());
}

}  // namespace plait::plugin

#include "plugin/failure_notice.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "tl/trace.h"

namespace plait::plugin {
namespace {

constexpr std::uint64_t longest_send_ns = 100'000'000;

// The message.
struct Notice {
  std::uint64_t communicator = 0;
  std::array<char, 248> reason{};  // ends with a 0
};

}  // namespace

void FailureNotice::hear(MPI_Comm messages, const MPI_Status& found) {
  Notice notice;
  if (PMPI_Recv(&notice, sizeof notice, MPI_BYTE, found.MPI_SOURCE, tag, messages, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return;
  if (notice.communicator != communicator_ || !heard_.ok()) return;
  notice.reason.back() = 0;
  heard_ = {Code::peer_failed, "rank " + std::to_string(found.MPI_SOURCE) + " has failed: " + notice.reason.data()};
}

// What the host has not sent by then is left to it, and the text as well.
void FailureNotice::tell(MPI_Comm messages, const Status& cause) {
  if (told_ || !heard_.ok() || messages == MPI_COMM_NULL) return;
  told_ = true;
  auto notice = std::make_unique<Notice>();
  notice->communicator = communicator_;
  std::copy_n(cause.message().data(), std::min(cause.message().size(), notice->reason.size() - 1),
              notice->reason.data());
  std::vector<MPI_Request> requests;
  for (const int other : others_) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (PMPI_Isend(notice.get(), sizeof *notice, MPI_BYTE, other, tag, messages, &request) == MPI_SUCCESS)
      requests.push_back(request);
  }
  int sent = 0;
  const std::uint64_t until = tl::monotonic_ns() + longest_send_ns;
  while (sent == 0 && tl::monotonic_ns() < until)
    if (PMPI_Testall(static_cast<int>(requests.size()), requests.data(), &sent, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      break;
  if (sent != 0) return;
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
  static_cast<void>(notice.release());
}

}  // namespace plait::plugin

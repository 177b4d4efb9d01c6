#include "plugin/mpi/request/persistent_receive.h"

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/immortal.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/types/layout.h"

namespace plait::plugin {
namespace {

struct Tags {
  std::mutex guard;
  std::vector<int> free;
  int next = 1;
};

Tags& tags() {
  static Immortal<Tags> made;  // never destroyed: requests may be freed until the process ends
  return *made;
}

int take_tag() {
  const std::scoped_lock lock(tags().guard);
  if (tags().free.empty()) {
    tags().free.reserve(static_cast<std::size_t>(tags().next));  // it is given back where nothing may be thrown
    return tags().next++;
  }
  const int tag = tags().free.back();
  tags().free.pop_back();
  return tag;
}

// A wait of MPICH's that finds its request incomplete looks again only when its count of progress has changed, which a
// message to oneself does not do. The end of any request does.
void wake_waits() {
#if !defined(OPEN_MPI)
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, 0, quiet_communicator(), &request) == MPI_SUCCESS)
    host().request_free(&request);
#endif
}

}  // namespace

int make_receive(Persistence& persistence) {
  persistence.tag = take_tag();
  return PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, persistence.tag, quiet_communicator(), &persistence.handle);
}

int start_receive(MPI_Request* request) { return host().start(request); }

void complete_receive(int tag, bool failed) {
  const std::byte too_long{};
  PMPI_Send(&too_long, failed ? 1 : 0, MPI_BYTE, 0, tag, quiet_communicator());
  wake_waits();
}

void give_tag_back(int tag) {
  const std::scoped_lock lock(tags().guard);
  tags().free.push_back(tag);
}

}  // namespace plait::plugin

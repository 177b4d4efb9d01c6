#include "tl/shm/kernel_copy.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace plait::detail {
namespace {

using SystemCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

Status failure(RemoteProcess there, SystemCall call, const char* reason) {
  return {Code::peer_failed, std::string("shm: ") + (call == process_vm_readv ? "reading" : "writing") +
                                 " the memory of rank " + std::to_string(there.rank) + " (process " +
                                 std::to_string(there.process) + "): " + reason};
}

Status move(RemoteProcess there, std::uint64_t address, std::byte* here, std::size_t bytes, SystemCall call) {
  while (bytes > 0) {
    const iovec local{here, bytes}, remote{reinterpret_cast<void*>(address), bytes};
    const ssize_t done = call(there.process, &local, 1, &remote, 1, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failure(there, call, std::strerror(errno));
    if (done == 0) return failure(there, call, "nothing copied");
    here += done;
    address += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return {};
}

}  // namespace

Status read_remote(RemoteProcess there, std::uint64_t address, std::byte* to, std::size_t bytes) {
  return move(there, address, to, bytes, process_vm_readv);
}

Status write_remote(RemoteProcess there, std::uint64_t address, const std::byte* from, std::size_t bytes) {
  return move(there, address, const_cast<std::byte*>(from), bytes, process_vm_writev);
}

}  // namespace plait::detail

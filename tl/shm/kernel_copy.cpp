#include "tl/shm/kernel_copy.h"

#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/work_team.h"

namespace plait::tl::detail {
namespace {

using SystemCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

Status failure(RemoteProcess there, SystemCall call, const char* reason) {
  return {Code::peer_failed, std::string("shm: ") + (call == process_vm_readv ? "reading" : "writing") +
                                 " the memory of rank " + std::to_string(there.rank) + " (process " +
                                 std::to_string(there.process) + "): " + reason};
}

constexpr int nothing_copied = -1;

// 0, errno, or that nothing was copied.
int move_part(int process, std::uint64_t address, std::byte* here, std::size_t bytes, SystemCall call) {
  while (bytes > 0) {
    const iovec local{here, bytes}, remote{reinterpret_cast<void*>(address), bytes};
    const ssize_t done = call(process, &local, 1, &remote, 1, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : nothing_copied;
    here += done;
    address += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return 0;
}

Status move(RemoteProcess there, std::uint64_t address, std::byte* here, std::size_t bytes, SystemCall call) {
  std::atomic<int> error{0};
  share_out({.elements = bytes, .element_bytes = 1, .written = here}, [&](std::size_t begin, std::size_t count) {
    const int own = move_part(there.process, address + begin, here + begin, count, call);
    if (own != 0) error.store(own, std::memory_order_relaxed);
  });
  const int found = error.load(std::memory_order_relaxed);
  if (found == 0) return {};
  return failure(there, call, found == nothing_copied ? "nothing copied" : std::strerror(found));
}

}  // namespace

Status read_remote(RemoteProcess there, std::uint64_t address, std::byte* to, std::size_t bytes) {
  return move(there, address, to, bytes, process_vm_readv);
}

Status write_remote(RemoteProcess there, std::uint64_t address, const std::byte* from, std::size_t bytes) {
  return move(there, address, const_cast<std::byte*>(from), bytes, process_vm_writev);
}

}  // namespace plait::tl::detail

#include "tuner/measure/node_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace plait::tuner {
namespace {

constexpr std::size_t flag_bytes = 4096;

struct Address {
  std::int32_t process = 0, descriptor = -1;
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

SharedMapping map(int descriptor, std::size_t offset, std::size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
  return address == MAP_FAILED ? SharedMapping() : SharedMapping(address, bytes);
}

SharedMapping map_of(const Address& owner, std::size_t offset, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(owner.process) + "/fd/" + std::to_string(owner.descriptor);
  const Descriptor opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return opened.number() < 0 ? SharedMapping() : map(opened.number(), offset, bytes);
}

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (address_ != nullptr) munmap(address_, bytes_);
}

Result<NodeSegment> NodeSegment::make(MpiSession& session, std::size_t bytes) {
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // else some kernels let no other process read this one
#endif
  const Descriptor file(memfd_create("plait-limits", MFD_CLOEXEC));
  const bool sized = file.number() >= 0 && ftruncate(file.number(), static_cast<off_t>(flag_bytes + bytes)) == 0;
  const Address mine = {.process = getpid(), .descriptor = sized ? file.number() : -1};
  const auto gathered = session.gather_bytes(std::as_bytes(std::span(&mine, 1)));
  std::vector<Address> all(static_cast<std::size_t>(session.ranks()));
  std::memcpy(all.data(), gathered.data(), gathered.size());
  const Address next = all[static_cast<std::size_t>((session.rank() + 1) % session.ranks())];

  NodeSegment segment;
  segment.ranks_ = session.ranks();
  segment.neighbour_process_ = next.process;
  segment.mine_ = map_of(mine, flag_bytes, bytes);
  segment.neighbour_ = map_of(next, flag_bytes, bytes);
  segment.flags_ = map_of(all[0], 0, flag_bytes);
  const bool mapped = segment.mine() != nullptr && segment.neighbour() != nullptr && segment.flags_.data() != nullptr;
  const std::array failed = {mapped ? 0.0 : 1.0};
  // No rank may close its file before all have opened it: this call comes after that.
  if (session.maxima(failed)[0] > 0) {
    return {Code::unavailable, "the ranks cannot share memory: expected one node, one user, and room for " +
                                   std::to_string(bytes >> 20) + " MiB a rank"};
  }
  return segment;
}

void NodeSegment::sleep_until_all_arrive() {
  SharedFlags& shared = flags();
  const std::uint32_t round = shared.round.load();
  if (shared.arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(ranks_)) {
    shared.arrived.store(0);
    shared.round.store(round + 1);
    futex(shared.round, FUTEX_WAKE, INT_MAX);
    return;
  }
  while (shared.round.load() == round) futex(shared.round, FUTEX_WAIT, round);
}

void NodeSegment::wait_until_all_are_awake() {
  const std::uint32_t all = ++starts_ * static_cast<std::uint32_t>(ranks_);
  flags().awake.fetch_add(1);
  while (static_cast<std::int32_t>(flags().awake.load() - all) < 0) sched_yield();
}

}  // namespace plait::tuner

// What a rank that gives a communicator up tells its peers over UCX. The connections to them serve other communicators
// as well, and stay: a farewell comes after all that the rank has sent for this one, and nothing comes after it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.h"
#include "tl/ucx/rail_worker.h"

namespace plait::tl {

// The message.
struct Farewell {
  std::int32_t first_failed = -1;  // the rank that was the first to fail, as far as it is known
  std::uint32_t by_hearsay = 0;    // 1: that rank knows no more than that another one cut its connection (peer_left)
  std::array<char, 248> reason{};  // ends with a 0
};

// One rank's, of one communicator. Not thread-safe; what takes a worker needs its turn (RailWorker::lock).
class Farewells {
 public:
  // All the memory that a farewell takes is taken here: what fails may be the memory.
  Farewells(std::uint64_t communicator, int rank, std::size_t ranks, std::size_t rails)
      : communicator_(communicator), rank_(rank), own_(std::make_unique<Farewell>()), heard_from_(ranks) {
    said_.reserve(ranks * rails);
  }
  Farewells(const Farewells&) = delete;
  Farewells& operator=(const Farewells&) = delete;

  // This rank has failed because of `cause`, or after the first failure that it has heard of. Once, before say().
  void compose(const Status& cause) noexcept;
  void say(RailWorker& worker, UcxEndpoint& endpoint);
  // Whether all that was said over the worker has left this process, with all that was sent before it, as far as that
  // still can. The worker's progress brings it about.
  bool all_left(RailWorker& worker);
  // Whether that was seen of this connection, which had something said over it.
  bool left(const UcxEndpoint& endpoint) const;
  // What has not left by now is UCX's, with its memory.
  void forget(RailWorker& worker);

  // Takes those that have arrived; those for which there is no memory wait. A small part of a microsecond where there
  // are none.
  void listen(RailWorker& worker);
  // Not ok once there was one: peer_failed, with the rank that failed and its reason.
  const Status& heard() const { return heard_; }
  bool heard_from(std::size_t rank) const { return heard_from_[rank] != 0; }

 private:
  // One that was said, and the flush behind it; nullptr: done.
  struct Said {
    RailWorker* worker;
    UcxEndpoint* endpoint;
    void* message;
    void* flush;
    bool left = false;
  };
  // One that arrives.
  struct Incoming {
    RailWorker* worker = nullptr;
    void* request = nullptr;
    std::size_t sender = 0;
    std::unique_ptr<Farewell> farewell;
  };

  bool receive(RailWorker& worker, std::uint64_t tag);
  bool take_incoming(RailWorker& worker);

  std::uint64_t communicator_;
  int rank_;
  std::unique_ptr<Farewell> own_;
  std::vector<Said> said_;
  Incoming incoming_;
  std::vector<char> heard_from_;
  Farewell first_;  // that was heard
  Status heard_;
};

}  // namespace plait::tl

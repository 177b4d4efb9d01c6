// Tells the other ranks of a communicator that this one has failed, by a message of the host MPI's: whatever channel
// they wait on, their waits end. Within a node the shared memory does so (tl/shm/failure_marks.h).
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"

namespace plait::plugin {

// Of one communicator. Not thread-safe.
class FailureNotice {
 public:
  // `communicator` tells it from an earlier one that had the same handle. `others` are told by this rank.
  FailureNotice(std::uint64_t communicator, std::vector<int> others)
      : communicator_(communicator),
        others_(std::move(others)),
        message_(std::make_unique<Message>()),
        requests_(others_.size(), MPI_REQUEST_NULL) {}

  // A glance, which also lets the host move its own messages on. `messages` is the communicator of ours.
  void look(MPI_Comm messages) {
    int found = 1;
    MPI_Status status;
    while (PMPI_Iprobe(MPI_ANY_SOURCE, tag, messages, &found, &status) == MPI_SUCCESS && found != 0)
      [[unlikely]] if (!hear(messages, status)) return;
  }
  // Not ok once another rank has failed: peer_failed, with the rank and its reason; or peer_left, where that rank knows
  // no more than that a third one cut its connection, until the third one's reason is heard. Its address stays.
  const Status& heard() const { return heard_; }

  bool told() const { return told_; }  // by this rank

  // The first call counts, and only where no better reason was heard: then all know. Blocks for a tenth of a second at
  // most. What it needs is there before: the cause may be a lack of memory.
  void tell(MPI_Comm messages, const Status& cause) noexcept;

 private:
  static constexpr int tag = 32767;
  struct Message {
    std::uint64_t communicator = 0;
    std::uint64_t by_hearsay = 0;    // 1: peer_left
    std::array<char, 240> reason{};  // ends with a 0
  };

  bool hear(MPI_Comm messages, const MPI_Status& found);
  bool improves(Code code) const { return heard_.ok() || (heard_.code() == Code::peer_left && code != heard_.code()); }

  std::uint64_t communicator_;
  std::vector<int> others_;
  std::unique_ptr<Message> message_;  // that is told
  std::vector<MPI_Request> requests_;
  bool told_ = false;
  Status heard_;
};

}  // namespace plait::plugin

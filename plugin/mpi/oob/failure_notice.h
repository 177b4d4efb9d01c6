// Tells the other ranks of a communicator that this one has failed, by a message of the host MPI's.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"
#include "plugin/layer.h"
#include "runtime/oob/failure_notice.h"

namespace plait::plugin {

class MpiFailureNotice final : public FailureNotice {
 public:
  // Over `messages`, a communicator of ours; `number` tells it from an earlier one that had the same handle. `others`
  // are told by this rank.
  MpiFailureNotice(MPI_Comm messages, std::uint64_t number, std::vector<int> others)
      : messages_(messages),
        number_(number),
        others_(std::move(others)),
        message_(std::make_unique<Message>()),
        requests_(others_.size(), MPI_REQUEST_NULL) {}

  void look() override;
  void tell(const Status& cause) noexcept override;

 private:
  static constexpr int tag = 32767;
  struct Message {
    std::uint64_t number = 0;
    std::uint64_t by_hearsay = 0;    // 1: peer_left
    std::array<char, 240> reason{};  // ends with a 0
  };

  bool receive(const MPI_Status& found);

  MPI_Comm messages_;
  std::uint64_t number_;
  std::vector<int> others_;
  std::unique_ptr<Message> message_;  // that is told
  std::vector<MPI_Request> requests_;
};

}  // namespace plait::plugin

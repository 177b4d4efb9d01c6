// Tells the other ranks of a communicator that this one has failed, by a message of the host MPI's.
#pragma once

#include <mpi.h>

#include <algorithm>
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
  // Over `messages`, a communicator of ours; `number` tells it from an earlier one that had the same handle. All but
  // the `near` ones are told by this rank.
  MpiFailureNotice(MPI_Comm messages, std::uint64_t number, std::vector<int> near)
      : messages_(messages), number_(number), near_(std::move(near)), message_(std::make_unique<Message>()) {
    std::ranges::sort(near_);
    PMPI_Comm_size(messages_, &ranks_);
    const std::size_t others =
        static_cast<std::size_t>(ranks_) - std::min(near_.size(), static_cast<std::size_t>(ranks_));
    requests_.resize(std::clamp<std::size_t>(others, 1, most_requests), MPI_REQUEST_NULL);
  }

  void look() override;
  void tell(const Status& cause) noexcept override;

 private:
  static constexpr int tag = 32767;
  static constexpr std::size_t most_requests = 256;
  struct Message {
    std::uint64_t number = 0;
    std::uint64_t by_hearsay = 0;    // 1: peer_left
    std::array<char, 240> reason{};  // ends with a 0
  };

  bool receive(const MPI_Status& found);
  void send_to(int rank, std::size_t slot, std::uint64_t until) noexcept;

  MPI_Comm messages_;
  std::uint64_t number_;
  int ranks_ = 1;
  std::vector<int> near_;              // ascending
  bool left_ = false;                  // some message is on its way still
  std::unique_ptr<Message> message_;   // that is told
  std::vector<MPI_Request> requests_;  // under way at once: further ranks are told as those before have heard
};

}  // namespace plait::plugin

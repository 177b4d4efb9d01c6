// The host's messages on a communicator of ours.
#pragma once

#include <mpi.h>

#include <memory>

#include "plugin/layer.h"
#include "runtime/oob/host_messages.h"

namespace plait::plugin {

class MpiMessages final : public HostMessages {
 public:
  explicit MpiMessages(MPI_Comm comm) : comm_(comm) {}
  std::unique_ptr<Channel> make_channel() override;
  RateMeter meter() override;
  double way(const RateTrial& trial, int trips) override;
  bool swap(const Swap& swap) override;
  void leave(int to, std::int64_t number) noexcept override;

 private:
  MPI_Comm comm_;
};

}  // namespace plait::plugin

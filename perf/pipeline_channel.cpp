#include "perf/pipeline_channel.h"

#include <vector>

namespace plait_perf {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// As programs write it: each rank is sent each share that it needs by the rank that holds it.
class HostChannel : public Channel {
 public:
  HostChannel(const Crossing& crossing, int tag) : crossing_(crossing), tag_(tag), me_(world_rank()) {}

  void start(void* buffer) override {
    requests_.clear();
    const int stage = me_ / crossing_.ranks, mine = me_ % crossing_.ranks;
    const bool sharded = crossing_.layout == Layout::sharded;
    for (int peer = sharded ? mine : 0; peer < (sharded ? mine + 1 : crossing_.ranks); ++peer)
      stage == crossing_.from ? send(buffer, peer) : receive(buffer, peer, sharded ? 0 : peer);
  }

  bool ended() override {
    int all = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
  }

 private:
  int bytes() const { return static_cast<int>(crossing_.share_bytes); }

  void send(const void* buffer, int peer) {
    MPI_Isend(buffer, bytes(), MPI_BYTE, crossing_.to * crossing_.ranks + peer, tag_, MPI_COMM_WORLD,
              &requests_.emplace_back());
  }

  void receive(void* buffer, int peer, int place) {
    MPI_Irecv(static_cast<char*>(buffer) + static_cast<std::size_t>(place) * crossing_.share_bytes, bytes(), MPI_BYTE,
              crossing_.from * crossing_.ranks + peer, tag_, MPI_COMM_WORLD, &requests_.emplace_back());
  }

  Crossing crossing_;
  int tag_, me_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Channel> make_channel(Road road, const Crossing& crossing, int tag, std::string& why) {
  if (road != Road::host) {
    why = "not built with resharding";
    return nullptr;
  }
  const int stage = world_rank() / crossing.ranks;
  if (stage != crossing.from && stage != crossing.to) return nullptr;
  return std::make_unique<HostChannel>(crossing, tag);
}

}  // namespace plait_perf

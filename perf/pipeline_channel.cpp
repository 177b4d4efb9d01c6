#include "perf/pipeline_channel.h"

#include <dlfcn.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "plait/plait_mpi.h"

namespace plait::perf {
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

// Of libplait.so, where it is preloaded.
struct Calls {
  decltype(&plait_reshard_create) create = nullptr;
  decltype(&plait_reshard_start) start = nullptr;
  decltype(&plait_reshard_free) free = nullptr;

  bool there() const { return create != nullptr && start != nullptr && free != nullptr; }
};

template <class Call>
void find(const char* name, Call& call) {
  call = reinterpret_cast<Call>(dlsym(RTLD_DEFAULT, name));
}

Calls plait_calls() {
  Calls calls;
  find("plait_reshard_create", calls.create);
  find("plait_reshard_start", calls.start);
  find("plait_reshard_free", calls.free);
  return calls;
}

// The plan is made once and executed for every micro-batch of every iteration.
class PlaitChannel : public Channel {
 public:
  PlaitChannel(const Calls& calls, plait_reshard plan, bool sends) : calls_(calls), plan_(plan), sends_(sends) {}
  ~PlaitChannel() override { calls_.free(&plan_); }
  PlaitChannel(const PlaitChannel&) = delete;
  PlaitChannel& operator=(const PlaitChannel&) = delete;

  void start(void* buffer) override {
    calls_.start(plan_, sends_ ? buffer : nullptr, sends_ ? nullptr : buffer, &request_);
  }

  bool ended() override {
    int flag = 0;
    MPI_Test(&request_, &flag, MPI_STATUS_IGNORE);
    return flag != 0;
  }

 private:
  Calls calls_;
  plait_reshard plan_;
  bool sends_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

std::vector<int> ranks_of(int stage, int ranks) {
  std::vector<int> list(static_cast<std::size_t>(ranks));
  std::iota(list.begin(), list.end(), stage * ranks);
  return list;
}

std::unique_ptr<Channel> plait_channel(const Crossing& crossing, int stage, std::string& why) {
  const Calls calls = plait_calls();
  if (!calls.there()) {
    why = "libplait.so is not preloaded";
    return nullptr;
  }
  const std::vector<int> from = ranks_of(crossing.from, crossing.ranks), to = ranks_of(crossing.to, crossing.ranks);
  const auto elements = static_cast<std::int64_t>(crossing.share_bytes) * crossing.ranks;
  plait_reshard plan = PLAIT_RESHARD_NULL;
  calls.create(MPI_COMM_WORLD, 1, &crossing.ranks, from.data(), "S0", 1, &crossing.ranks, to.data(),
               crossing.layout == Layout::sharded ? "S0" : "R", 1, &elements, MPI_BYTE, nullptr, &plan);
  if (stage == crossing.from || stage == crossing.to)
    return std::make_unique<PlaitChannel>(calls, plan, stage == crossing.from);
  calls.free(&plan);
  return nullptr;
}

}  // namespace

std::unique_ptr<Channel> make_channel(Road road, const Crossing& crossing, int tag, std::string& why) {
  const int stage = world_rank() / crossing.ranks;
  if (road == Road::plait) return plait_channel(crossing, stage, why);
  if (stage != crossing.from && stage != crossing.to) return nullptr;
  return std::make_unique<HostChannel>(crossing, tag);
}

}  // namespace plait::perf

#include "perf/mix_calls.h"

#include <mpi.h>

#include <climits>
#include <cstddef>
#include <numeric>
#include <utility>

#include "core/units.h"
#include "perf/layer.h"
#include "tuner/measure/collective_calls.h"

namespace plait::perf {
namespace {

class OrdinaryCall : public MixCall {
 public:
  explicit OrdinaryCall(CollectiveCall call) : call_(std::move(call)) {}
  void prepare(std::uint64_t key) override { call_.prepare(key); }
  void run() override { call_.run(); }
  bool right() const override { return !call_.first_wrong_byte(); }

 private:
  CollectiveCall call_;
};

// The messages of a pair have between half and one and a half of the mean, by the pair.
class AlltoallvCall : public MixCall {
 public:
  AlltoallvCall(std::size_t mean_bytes, int rank, int ranks) : rank_(rank) {
    const auto all = static_cast<std::size_t>(ranks);
    for (auto* list : {&given_, &got_}) list->counts.resize(all);
    for (int peer = 0; peer < ranks; ++peer) {
      given_.counts[static_cast<std::size_t>(peer)] = message_bytes(mean_bytes, rank, peer);
      got_.counts[static_cast<std::size_t>(peer)] = message_bytes(mean_bytes, peer, rank);
    }
    for (auto* list : {&given_, &got_}) list->lay_out();
  }

  void prepare(std::uint64_t key) override {
    key_ = key;
    for (std::size_t peer = 0; peer < given_.counts.size(); ++peer) {
      fill(given_, peer, content(rank_, static_cast<int>(peer)));
      fill(got_, peer, std::byte{0xa5});
    }
  }
  void run() override {
    MPI_Alltoallv(given_.bytes.data(), given_.counts.data(), given_.begins.data(), MPI_BYTE, got_.bytes.data(),
                  got_.counts.data(), got_.begins.data(), MPI_BYTE, MPI_COMM_WORLD);
  }
  bool right() const override {
    for (std::size_t peer = 0; peer < got_.counts.size(); ++peer) {
      const std::byte expected = content(static_cast<int>(peer), rank_);
      for (int index = 0; index < got_.counts[peer]; ++index) {
        if (got_.bytes[static_cast<std::size_t>(got_.begins[peer] + index)] != expected) return false;
      }
    }
    return true;
  }

 private:
  struct Messages {
    std::vector<int> counts, begins;
    std::vector<std::byte> bytes;

    void lay_out() {
      begins.resize(counts.size());
      std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
      bytes.resize(static_cast<std::size_t>(begins.back() + counts.back()));
    }
  };

  static int message_bytes(std::size_t mean, int source, int destination) {
    const auto part = static_cast<std::size_t>((source * 7 + destination * 13) % 17);  // of 16, 8 on the average
    return static_cast<int>(mean / 2 + mean * part / 16);
  }
  std::byte content(int source, int destination) const {
    return static_cast<std::byte>(key_ * 31 + static_cast<std::uint64_t>(source * 17 + destination * 3 + 1));
  }
  static void fill(Messages& messages, std::size_t peer, std::byte value) {
    const auto begin = messages.bytes.begin() + messages.begins[peer];
    std::fill(begin, begin + messages.counts[peer], value);
  }

  int rank_;
  std::uint64_t key_ = 0;
  Messages given_, got_;
};

}  // namespace

Result<std::unique_ptr<MixCall>> make_mix_call(const MixCalls& kind, const MpiSession& session) {
  const auto bytes = measurable_bytes(kind.collective, kind.bytes, session.ranks());
  if (!bytes.ok()) return bytes.status();
  if (kind.alltoallv) {
    if (2 * kind.bytes * static_cast<std::size_t>(session.ranks()) > INT_MAX) {
      return {Code::invalid, kind.label() + ": expected at most 2 GiB together, because MPI counts with ints"};
    }
    return std::unique_ptr<MixCall>(std::make_unique<AlltoallvCall>(kind.bytes, session.rank(), session.ranks()));
  }
  auto call = CollectiveCall::make({.collective = kind.collective, .bytes = *bytes}, session.rank(), session.ranks());
  if (!call.ok()) return call.status();
  return std::unique_ptr<MixCall>(std::make_unique<OrdinaryCall>(std::move(*call)));
}

}  // namespace plait::perf

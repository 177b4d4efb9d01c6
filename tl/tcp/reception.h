// Where a rank lets others in: accepts connections, and finds out which of them are of ranks. Anybody may connect: a
// stranger costs a place among those that have proven nothing yet, for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tl/channel.h"
#include "tl/tcp/handshake.h"

namespace plait::tl {

struct ReceptionLimits {
  // Those who may wait without having proven anything; when one more comes, the oldest goes. Ranks that are to connect
  // come on top. A rank that is sent away tries again.
  std::size_t strangers = 128;
  std::uint64_t silence_ns = 5'000'000'000;  // who has not proven anything by then is sent away
  std::uint64_t patience_ns = 10'000'000;    // but nobody sooner than that: a rank needs some time to answer
  // Where the process may open no more files, or has no memory, for so long while somebody waits to be let in, looking
  // fails.
  std::uint64_t shortage_ns = 60'000'000'000;
};

namespace detail {

// A connection of a rank, of which both ends know that.
struct Guest {
  std::int32_t rank = -1;
  Socket socket;
};

// Not thread-safe.
class Reception {
 public:
  // Ranks lower than `rank` are let in.
  Reception(Socket listener, std::int32_t rank, const SharedKey& key, const ReceptionLimits& limits);
  // A glance: appends those who have proven themselves.
  Status look(std::vector<Guest>& guests);
  // As Channel::arm.
  bool arm(WakeUp& wake_up) const;
  // Nobody waits, or is let in, any more: who connects is refused.
  void close();

 private:
  struct Stranger {
    Socket socket;
    std::uint64_t since_ns = 0;
    Nonce challenge{};
    Parcel<Answer> answer{};
  };

  Status let_in();
  bool has_place() const;
  Status out_of_files(int error);
  void challenge(Socket socket);
  bool hear(Stranger& stranger, std::vector<Guest>& guests) const;

  Socket listener_;
  std::int32_t rank_;
  SharedKey key_;
  ReceptionLimits limits_;
  std::vector<Stranger> strangers_;  // the oldest first
  std::uint64_t now_ns_ = 0;
  std::uint64_t pause_until_ns_ = 0;  // nobody is accepted
  std::uint64_t short_since_ns_ = 0;  // 0: not short of anything
};

}  // namespace detail
}  // namespace plait::tl

// How the two ends of a new connection prove to each other that they are ranks of the same communicator. Its ranks have
// a key in common, which no message of such a connection shows; they have it by the host MPI's messages (docs/network.md).
//
//   acceptor  -> connector   challenge: a nonce
//   connector -> acceptor    answer: its rank, a nonce, and the proof that it is the connector
//   acceptor  -> connector   acceptance: the proof that it is the acceptor; from here on the connection carries
//   messages
//
// A proof is a hash, with the key, of the role, both ranks and both nonces. What was heard of one connection is of no
// use on another, since the nonces differ; what one end says is of no use to pretend to be it, since the roles do; and
// an acceptor proves nothing to who has not proven itself.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/keyed_hash.h"
#include "tl/tcp/socket.h"

namespace plait::tl {

using SharedKey = std::array<std::byte, 32>;

namespace detail {

using Nonce = std::array<std::byte, 16>;

struct Challenge {
  Nonce nonce{};
};
struct Answer {
  std::int32_t rank = -1;
  Nonce nonce{};
  KeyedHash proof{};
};
struct Acceptance {
  KeyedHash proof{};
};

// What both ends know of a connection by then.
struct Meeting {
  std::int32_t connector = -1, acceptor = -1;  // ranks
  Nonce connectors{}, acceptors{};
};
enum class Role : std::uint8_t { connector = 1, acceptor = 2 };
KeyedHash proof_of(Role role, const Meeting& meeting, const SharedKey& key);

enum class Passage { whole, partly, ended };

// A message that comes or goes as a whole. Does not block.
template <class Message>
struct Parcel {
  Message message;
  std::size_t moved = 0;

  // ended: so is the connection; `errno` says why, 0 where the peer closed it.
  Passage receive(const Socket& socket) {
    return move([&](std::byte* at, std::size_t bytes) { return recv(socket.descriptor(), at, bytes, MSG_DONTWAIT); });
  }
  Passage send(const Socket& socket) {
    return move([&](std::byte* at, std::size_t bytes) {
      return ::send(socket.descriptor(), at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }

 private:
  template <class Call>
  Passage move(Call&& call) {
    while (moved < sizeof message) {
      errno = 0;
      const ssize_t count = call(reinterpret_cast<std::byte*>(&message) + moved, sizeof message - moved);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Passage::partly;
      if (count <= 0) return Passage::ended;
      moved += static_cast<std::size_t>(count);
    }
    return Passage::whole;
  }
};

}  // namespace detail
}  // namespace plait::tl

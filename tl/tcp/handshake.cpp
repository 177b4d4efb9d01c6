#include "tl/tcp/handshake.h"

#include <cstring>

namespace plait::tl::detail {
namespace {

constexpr std::size_t label_bytes = 20;
constexpr char label[label_bytes] = "plait tcp meeting 1";

}  // namespace

KeyedHash proof_of(Role role, const Meeting& meeting, const SharedKey& key) {
  std::array<std::byte, label_bytes + 4 + 2 * sizeof(std::int32_t) + 2 * sizeof(Nonce)> text{};
  std::byte* at = text.data();
  const auto add = [&at](const void* from, std::size_t bytes) {
    std::memcpy(at, from, bytes);
    at += bytes;
  };
  const auto spoken_by = static_cast<std::uint32_t>(role);
  add(label, label_bytes);
  add(&spoken_by, sizeof spoken_by);
  add(&meeting.connector, sizeof meeting.connector);
  add(&meeting.acceptor, sizeof meeting.acceptor);
  add(meeting.connectors.data(), sizeof(Nonce));
  add(meeting.acceptors.data(), sizeof(Nonce));
  return keyed_hash(key, text);
}

}  // namespace plait::tl::detail

#include "core/keyed_hash.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace plait {
namespace {

constexpr std::size_t block_bytes = 64, rounds = 10, words = 16;

constexpr std::array<std::uint32_t, 8> initial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// In which order each round takes the message's words.
constexpr std::uint8_t order[rounds][words] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

using Block = std::array<std::byte, block_bytes>;

std::uint32_t little_endian(const std::byte* at) {
  std::uint32_t word = 0;
  for (std::size_t i = 4; i-- > 0;) word = word << 8 | std::to_integer<std::uint32_t>(at[i]);
  return word;
}

class Hash {
 public:
  explicit Hash(std::size_t key_bytes) : state_(initial) {
    state_[0] ^= 0x01010000u ^ static_cast<std::uint32_t>(key_bytes) << 8 ^ sizeof(KeyedHash);
  }

  void add(const Block& block, std::size_t bytes, bool last) {
    counted_ += bytes;
    std::array<std::uint32_t, words> message{}, mixed{};
    for (std::size_t i = 0; i < words; ++i) message[i] = little_endian(block.data() + 4 * i);
    std::ranges::copy(state_, mixed.begin());
    std::ranges::copy(initial, mixed.begin() + 8);
    mixed[12] ^= static_cast<std::uint32_t>(counted_);
    mixed[13] ^= static_cast<std::uint32_t>(counted_ >> 32);
    if (last) mixed[14] = ~mixed[14];
    for (const auto& taken : order) mix(mixed, message, taken);
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] ^= mixed[i] ^ mixed[i + 8];
  }

  KeyedHash value() const {
    KeyedHash result{};
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<std::byte>(state_[i / 4] >> 8 * (i % 4));
    return result;
  }

 private:
  using Words = std::array<std::uint32_t, words>;

  static void mix(Words& v, const Words& message, const std::uint8_t (&taken)[words]) {
    // Columns, then diagonals.
    constexpr std::uint8_t places[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14}, {3, 7, 11, 15},
                                           {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13},  {3, 4, 9, 14}};
    for (std::size_t i = 0; i < 8; ++i) {
      auto &a = v[places[i][0]], &b = v[places[i][1]], &c = v[places[i][2]], &d = v[places[i][3]];
      a += b + message[taken[2 * i]];
      d = std::rotr(d ^ a, 16);
      c += d;
      b = std::rotr(b ^ c, 12);
      a += b + message[taken[2 * i + 1]];
      d = std::rotr(d ^ a, 8);
      c += d;
      b = std::rotr(b ^ c, 7);
    }
  }

  std::array<std::uint32_t, 8> state_;
  std::uint64_t counted_ = 0;
};

}  // namespace

// The key is a block of its own before the message; the last block is marked as such.
KeyedHash keyed_hash(std::span<const std::byte> key, std::span<const std::byte> message) {
  Hash hash(key.size());
  if (!key.empty()) {
    Block block{};
    std::ranges::copy(key, block.begin());
    hash.add(block, block_bytes, message.empty());
    if (message.empty()) return hash.value();
  }
  for (;;) {
    const std::size_t bytes = std::min(message.size(), block_bytes);
    Block block{};
    std::ranges::copy(message.first(bytes), block.begin());
    message = message.subspan(bytes);
    hash.add(block, bytes, message.empty());
    if (message.empty()) return hash.value();
  }
}

bool same_hash(const KeyedHash& one, const KeyedHash& other) {
  std::byte differing{0};
  for (std::size_t i = 0; i < one.size(); ++i) differing |= one[i] ^ other[i];
  return differing == std::byte{0};
}

Status fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t filled = getrandom(bytes.data(), bytes.size(), 0);
    if (filled < 0 && errno == EINTR) continue;
    if (filled < 0) return {Code::unavailable, std::string("getrandom: ") + std::strerror(errno)};
    bytes = bytes.subspan(static_cast<std::size_t>(filled));
  }
  return {};
}

}  // namespace plait

// The channels that there are, a line each: what each is called and what it can do. Its code is a folder of tl/
// (tl/README.md, "Adding a channel"); all others ask for what it can do, not for its name. From its line follow
// ChannelKind, its name in PLAIT_CHANNELS, reports and traces, and its slot in the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plait {

// What a channel can do. A line names what differs from these.
struct ChannelTraits {
  std::string_view name;      // never changed once it is out
  bool messages = true;       // from rank to rank; else only operations of all ranks of a node at once
  bool crosses_nodes = true;  // connects ranks of different nodes, else only those of one
  bool any_length = true;     // else it only takes short messages, beside another channel or for short calls
  bool shared_memory_collectives = false;  // all ranks of a node in one operation (StepKind::shm_collective)
  bool segment = false;                    // its ranks share memory, in which they also see that one has failed
  bool rails = false;                      // messages can be bound to rails
  bool needs_host = false;                 // it calls the host MPI: it moves only where a thread may do that
  bool device_memory = false;              // it takes what lies in a device's memory as it is, else only the host's
};

// The nearer ones first: of ranks that two of them connect the first has the messages, and a rank that has failed
// leaves the last one first. What carries no messages comes last: the devices of a node's ranks between themselves
// (tl/device/device_collective.h), whose words go by what has the node's messages.
#define PLAIT_CHANNEL_KINDS(LINE)                                                       \
  LINE(shm, .crosses_nodes = false, .shared_memory_collectives = true, .segment = true) \
  LINE(tcp, .any_length = false, .rails = true)                                         \
  LINE(ucx, .rails = true)                                                              \
  LINE(mpi, .needs_host = true)                                                         \
  LINE(cuda, .messages = false, .crosses_nodes = false, .device_memory = true)          \
  PLAIT_MORE_CHANNEL_KINDS(LINE)

// Those of a test that shows what a line does.
#ifndef PLAIT_MORE_CHANNEL_KINDS
#define PLAIT_MORE_CHANNEL_KINDS(LINE)
#endif

#define PLAIT_LISTED(kind, ...) kind,
enum class ChannelKind : std::uint8_t { PLAIT_CHANNEL_KINDS(PLAIT_LISTED) };
#undef PLAIT_LISTED

#define PLAIT_LISTED(kind, ...) ChannelTraits{.name = #kind __VA_OPT__(, ) __VA_ARGS__},
inline constexpr std::array all_channel_traits = {PLAIT_CHANNEL_KINDS(PLAIT_LISTED)};
#undef PLAIT_LISTED

inline constexpr int channel_kinds = static_cast<int>(all_channel_traits.size());
static_assert(channel_kinds <= 32, "ChannelSet has a bit for each");

#define PLAIT_LISTED(kind, ...) "," #kind
inline constexpr std::string_view all_channel_names = std::string_view(PLAIT_CHANNEL_KINDS(PLAIT_LISTED)).substr(1);
#undef PLAIT_LISTED

// The same for people, in a literal: a space before each.
#define PLAIT_SPACED(kind, ...) " " #kind
#define PLAIT_SPACED_CHANNEL_NAMES PLAIT_CHANNEL_KINDS(PLAIT_SPACED)

#define PLAIT_LISTED(kind, ...) ChannelKind::kind,
inline constexpr std::array all_channel_kinds = {PLAIT_CHANNEL_KINDS(PLAIT_LISTED)};
#undef PLAIT_LISTED

constexpr std::size_t index_of(ChannelKind kind) { return static_cast<std::size_t>(kind); }
constexpr const ChannelTraits& traits(ChannelKind kind) { return all_channel_traits[index_of(kind)]; }
constexpr std::string_view name(ChannelKind kind) { return traits(kind).name; }
std::optional<ChannelKind> channel_named(std::string_view name);

// Some of them.
class ChannelSet {
 public:
  constexpr ChannelSet() = default;
  constexpr void add(ChannelKind kind) { bits_ |= bit(kind); }
  constexpr void remove(ChannelKind kind) { bits_ &= ~bit(kind); }
  constexpr bool has(ChannelKind kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // Whether one of them can do it: `any(&ChannelTraits::needs_host)`.
  constexpr bool any(bool ChannelTraits::*what) const {
    for (std::size_t kind = 0; kind < all_channel_traits.size(); ++kind)
      if ((bits_ >> kind & 1u) != 0 && all_channel_traits[kind].*what) return true;
    return false;
  }
  constexpr std::uint32_t bits() const { return bits_; }  // bit k: ChannelKind k
  constexpr bool operator==(const ChannelSet&) const = default;

 private:
  static constexpr std::uint32_t bit(ChannelKind kind) { return std::uint32_t{1} << index_of(kind); }

  std::uint32_t bits_ = 0;
};

std::string names(ChannelSet set);  // "shm,ucx"

}  // namespace plait

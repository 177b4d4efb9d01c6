// Whether a silent peer can still be reached. TCP itself takes many minutes to give up on a cut link, and a rank that
// computes answers nothing; but its kernel answers an attempt to connect, with a refusal where nobody listens.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"

namespace plait::tl {

// A port of this process to which nobody listens and that nobody else can take, for others to probe.
class ProbePort {
 public:
  ProbePort();
  ProbePort(const ProbePort&) = delete;
  ProbePort& operator=(const ProbePort&) = delete;
  ~ProbePort();
  std::uint16_t number() const { return number_; }  // 0: there is none

 private:
  int socket_ = -1;
  std::uint16_t number_ = 0;
};

// One attempt to connect, in the background.
class ReachabilityProbe {
 public:
  enum class Answer { none_yet, alive, unreachable };

  ReachabilityProbe() = default;
  ReachabilityProbe(ReachabilityProbe&& other) noexcept;
  ReachabilityProbe& operator=(ReachabilityProbe&& other) noexcept;
  ~ReachabilityProbe();
  // Does not block. `from`, `to`: IPv4 addresses in host order; `from` chooses the rail.
  static ReachabilityProbe at(std::uint32_t from, std::uint32_t to, std::uint16_t port);
  // Does not block.
  Answer answer();

 private:
  int socket_ = -1;
  Answer answer_ = Answer::none_yet;
};

}  // namespace plait::tl

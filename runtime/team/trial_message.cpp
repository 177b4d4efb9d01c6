#include "runtime/team/trial_message.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <vector>

#include "tl/trace.h"

namespace plait::runtime {
namespace {

constexpr std::size_t trial_bytes = 1024;

// Runs one message to `to` and one from `from` over a rail, before the deadline.
class TrialSwap {
 public:
  TrialSwap(Channel& channel, std::span<std::byte> out, std::span<std::byte> in) : channel_(channel) {
    buffers_.base = {out.data(), in.data(), nullptr};
    spans_ = {BoundSpan{0, out.size(), Space::input}, BoundSpan{0, in.size(), Space::output}};
  }
  bool run(Oob& oob, int to, int from, std::uint64_t limit_ns) {
    if (!start(0, StepKind::send, to) || !start(1, StepKind::recv, from)) return false;
    const std::uint64_t begin = monotonic_ns();
    std::vector<Transfer*> completed;
    while (channel_.active() > 0) {
      if (!channel_.progress(completed).ok() || monotonic_ns() - begin > limit_ns || oob.word_left()) return false;
      sched_yield();
    }
    return true;
  }

 private:
  bool start(std::size_t which, StepKind kind, int peer) {
    Transfer& transfer = transfers_[which];
    transfer.kind = kind;
    transfer.peer = peer;
    transfer.rail = 0;
    transfer.bytes = spans_[which].bytes;
    transfer.memory = {&spans_[which], 1, &buffers_};
    return channel_.start(transfer).ok();
  }

  Channel& channel_;
  Buffers buffers_;
  std::array<BoundSpan, 2> spans_{};
  std::array<Transfer, 2> transfers_{};
};

std::byte pattern(int sender, std::size_t position) {
  return static_cast<std::byte>((static_cast<std::size_t>(sender) * 131 + position * 7 + 1) & 0xff);
}

}  // namespace

TrialPartners trial_partners(const Hierarchy& hierarchy, int rank) {
  int shift = 1;
  for (int node = 0; node < hierarchy.nodes() && hierarchy.nodes() > 1; ++node)
    shift = std::max(shift, static_cast<int>(hierarchy.ranks_on_node(node).size()));
  const int ranks = hierarchy.ranks(), vrank = hierarchy.vrank_of(rank);
  return {.to = hierarchy.rank_at((vrank + shift) % ranks), .from = hierarchy.rank_at((vrank + ranks - shift) % ranks)};
}

void leave_trials(Oob& oob, TrialPartners partners) noexcept {
  for (const int partner : {partners.to, partners.from}) oob.leave_word(partner);
}

namespace {

// Who takes part in no further trial itself is waited for by its own partners. True where one has left.
bool pass_on_leave(Oob& oob, TrialPartners partners) {
  if (!oob.word_left()) return false;
  leave_trials(oob, partners);
  return true;
}

}  // namespace

bool trial_succeeds(Channel& channel, Oob& oob, TrialPartners partners, std::uint64_t limit_ns) {
  if (pass_on_leave(oob, partners)) return false;
  const int rank = oob.rank();
  std::array<std::byte, trial_bytes> out{}, in{};
  for (std::size_t i = 0; i < trial_bytes; ++i) out[i] = pattern(rank, i);
  TrialSwap swap(channel, out, in);
  const Status absent(Code::unavailable, "the trial message did not arrive");
  try {
    if (!swap.run(oob, partners.to, partners.from, limit_ns)) {
      pass_on_leave(oob, partners);
      channel.abandon(absent);  // before its memory goes
      return false;
    }
  } catch (const std::exception&) {
    leave_trials(oob, partners);  // first: the channel takes seconds
    channel.abandon(absent);
    throw;
  }
  for (std::size_t i = 0; i < trial_bytes; ++i)
    if (in[i] != pattern(partners.from, i)) return false;
  return true;
}

}  // namespace plait::runtime

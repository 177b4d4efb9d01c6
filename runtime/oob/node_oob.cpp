#include "runtime/oob/node_oob.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <exception>
#include <utility>

#include "runtime/oob/host_messages.h"

namespace plait::runtime {
namespace {

static_assert(NodeOob::most_ranks * 2 * sizeof(std::int64_t) <= NodeOob::memory_bytes - 4096);

constexpr int nobody_missing = 0, somebody_missing = -1;  // else the rank and one
constexpr std::size_t head_bytes = 4096, area_bytes = (NodeOob::memory_bytes - head_bytes) / 2;

// What begins each row: who is missing on the node.
using RowHead = std::int64_t;

// A sleeper looks after the host's messages, which others may wait for: seldom, as hundreds that wake for nothing keep
// those from the processor that all wait for.
constexpr long first_nap_ns = 10'000'000, longest_nap_ns = 640'000'000;
constexpr int glances = 2;

void wake_all(std::atomic<std::uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

// False at the end of the nap.
bool sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, long nap_ns) {
  const timespec nap{0, nap_ns};
  return syscall(SYS_futex, &word, FUTEX_WAIT, value, &nap, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

}  // namespace

// Zeros at the beginning, in the memory of all processes of the node.
struct NodeOob::Memory {
  alignas(64) std::atomic<std::uint32_t> arrived;   // members but the first, over all steps
  alignas(64) std::atomic<std::uint32_t> released;  // steps that the first one has led
  alignas(64) std::atomic<std::int32_t> missing;    // the first that was noticed
};

NodeOob::NodeOob(Oob& base, const Hierarchy& hierarchy, std::span<std::byte> memory)
    : base_(base),
      memory_(*reinterpret_cast<Memory*>(memory.data())),
      hierarchy_(hierarchy),
      rank_(base.rank()),
      ranks_(base.ranks()) {
  static_assert(sizeof(Memory) <= head_bytes && std::atomic<std::uint32_t>::is_always_lock_free);
  for (const int first : hierarchy_.node_first()) first_.push_back(static_cast<std::size_t>(first));
  first_.push_back(static_cast<std::size_t>(ranks_));
  node_ = static_cast<std::size_t>(hierarchy_.node_of(rank_));
  local_ = static_cast<std::size_t>(hierarchy_.vrank_of(rank_)) - first_[node_];
  if (leads()) rows_ = std::make_unique<std::byte[]>(area_bytes + nodes() * (sizeof(RowHead) + alignof(RowHead)));
}

NodeOob::~NodeOob() = default;

std::size_t NodeOob::row_bytes(const Step& step, std::size_t node) const {
  return step.bytes * (step.way == Way::gather ? members(node) : 1);
}

// Where the row of the node so far behind this one begins.
std::size_t NodeOob::offset(const Step& step, std::size_t distance) const {
  std::size_t bytes = distance * sizeof(RowHead);
  if (step.way != Way::gather) return bytes + distance * ((step.bytes + 7) / 8 * 8);
  const std::size_t all = static_cast<std::size_t>(ranks_), end = node_ + distance;
  const std::size_t before = end <= nodes() ? first_[end] - first_[node_] : all - first_[node_] + first_[end - nodes()];
  return bytes + before * step.bytes;
}

std::byte* NodeOob::slot(const Step& step, std::size_t local) const {
  return reinterpret_cast<std::byte*>(&memory_) + head_bytes + local * step.bytes;
}

const std::byte* NodeOob::result() const { return reinterpret_cast<std::byte*>(&memory_) + head_bytes + area_bytes; }

template <class Done>
void NodeOob::wait(std::atomic<std::uint32_t>& word, Done&& done) {
  const auto over = [&] { return done() || memory_.missing.load(std::memory_order_acquire) != nobody_missing; };
  for (int glance = 0; glance < glances; ++glance) {
    if (over()) return;
    sched_yield();
  }
  for (long nap_ns = first_nap_ns;;) {
    const std::uint32_t value = word.load(std::memory_order_acquire);
    if (over()) return;
    if (sleep_on(word, value, nap_ns)) continue;
    static_cast<void>(base_.word_left());
    nap_ns = std::min(2 * nap_ns, longest_nap_ns);
  }
}

void NodeOob::note_missing(int rank) noexcept {
  std::int32_t nobody = nobody_missing;
  memory_.missing.compare_exchange_strong(nobody, rank, std::memory_order_acq_rel);
  wake_all(memory_.arrived);
  wake_all(memory_.released);
}

bool NodeOob::run(const Step& step, const void* mine) {
  if (memory_.missing.load(std::memory_order_acquire) != nobody_missing) {
    if (leads() && !left_) lead(step);  // the other nodes hear of it in this step
    return false;
  }
  const std::uint32_t number = ++steps_;
  const bool gives = step.way != Way::tell || rank_ == 0;
  if (gives && step.bytes > 0) std::memcpy(slot(step, step.way == Way::tell ? 0 : local_), mine, step.bytes);
  if (leads()) return lead(step);
  const auto others = static_cast<std::uint32_t>(members(node_) - 1);
  if (memory_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == number * others) wake_all(memory_.arrived);
  const auto released = [&] { return memory_.released.load(std::memory_order_acquire) == number; };
  wait(memory_.released, released);
  return released();
}

// The slots are free for the next step once this one is released.
bool NodeOob::lead(const Step& step) {
  const auto others = static_cast<std::uint32_t>(members(node_) - 1);
  wait(memory_.arrived, [&] { return memory_.arrived.load(std::memory_order_acquire) == steps_ * others; });
  const RowHead missing = memory_.missing.load(std::memory_order_acquire);
  std::memcpy(rows_.get(), &missing, sizeof missing);
  if (missing == nobody_missing) fold(step, rows_.get() + sizeof missing);
  if (!exchange(step)) return false;
  if (memory_.missing.load(std::memory_order_acquire) != nobody_missing) return false;
  unfold(step, const_cast<std::byte*>(result()));
  memory_.released.store(steps_, std::memory_order_release);
  wake_all(memory_.released);
  return true;
}

void NodeOob::fold(const Step& step, std::byte* row) const {
  if (step.bytes == 0) return;
  if (step.way == Way::tell && hierarchy_.node_of(0) != static_cast<int>(node_)) return;
  std::memcpy(row, slot(step, 0), row_bytes(step, node_));
  if (step.way != Way::reduce) return;
  for (std::size_t local = 1; local < members(node_); ++local)
    combine(step.reducer, row, row, slot(step, local), step.bytes / step.reducer.element_bytes);
}

// Of all nodes' rows, which stand from this node's on; a result that all come to combines them in the nodes' order.
void NodeOob::unfold(const Step& step, std::byte* result) const {
  if (step.bytes == 0) return;
  const auto row = [&](std::size_t node) {
    return rows_.get() + offset(step, (node + nodes() - node_) % nodes()) + sizeof(RowHead);
  };
  if (step.way == Way::tell) {
    std::memcpy(result, row(static_cast<std::size_t>(hierarchy_.node_of(0))), step.bytes);
    return;
  }
  if (step.way == Way::reduce) {
    std::memcpy(result, row(0), step.bytes);
    for (std::size_t node = 1; node < nodes(); ++node)
      combine(step.reducer, result, result, row(node), step.bytes / step.reducer.element_bytes);
    return;
  }
  for (std::size_t node = 0; node < nodes(); ++node)
    for (std::size_t local = 0; local < members(node); ++local) {
      const auto rank = static_cast<std::size_t>(hierarchy_.rank_at(static_cast<int>(first_[node] + local)));
      std::memcpy(result + rank * step.bytes, row(node) + local * step.bytes, step.bytes);
    }
}

int NodeOob::leader_at(std::size_t distance) const {
  return hierarchy_.rank_at(static_cast<int>(first_[(node_ + distance) % nodes()]));
}

// Who is missing stands in the first row of a message, and from then on in this rank's own: all know it at the end of
// the step. Where the host fails (false) some only know it at the end of the next one: they find in it what is left
// here by all who know already.
bool NodeOob::exchange(const Step& step) {
  RowHead missing = nobody_missing;
  for (std::size_t have = 1; have < nodes(); have *= 2) {
    const std::size_t more = std::min(have, nodes() - have), begin = offset(step, have);
    const Swap rows{.to = leader_at(nodes() - have),
                    .from = leader_at(have),
                    .out = rows_.get(),
                    .out_bytes = offset(step, more),
                    .in = rows_.get() + begin,
                    .in_bytes = offset(step, have + more) - begin};
    if (!base_.messages()->swap(rows)) {
      static_cast<void>(rows_.release());  // the host may still work on it
      note_missing(somebody_missing);
      for (int step_or_next = 0; step_or_next < 2; ++step_or_next) leave_rows(somebody_missing);
      return false;
    }
    std::memcpy(&missing, rows_.get() + begin, sizeof missing);
    if (missing == nobody_missing) continue;
    note_missing(static_cast<int>(missing));
    std::memcpy(rows_.get(), &missing, sizeof missing);
  }
  if (memory_.missing.load(std::memory_order_acquire) == somebody_missing) leave_rows(somebody_missing);
  return true;
}

// In place of the rows that the other nodes' first ranks wait for, in all rounds of the step that they are in or come
// to.
void NodeOob::leave_rows(std::int64_t missing) noexcept {
  for (std::size_t distance = 1; distance < nodes(); distance *= 2)
    base_.messages()->leave(leader_at(nodes() - distance), missing);
}

void NodeOob::withdraw() noexcept {
  const bool first = !std::exchange(left_, true);
  note_missing(rank_ + 1);
  if (leads() && first) leave_rows(rank_ + 1);
  base_.withdraw();
}

Status NodeOob::failed(Code code, std::string_view what, int missing) const noexcept {
  try {
    const std::string who =
        missing > 0 ? "rank " + std::to_string(missing - 1) + " is out of memory" : "a rank has left";
    return {code, "the ranks could not " + std::string(what) + ": " + who};
  } catch (const std::exception&) {
    return {code, "out of memory"};
  }
}

// All ranks come here, by this step or the next. They take part in what the missing one has begun on the base, so that
// nothing of it is left for others to find.
Status NodeOob::gone(std::string_view what) noexcept {
  if (!std::exchange(left_, true)) base_.withdraw();
  base_.abandon();
  return failed(Code::peer_failed, what, memory_.missing.load());
}

Status NodeOob::meet(std::string_view what) { return run({Way::reduce, 0, {}}, nullptr) ? Status() : gone(what); }

Status NodeOob::gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t most = std::max<std::size_t>(area_bytes / ranks, 1);
  for (std::size_t done = 0; done < bytes || done == 0; done += most) {
    const std::size_t piece = std::min(most, bytes - done);
    if (!run({Way::gather, piece, {}}, static_cast<const std::byte*>(mine) + done)) return gone(what);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      std::memcpy(static_cast<std::byte*>(all) + rank * bytes + done, result() + rank * piece, piece);
  }
  return {};
}

Status NodeOob::tell_all(void* data, std::size_t bytes, std::string_view what) {
  const std::size_t most = std::max<std::size_t>(area_bytes / nodes() / 8 * 8, 8);
  for (std::size_t done = 0; done < bytes || done == 0; done += most) {
    const std::size_t piece = std::min(most, bytes - done);
    std::byte* const here = static_cast<std::byte*>(data) + done;
    if (!run({Way::tell, piece, {}}, here)) return gone(what);
    if (piece > 0) std::memcpy(here, result(), piece);
  }
  return {};
}

Status NodeOob::reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                           std::string_view what) {
  const Reducer reducer = make_reducer(op, element);
  const std::size_t each = reducer.element_bytes;
  const std::size_t most = std::max<std::size_t>(area_bytes / static_cast<std::size_t>(ranks_) / 8 * 8 / each, 1);
  for (std::size_t done = 0; done < count || done == 0; done += most) {
    const std::size_t piece = std::min(most, count - done) * each;
    if (!run({Way::reduce, piece, reducer}, static_cast<const std::byte*>(mine) + done * each)) return gone(what);
    if (piece > 0) std::memcpy(static_cast<std::byte*>(all) + done * each, result(), piece);
  }
  return {};
}

Status NodeOob::go_on_together(const Status& mine) noexcept {
  const std::int32_t own = mine.ok() ? INT_MAX : rank_;
  const bool met = run({Way::reduce, sizeof own, make_reducer(Op::min, Element::i32)}, &own);
  std::int32_t first = INT_MAX;
  if (met) std::memcpy(&first, result(), sizeof first);
  if (!met) static_cast<void>(gone("go on together"));
  if (!mine.ok()) return {mine.code(), "out of memory"};
  if (met && first == INT_MAX) return {};
  return failed(Code::unavailable, "go on together", met ? first + 1 : memory_.missing.load());
}

}  // namespace plait::runtime

// Messages between two ranks of a node go through their ring in order (tl/shm/ring.h). A message is either copied into
// slots piece by piece, while the peer drains the pieces before, or announced in one slot for the receiver to fetch
// from the sender's memory: the single copy, in which the waiting sender takes part from the other end.
#include "tl/shm/shm_channel.h"

#include <string>
#include <utility>

#include "tl/rank_index.h"
#include "tl/shm/failure_marks.h"
#include "tl/shm/node_collectives.h"
#include "tl/shm/ring_reader.h"
#include "tl/shm/ring_writer.h"
#include "tl/shm/segment_shape.h"

namespace plait::tl {
namespace {

// Bytes from which on a message is announced for a single copy. Measured by perf/tl_exchange, two ranks on an AMD EPYC,
// bcast of 128 KiB / 256 KiB / 1 MiB: single copy by both sides 13.4 / 17.8 / 47 us; slots of 64 KiB 8.2 / 14 / 39,
// of 32 KiB 8.0 / 15 / 54, of 5 KiB 14 / 28 / 101. Large slots are the better way for all sizes.
std::uint64_t built_in_single_copy_threshold(const detail::RingShape& shape) {
  return shape.area_bytes >= 32 * 1024 ? ~std::uint64_t{0} : 128 * 1024;
}

// Fruitless glances: a few per cent of the time that they take at most, since each look reads a line of each rank.
constexpr std::uint32_t look_for_failures_every = 256;

// The ends with transfers under way, by local index, without order. An end is in the list once.
class ActiveList {
 public:
  explicit ActiveList(std::size_t ends) : listed_(ends) { ends_.reserve(ends); }

  bool empty() const { return ends_.empty(); }
  void add(std::size_t end) {
    if (!std::exchange(listed_[end], 1)) ends_.push_back(static_cast<std::uint32_t>(end));
  }
  // Calls `advance(end)`, which returns a Status, for each; those of which `idle(end)` then holds leave the list.
  template <class Advance, class Idle>
  Status advance(Advance&& advance, Idle&& idle) {
    for (std::size_t i = ends_.size(); i-- > 0;) {
      const std::uint32_t end = ends_[i];
      if (Status status = advance(end); !status.ok()) return status;
      if (!idle(end)) continue;
      listed_[end] = 0;
      ends_[i] = ends_.back();
      ends_.pop_back();
    }
    return {};
  }

 private:
  std::vector<std::uint32_t> ends_;
  std::vector<char> listed_;
};

class ShmChannel final : public Channel {
 public:
  ShmChannel(SharedSegment segment, std::size_t local_ranks, int self_rank)
      : segment_(std::move(segment)),
        writers_(local_ranks),
        readers_(local_ranks),
        sending_(local_ranks),
        receiving_(local_ranks),
        self_rank_(self_rank) {}
  ~ShmChannel() override {
    if (active_ > 0) abandon({Code::peer_failed, "its channel was destroyed in the middle of a message"});
    if (ways_ == nullptr) return;
    ways_->at_once += collective_.steps().at_once;
    ways_->directly += collective_.steps().directly;
    ways_->by_kernel += collective_.steps().by_kernel;
    ways_->in_stages += collective_.steps().in_stages;
    ways_->on_devices += collective_.steps().on_devices;
  }

  void connect(std::size_t index, int rank, detail::RingWriter writer, detail::RingReader reader) {
    index_of_rank_.add(rank, static_cast<std::int32_t>(index));
    writers_[index] = std::move(writer);
    readers_[index] = std::move(reader);
  }
  void gather_node(detail::NodeCollectivesOptions options, ShmCollectiveWays* ways) {
    ways_ = ways;
    index_of_rank_.add(self_rank_, static_cast<std::int32_t>(options.self));
    options.index_of_rank = &index_of_rank_;
    std::vector<int> ranks;
    for (const detail::RemoteProcess& process : options.processes) ranks.push_back(process.rank);
    failures_ = detail::FailureMarks(options.control_blocks, ranks, options.self);
    options.failures = &failures_;
    collective_ = detail::NodeCollectives(std::move(options));
  }
  void hang_bells(std::vector<detail::Doorbell*> bells, std::size_t self) {
    bells_ = detail::Doorbells(std::move(bells), self);
  }
  const detail::Doorbells& bells() const { return bells_; }
  const detail::FailureMarks& failures() const { return failures_; }
  std::byte* data() const { return segment_.data(); }

  ChannelKind kind() const override { return ChannelKind::shm; }
  int active() const override { return active_; }
  Result<bool> start(Transfer& transfer) override;
  Result<bool> progress(std::vector<Transfer*>& completed) override;
  bool arm(WakeUp& wake_up) override {
    fruitless_ = look_for_failures_every - 1;  // sleepers glance seldom: the next glance looks
    return bells_.arm(wake_up);
  }
  void disarm() override { bells_.disarm(); }
  void announce_failure(const Status& cause) override {
    failures_.set(cause);
    bells_.ring_all();
  }
  void abandon(const Status& cause) override;
  Status peer_failure() override { return failures_.of_another(); }

 private:
  Result<bool> wait_on();
  void forget();

  SharedSegment segment_;
  detail::Doorbells bells_;
  RankIndex index_of_rank_;                  // of the ranks of this node
  std::vector<detail::RingWriter> writers_;  // by local index; this rank's own are not connected
  std::vector<detail::RingReader> readers_;
  ActiveList sending_, receiving_;
  detail::FailureMarks failures_;
  detail::NodeCollectives collective_;
  ShmCollectiveWays* ways_ = nullptr;
  int self_rank_;
  int active_ = 0;
  std::uint32_t fruitless_ = 0;  // glances in a row
  bool abandoned_ = false;
};

Result<bool> ShmChannel::start(Transfer& transfer) {
  if (abandoned_) return {Code::peer_failed, "shm: the channel was given up after an earlier failure"};
  if (transfer.kind == StepKind::shm_collective) {
    Result<bool> done = collective_.start(transfer);
    if (done.ok() && !*done) ++active_;
    return done;
  }
  const std::int32_t local = index_of_rank_.find(transfer.peer);
  if (transfer.peer == self_rank_ || local == RankIndex::none)
    return {Code::internal, "shm: rank " + std::to_string(transfer.peer) + " is not another rank of this node"};
  const auto peer = static_cast<std::size_t>(local);
  if (transfer.kind == StepKind::send) {
    if (writers_[peer].start(transfer)) return true;
    sending_.add(peer);
  } else {
    Result<bool> done = readers_[peer].start(transfer, !sending_.empty());
    if (!done.ok() || *done) return done;
    receiving_.add(peer);
  }
  ++active_;
  return false;
}

Result<bool> ShmChannel::progress(std::vector<Transfer*>& completed) {
  bool moved = false;
  const std::size_t completed_before = completed.size();
  Status status;
  if (!collective_.idle()) status = collective_.progress(completed, moved);
  if (!status.ok()) return status;
  status = sending_.advance([&](std::size_t peer) { return writers_[peer].progress(completed, moved); },
                            [&](std::size_t peer) { return writers_[peer].idle(); });
  const bool sending = !sending_.empty();
  if (status.ok())
    status = receiving_.advance([&](std::size_t peer) { return readers_[peer].progress(completed, moved, sending); },
                                [&](std::size_t peer) { return readers_[peer].idle(); });
  if (!status.ok()) return status;
  active_ -= static_cast<int>(completed.size() - completed_before);
  if (!moved) return wait_on();
  fruitless_ = 0;
  return true;
}

// Those that are waited for may have failed.
Result<bool> ShmChannel::wait_on() {
  if (++fruitless_ % look_for_failures_every != 0) return false;
  Status status = failures_.look();
  if (!status.ok()) return status;
  return false;
}

// The mark first: the others look at it before they touch memory of this rank.
void ShmChannel::abandon(const Status& cause) {
  announce_failure(cause);
  forget();
}

void ShmChannel::forget() {
  collective_.forget();
  for (detail::RingWriter& writer : writers_) writer.forget();
  for (detail::RingReader& reader : readers_) reader.forget();
  active_ = 0;
  abandoned_ = true;
}

}  // namespace

Result<std::unique_ptr<Channel>> make_shm_channel(SharedSegment segment, std::span<const ShmPeer> peers, int self,
                                                  ShmChannelOptions options) {
  const std::size_t ranks = peers.size();
  const detail::SegmentShape shape = detail::segment_shape(segment.bytes(), static_cast<int>(ranks));
  if (shape.ring.slots == 0 || shape.control_block.stage_bytes == 0)
    return {Code::invalid, "shm: a segment of " + std::to_string(segment.bytes()) + " bytes is too small for " +
                               std::to_string(ranks) + " ranks, which need " +
                               std::to_string(detail::least_segment_bytes(static_cast<int>(ranks)))};
  std::uint64_t single_copy_from = ~std::uint64_t{0};
  if (options.single_copy)
    single_copy_from =
        options.single_copy_threshold != 0 ? options.single_copy_threshold : built_in_single_copy_threshold(shape.ring);
  const std::size_t me = static_cast<std::size_t>(self);
  auto channel = std::make_unique<ShmChannel>(std::move(segment), ranks, peers[me].rank);
  std::vector<detail::ControlBlock> control_blocks;
  std::vector<detail::Doorbell*> bells;
  for (std::size_t local = 0; local < ranks; ++local) {
    control_blocks.emplace_back(channel->data() + local * shape.control_block.bytes(), shape.control_block);
    bells.push_back(&control_blocks.back().control().bell);
  }
  channel->hang_bells(std::move(bells), me);
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (peer == me) continue;
    const auto ring = [&](std::size_t from, std::size_t to) {
      std::byte* base = channel->data() + detail::ring_offset(shape, ranks, from, to);
      return detail::Ring{.control = reinterpret_cast<detail::RingControl*>(base),
                          .shape = shape.ring,
                          .peer_rank = peers[peer].rank,
                          .peer_process = peers[peer].process,
                          .single_copy_from = single_copy_from,
                          .bells = &channel->bells(),
                          .failures = &channel->failures(),
                          .peer = peer};
    };
    channel->connect(peer, peers[peer].rank, detail::RingWriter(ring(me, peer)), detail::RingReader(ring(peer, me)));
  }
  detail::NodeCollectivesOptions collective;
  collective.shape = shape.control_block;
  collective.self = me;
  collective.buffers = options.buffers;
  collective.control_blocks = std::move(control_blocks);
  collective.bells = &channel->bells();
  for (const ShmPeer& peer : peers) collective.processes.push_back({peer.process, peer.rank});
  collective.crowded = options.crowded;
  if (options.single_copy) {
    collective.kernel_from = options.collective_single_copy_from;
    collective.pair_from = options.pair_single_copy_from;
  }
  channel->gather_node(std::move(collective), options.ways);
  return std::unique_ptr<Channel>(std::move(channel));
}

std::span<std::byte> stage_memory(const SharedSegment& segment, int ranks, int self) {
  const detail::ControlShape shape = detail::segment_shape(segment.bytes(), ranks).control_block;
  if (shape.stage_bytes == 0) return {};
  std::byte* control_block = segment.data() + static_cast<std::size_t>(self) * shape.bytes();
  return {control_block + shape.stages_offset(), detail::control_stages * shape.stage_bytes};
}

}  // namespace plait::tl

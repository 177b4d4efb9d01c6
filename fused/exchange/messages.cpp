#include "fused/exchange/messages.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "tl/trace.h"

namespace plait::fused {
namespace {

BoundSpan announcement_span(std::uint64_t at, std::uint64_t note_bytes) {
  return {.offset = at, .bytes = sizeof(Announcement) + note_bytes, .space = Space::scratch};
}

RunGrid grid_of(const Block& block, std::uint64_t pitch) {
  RunGrid grid{.origin = block.offset, .run = block.row_bytes};
  if (block.rows > 1) {
    grid.levels = 1;
    grid.level[0] = {.count = block.rows, .stride = pitch};
  }
  return grid;
}

Transfer transfer_of(StepKind kind, int peer, const Memory& memory) {
  Transfer transfer;
  transfer.kind = kind;
  transfer.peer = peer;
  transfer.bytes = memory.spans->bytes;
  transfer.memory = memory;
  transfer.last_of_lane = false;
  return transfer;
}

}  // namespace

Messages::Messages(const std::vector<Partner>& partners, const Output& output) {
  for (const Partner& partner : partners) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->partner = partner;
    lay_out(*lanes_.back(), static_cast<std::uint32_t>(lanes_.size() - 1), output);
    if (std::ranges::find(channels_, partner.channel) == channels_.end()) channels_.push_back(partner.channel);
    all_ += lanes_.back()->sends.size() + lanes_.back()->receives.size();
  }
  completed_.reserve(all_);
}

void Messages::lay_out(Lane& lane, std::uint32_t number, const Output& output) {
  const Blocks &outgoing = *lane.partner.outgoing, &incoming = *lane.partner.incoming;
  lane.places = packed(outgoing);
  lane.kept_places = packed(incoming, Packs::kept);
  for (std::uint64_t& place : lane.kept_places) place += lane.places.back();
  std::byte* memory = lane.memory.reserve(std::max<std::uint64_t>(lane.kept_places.back(), 1));
  const std::uint64_t heard_at = aligned(sizeof(Announcement) + lane.partner.note_to);
  lane.said = lane.announcements.reserve(heard_at + sizeof(Announcement) + lane.partner.note_from);
  lane.heard = lane.said + heard_at;
  lane.buffers.base = {memory, output.data, lane.said};
  lane.finished = std::make_unique<std::atomic<std::uint32_t>[]>(outgoing.size());
  lane.come = std::make_unique<std::atomic<std::uint32_t>[]>(incoming.size());
  lane.send_spans.push_back(announcement_span(0, lane.partner.note_to));
  for (std::size_t slice = 0; slice < outgoing.size(); ++slice)
    lane.send_spans.push_back({.offset = lane.places[slice], .bytes = outgoing[slice].bytes(), .space = Space::input});
  lane.receive_spans.push_back(announcement_span(heard_at, lane.partner.note_from));
  for (std::size_t slice = 0; slice < incoming.size(); ++slice) {
    lane.grids.push_back(grid_of(incoming[slice], output.pitch));
    if (incoming[slice].kept) {
      lane.receive_spans.push_back(
          {.offset = lane.kept_places[slice], .bytes = incoming[slice].bytes(), .space = Space::input});
      continue;
    }
    lane.receive_spans.push_back({.offset = 0,
                                  .bytes = incoming[slice].bytes(),
                                  .space = Space::output,
                                  .grid = static_cast<std::uint32_t>(slice)});
  }
  const auto transfers = [&](StepKind kind, const std::vector<BoundSpan>& spans, std::vector<Transfer>& made) {
    for (const BoundSpan& span : spans)
      made.push_back(transfer_of(kind, lane.partner.rank,
                                 {.spans = &span, .count = 1, .buffers = &lane.buffers, .grids = lane.grids.data()}));
    for (Transfer& transfer : made) transfer.step = number;
  };
  transfers(StepKind::send, lane.send_spans, lane.sends);
  transfers(StepKind::recv, lane.receive_spans, lane.receives);
  // Nothing may follow an announcement, as it seems then.
  lane.sends.front().last_of_lane = lane.partner.varies || outgoing.empty();
  lane.last_out = outgoing.empty() ? 0 : outgoing.size() - 1;
}

void Messages::set_rows(std::size_t lane, const SliceRows* outgoing, const SliceRows* incoming) {
  Lane& one = *lanes_[lane];
  one.rows_out = outgoing;
  one.rows_in = incoming;
  const Blocks& blocks = *one.partner.outgoing;
  one.last_out = blocks.empty() ? 0 : blocks.size() - 1;
  while (one.last_out > 0 && outgoing[one.last_out].count == 0) --one.last_out;
}

std::uint64_t Messages::reserved_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& lane : lanes_) bytes += lane->memory.bytes();
  return bytes;
}

Target Messages::target(std::size_t lane, std::uint32_t slice) const {
  const Lane& one = *lanes_[lane];
  return {one.memory.data() + one.place_out(slice), (*one.partner.outgoing)[slice].row_bytes};
}

void Messages::finished(std::size_t lane, std::uint32_t slice) {
  lanes_[lane]->finished[slice].store(run_, std::memory_order_release);
}

void Messages::begin(const Announcement& mine) {
  run_ = mine.run;
  ended_ = 0;
  complete_.store(all_ == 0, std::memory_order_relaxed);
  for (const auto& lane : lanes_) {
    std::memcpy(lane->said, &mine, sizeof mine);
    lane->sent = lane->received = 0;
    lane->has_heard = false;
  }
}

const Announcement* Messages::heard(std::size_t lane) const {
  return lanes_[lane]->has_heard ? reinterpret_cast<const Announcement*>(lanes_[lane]->heard) : nullptr;
}

void Messages::record(WorkerLane* trace) {
  trace_ = trace;
  for (const auto& lane : lanes_) lane->began_ns.resize(lane->sends.size());
}

// The first of them is the announcement.
void Messages::note(const Lane& lane, const Transfer& transfer) {
  if (transfer.kind != StepKind::send || &transfer == lane.sends.data()) return;
  const auto number = static_cast<std::size_t>(&transfer - lane.sends.data());
  trace_->add({.begin_ns = lane.began_ns[number],
               .end_ns = monotonic_ns(),
               .bytes = transfer.bytes,
               .peer = lane.partner.rank,
               .run = run_,
               .act = WorkerAct::message});
}

void Messages::end(const Transfer& transfer) {
  if (trace_ != nullptr) note(*lanes_[transfer.step], transfer);
  lanes_[transfer.step]->take_note(transfer, run_);
  under_way_.fetch_sub(1, std::memory_order_release);
  count_end();
}

void Messages::count_end() {
  if (++ended_ == all_) complete_.store(true, std::memory_order_release);
}

// Of one that has ended, if it is a receive of this lane.
void Messages::Lane::take_note(const Transfer& transfer, std::uint32_t run) {
  const std::less<const Transfer*> before;
  const Transfer* first = receives.data();
  if (before(&transfer, first) || !before(&transfer, first + receives.size())) return;
  if (&transfer == first)
    has_heard = true;
  else
    come[static_cast<std::size_t>(&transfer - first) - 1].store(run, std::memory_order_release);
}

Result<bool> Messages::start(Lane& lane, Transfer& transfer) {
  transfer.progressed = 0;
  transfer.mark = 0;
  transfer.carrier = any_rail;
  under_way_.fetch_add(1, std::memory_order_relaxed);
  if (trace_ != nullptr && transfer.kind == StepKind::send)
    lane.began_ns[static_cast<std::size_t>(&transfer - lane.sends.data())] = monotonic_ns();
  Result<bool> done = lane.partner.channel->start(transfer);
  if (done.ok() && *done) end(transfer);
  return done;
}

// As much as there is of it in this run: of some there is nothing.
Result<bool> Messages::start_slice(Lane& lane, std::size_t slice, StepKind kind) {
  const bool sends = kind == StepKind::send;
  const Block& block = (sends ? *lane.partner.outgoing : *lane.partner.incoming)[slice];
  Transfer& transfer = (sends ? lane.sends : lane.receives)[slice + 1];
  const std::uint64_t bytes = bytes_in_run(block, sends ? lane.rows_out : lane.rows_in, slice);
  if (bytes == 0) {
    count_end();
    return true;
  }
  BoundSpan& span = (sends ? lane.send_spans : lane.receive_spans)[slice + 1];
  span.bytes = transfer.bytes = bytes;
  if (sends || block.kept) span.offset = sends ? lane.place_out(slice) : lane.place_in(slice);
  transfer.last_of_lane = slice == lane.last_out;
  return start(lane, transfer);
}

// Receives first: a message that finds one is copied once.
Result<bool> Messages::start_all(Lane& lane, bool go) {
  bool any = false;
  if (lane.received == 0) {
    for (Transfer* announcement : {&lane.receives[0], &lane.sends[0]})
      if (Result<bool> done = start(lane, *announcement); !done.ok()) return done;
    lane.received = lane.sent = 1;
    any = true;
  }
  if (!go) return any;
  for (; lane.received < lane.receives.size(); any = true)
    if (Result<bool> done = start_slice(lane, lane.received++ - 1, StepKind::recv); !done.ok()) return done;
  for (; lane.sent < lane.sends.size(); any = true) {
    if (lane.finished[lane.sent - 1].load(std::memory_order_acquire) != run_) break;
    if (Result<bool> done = start_slice(lane, lane.sent++ - 1, StepKind::send); !done.ok()) return done;
  }
  return any;
}

Result<bool> Messages::move_on(bool go) {
  bool moved = false;
  for (const auto& lane : lanes_) {
    const Result<bool> started = start_all(*lane, go);
    if (!started.ok()) return started;
    moved |= *started;
  }
  for (Channel* channel : channels_) {
    if (channel->active() == 0) continue;
    completed_.clear();
    const Result<bool> progressed = channel->progress(completed_);
    if (!progressed.ok()) return progressed;
    moved |= *progressed;
    for (const Transfer* transfer : completed_) end(*transfer);
  }
  return moved;
}

}  // namespace plait::fused

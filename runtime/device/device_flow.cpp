#include "runtime/device/device_flow.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

#include "tl/trace.h"

namespace plait::runtime {
namespace {

// A copy of less is hardly faster than one of so much, and a call of the driver takes some microseconds.
constexpr std::uint64_t shortest_piece = std::uint64_t{16} << 10;
constexpr std::uint64_t longest_short_piece = std::uint64_t{1} << 20;  // what the rate of a device may ask for
constexpr double piece_ns = 10'000;                                    // which a piece takes at least
constexpr std::uint64_t most_pieces = 64;                              // of a block, where they are longer than that
constexpr std::uint64_t least_measured = std::uint64_t{256} << 10;

std::uintptr_t address_of(const std::byte* place) { return reinterpret_cast<std::uintptr_t>(place); }

}  // namespace

// ---- What is to be moved ----

void DeviceFlow::follow_program(const DeviceDriver& driver, const tl::DeviceMemory& memory) {
  follows_program_ = true;
  failure_ = {};
  const bool same = driver_ == &driver && memory_.context == memory.context;
  driver_ = &driver;
  memory_ = memory;
  if (!same || program_ == nullptr) {
    Result<std::unique_ptr<tl::DeviceEvent>> made = driver.make_event(memory);
    if (!made.ok()) failure_ = made.status();
    program_ = made.ok() ? std::move(*made) : nullptr;
  }
  if (failure_.ok()) failure_ = driver.record_program(*program_);
}

// Once for all runs of a call.
Status DeviceFlow::start() {
  abandon();
  for (Direction* direction : {&in_, &out_}) {
    direction->used = 0;
    direction->pieces.clear();
  }
  if (!failure_.ok() || streams_ != nullptr) return failure_;
  Result<std::unique_ptr<DeviceStreams>> borrowed = borrow_streams(*driver_, memory_);
  if (!borrowed.ok()) return borrowed.status();
  streams_ = std::move(*borrowed);
  Status status = follow(*streams_->in.stream);
  if (status.ok()) status = follow(*streams_->out.stream);
  others_.clear();
  return status;
}

Status DeviceFlow::follow(tl::DeviceStream& stream) const {
  Status status = stream.follow(*program_);
  for (const DeviceFlow* other : others_) {
    if (status.ok()) status = other->failure_;
    if (status.ok() && other->follows_program_) status = stream.follow(*other->program_);
  }
  return status;
}

DeviceView& DeviceFlow::bring(std::byte* packed) {
  if (in_.used == in_.blocks.size()) in_.blocks.emplace_back();
  Block& block = in_.blocks[in_.used++];
  block.packed = packed;
  return block.view;
}

DeviceView& DeviceFlow::take(std::byte* packed, bool ready) {
  if (out_.used == out_.blocks.size()) out_.blocks.emplace_back();
  Block& block = out_.blocks[out_.used++];
  block.packed = packed;
  block.ready = ready;
  return block.view;
}

// ---- Pieces ----

std::uint64_t DeviceFlow::piece_bytes(std::uint64_t bytes) const {
  const auto by_rate = static_cast<std::uint64_t>(streams_->bytes_per_ns * piece_ns);
  const std::uint64_t least = std::clamp(by_rate, shortest_piece, longest_short_piece);
  return std::bit_ceil(std::max(least, bytes / most_pieces));
}

// Steps find the blocks by address; each has its pieces in a row.
void DeviceFlow::cut(Direction& direction) const {
  direction.order.clear();
  for (std::uint32_t block = 0; block < direction.used; ++block) direction.order.push_back(block);
  std::ranges::sort(direction.order, {}, [&](std::uint32_t block) { return direction.blocks[block].packed; });
  std::uint64_t all = 0;
  for (std::uint32_t block = 0; block < direction.used; ++block) all += direction.blocks[block].view.bytes();
  std::uint64_t pieces = 0;
  for (std::uint32_t index = 0; index < direction.used; ++index) {
    Block& block = direction.blocks[index];
    block.piece_bytes = piece_bytes(all);
    block.first_piece = static_cast<std::uint32_t>(pieces);
    pieces += (block.view.bytes() + block.piece_bytes - 1) / block.piece_bytes;
  }
  direction.pieces.assign(pieces, 0);
}

// Of a grid all that lies between its first and its last byte.
DeviceFlow::Place DeviceFlow::place_of(const BoundSpan& span) const {
  const std::uintptr_t base = address_of(buffers_.at(span.space));
  if (span.grid == no_grid) return {base + span.offset, base + span.offset + span.bytes};
  const RunGrid& grid = schedule_->grids[span.grid];
  std::uint64_t last = grid.origin + grid.run;
  for (int level = 0; level < grid.levels; ++level) {
    const RunGrid::Level& one = grid.level[static_cast<std::size_t>(level)];
    last += (one.count - 1) * one.stride;
  }
  return {base + grid.origin, base + last};
}

// Calls visit(block, piece of the block) for those that the place touches.
template <class Visit>
void DeviceFlow::for_each_piece(Direction& direction, const Place& place, Visit&& visit) {
  auto next = std::ranges::upper_bound(direction.order, place.begin, {},
                                       [&](std::uint32_t block) { return direction.blocks[block].end(); });
  for (; next != direction.order.end(); ++next) {
    const Block& block = direction.blocks[*next];
    const std::uintptr_t packed = address_of(block.packed);
    if (packed >= place.end) return;
    const std::uint64_t from = std::max(place.begin, packed) - packed;
    const std::uint64_t to = std::min<std::uint64_t>(place.end - packed, block.view.bytes());
    for (std::uint64_t piece = from / block.piece_bytes; piece * block.piece_bytes < to; ++piece) visit(*next, piece);
  }
}

template <class Visit>
void DeviceFlow::for_each_piece(Direction& direction, SpanList list, Visit&& visit) {
  for (std::uint32_t i = 0; i < list.count; ++i)
    for_each_piece(direction, place_of(schedule_->spans[list.first + i]), visit);
}

void DeviceFlow::add_copy(Direction& direction, std::uint32_t index, std::uint64_t piece) {
  const Block& block = direction.blocks[index];
  const std::uint64_t begin = piece * block.piece_bytes;
  direction.copies.push_back({index, begin, std::min(begin + block.piece_bytes, block.view.bytes())});
}

// The copies after which what the spans name is there. Those of what is read are added.
std::uint32_t DeviceFlow::need_of(SpanList list, bool reads) {
  std::uint32_t need = 0;
  for_each_piece(in_, list, [&](std::uint32_t block, std::uint64_t piece) {
    std::uint32_t& copy = in_.pieces[in_.blocks[block].first_piece + piece];
    if (copy == 0 && reads) {
      add_copy(in_, block, piece);
      copy = static_cast<std::uint32_t>(in_.copies.size());
    }
    need = std::max(need, copy);
  });
  return need;
}

// What no step reads comes last; what is there leaves first.
void DeviceFlow::add_the_rest() {
  const auto for_each = [](const Block& block, auto&& visit) {
    for (std::uint64_t piece = 0; piece * block.piece_bytes < block.view.bytes(); ++piece) visit(piece);
  };
  for (std::uint32_t index = 0; index < in_.used; ++index)
    for_each(in_.blocks[index], [&](std::uint64_t piece) {
      std::uint32_t& copy = in_.pieces[in_.blocks[index].first_piece + piece];
      if (copy != 0) return;
      add_copy(in_, index, piece);
      copy = static_cast<std::uint32_t>(in_.copies.size());
    });
  for (std::uint32_t index = 0; index < out_.used; ++index)
    if (out_.blocks[index].ready)
      for_each(out_.blocks[index], [&](std::uint64_t piece) { add_copy(out_, index, piece); });
}

void DeviceFlow::begin(const BoundSchedule& schedule, const Buffers& buffers, bool hold_results) {
  schedule_ = &schedule;
  buffers_ = buffers;
  hold_results_ = hold_results;
  cut(in_);
  cut(out_);
  const auto steps = static_cast<std::uint32_t>(schedule.steps.size());
  needs_.assign(steps, 0);
  for (std::uint32_t index = 0; index < steps; ++index) {
    const BoundStep& step = schedule.steps[index];
    needs_[index] = std::max(need_of(step.source, true), need_of(step.operand, true));
    for_each_piece(out_, step.destination, [&](std::uint32_t block, std::uint64_t piece) {
      ++out_.pieces[out_.blocks[block].first_piece + piece];
    });
  }
  add_the_rest();
  waiting_.clear();
  released_ = 0;
  for (std::uint32_t index = 0; index < steps; ++index) {
    needs_[index] = std::max(needs_[index], need_of(schedule.steps[index].destination, false));
    if (needs_[index] != 0) waiting_.push_back({needs_[index], index});
  }
  std::ranges::sort(waiting_, {}, &Release::need);
  pace_ = {.started_ns = monotonic_ns()};
  in_.idled = out_.idled = false;
}

// ---- Under way ----

void DeviceFlow::note_complete(std::uint32_t step) {
  for_each_piece(out_, schedule_->steps[step].destination, [&](std::uint32_t block, std::uint64_t piece) {
    if (--out_.pieces[out_.blocks[block].first_piece + piece] == 0) add_copy(out_, block, piece);
  });
}

// Whether what came from the device to the same place is there: it leaves with what steps have written beside it.
bool DeviceFlow::is_there(const Block& block, const Copy& copy) {
  const std::uintptr_t packed = address_of(block.packed);
  std::uint32_t need = 0;
  for_each_piece(in_, Place{packed + copy.begin, packed + copy.end}, [&](std::uint32_t index, std::uint64_t piece) {
    need = std::max(need, in_.pieces[in_.blocks[index].first_piece + piece]);
  });
  return need <= in_.done;
}

template <class Issue>
Result<bool> DeviceFlow::move(Direction& direction, DeviceStreams::Direction& streams, Issue&& issue) {
  bool moved = false;
  while (direction.done < direction.issued) {
    const Result<bool> passed = streams.events[direction.done % DeviceStreams::window]->passed();
    if (!passed.ok()) return passed;
    if (!*passed) break;
    ++direction.done;
    moved = true;
  }
  direction.idled |= moved && direction.done == direction.issued && direction.issued < direction.copies.size();
  while (direction.issued < direction.copies.size() && direction.issued - direction.done < DeviceStreams::window) {
    const Copy copy = direction.copies[direction.issued];
    if (&direction == &out_ && in_.done < in_.copies.size() && !is_there(direction.blocks[copy.block], copy)) break;
    Status status = issue(direction.blocks[copy.block], copy);
    if (status.ok()) status = streams.stream->record(*streams.events[direction.issued % DeviceStreams::window]);
    if (!status.ok()) return status;
    ++direction.issued;
    moved = true;
  }
  return moved;
}

Result<bool> DeviceFlow::progress(std::vector<std::uint32_t>& released) {
  if (complete()) return false;
  Result<bool> moved = move_both(released);
  failed_ = !moved.ok();
  return moved;
}

Result<bool> DeviceFlow::move_both(std::vector<std::uint32_t>& released) {
  const std::size_t before = in_.done;
  const Result<bool> came = move(in_, streams_->in, [&](const Block& block, const Copy& copy) {
    return block.view.bring(*streams_->in.stream, block.packed, copy.begin, copy.end);
  });
  if (!came.ok()) return came;
  if (in_.done != before) note_pace();
  if (in_.done != before && in_.done == in_.copies.size()) learn_rate();
  for (; released_ < waiting_.size() && waiting_[released_].need <= in_.done; ++released_)
    released.push_back(waiting_[released_].step);
  if (hold_results_ && in_.done < in_.copies.size()) return came;
  const Result<bool> left = move(out_, streams_->out, [&](const Block& block, const Copy& copy) {
    return block.view.take(*streams_->out.stream, block.packed, copy.begin, copy.end);
  });
  return left.ok() ? Result<bool>(*came || *left) : left;
}

void DeviceFlow::note_pace() {
  if (in_.done == in_.copies.size()) return;
  for (; pace_.counted < in_.done; ++pace_.counted)
    pace_.done_bytes += in_.copies[pace_.counted].end - in_.copies[pace_.counted].begin;
  pace_.last_ns = monotonic_ns();
  if (pace_.first_ns != 0) return;
  pace_.first_ns = pace_.last_ns;
  pace_.first_bytes = pace_.done_bytes;
}

// What an engine has done between two moments at which it had copies to do, if it always had some in between, is its
// rate, however seldom somebody looked. Else it may have waited for this rank, or for what the program has given the
// device before: a slower rate is not believed at once.
void DeviceFlow::learn_rate() {
  constexpr double steepest_fall = 4;
  const auto rate = [](std::uint64_t bytes, std::uint64_t took_ns) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(took_ns, 1));
  };
  if (const std::uint64_t seen = pace_.done_bytes - pace_.first_bytes; !in_.idled && seen >= least_measured) {
    streams_->bytes_per_ns = rate(seen, pace_.last_ns - pace_.first_ns);
    return;
  }
  std::uint64_t bytes = 0;
  for (std::uint32_t block = 0; block < in_.used; ++block) bytes += in_.blocks[block].view.bytes();
  if (bytes < least_measured) return;
  streams_->bytes_per_ns =
      std::max(rate(bytes, monotonic_ns() - pace_.started_ns), streams_->bytes_per_ns / steepest_fall);
}

// ---- Ends ----

void DeviceFlow::end() {
  follows_program_ = false;
  if (streams_ != nullptr) give_back(std::move(streams_));
}

// No event is asked: what has failed may be that one could not be recorded behind a copy.
void DeviceFlow::abandon() noexcept {
  if (streams_ == nullptr) return;
  const auto settle = [&](Direction& direction, DeviceStreams::Direction& streams) {
    if (failed_ || direction.done < direction.issued) streams.stream->finish();
    direction.copies.clear();
    direction.issued = direction.done = 0;
  };
  settle(in_, streams_->in);
  settle(out_, streams_->out);
  failed_ = false;
}

}  // namespace plait::runtime

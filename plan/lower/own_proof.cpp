#include "plan/lower/own_proof.h"

#include <algorithm>
#include <string>

#include "plan/model/shm_collective_view.h"

namespace plait::plan {

OwnProof::OwnProof(const Semantics& semantics, const Routes& routes, int rank, const RankProof& proof)
    : BlockMoves(semantics, routes, rank),
      rank_(rank),
      proof_(proof),
      done_(proof.schedule().steps.size()),
      held_(semantics),
      memory_(proof.aliases() ? 2 : 1, std::vector<Value>(proof.cells())) {
  for (std::uint32_t i = 0; i < done_.size(); ++i) {
    const Step& step = proof.step(i);
    if (is_local(step.kind)) continue;
    const bool together = step.kind == StepKind::shm_collective;
    lanes_[together ? together_key() : LaneKey(step.channel, step.rail, step.peer, step.kind == StepKind::send)]
        .steps.push_back(i);
  }
  for (std::uint32_t cell = 0; cell < semantics.input_cells(rank); ++cell) {
    held_[semantics.input_block(rank, cell)] = 1;
    for (std::size_t in_place = 0; in_place < memory_.size(); ++in_place)
      memory_[in_place][proof.memory_of({Space::input, cell}, in_place == 1)] = 1;
  }
}

void OwnProof::fail(std::size_t step, const std::string& what) {
  if (status_.ok()) status_ = violation(rank_, step, what);
}

bool OwnProof::begin(std::span<const BlockRun> blocks) {
  ++turn_;
  return status_.ok() && !blocks.empty();
}

std::optional<std::uint32_t> OwnProof::next_step(const LaneKey& key, const char* what) {
  const auto lane = lanes_.find(key);
  if (lane == lanes_.end() || lane->second.next == lane->second.steps.size()) {
    if (status_.ok())
      status_ = {Code::invalid, "proof: rank " + std::to_string(rank_) + " lacks a step for " + what +
                                    (std::get<2>(key) < 0 ? "" : " rank " + std::to_string(std::get<2>(key)))};
    return std::nullopt;
  }
  const std::uint32_t step = lane->second.steps[lane->second.next++];
  if (!may_start(step)) return std::nullopt;
  return step;
}

std::optional<std::uint32_t> OwnProof::message_step(int peer, bool sends, std::span<const BlockRun> blocks) {
  const ChannelKind kind = channel(rank_, peer);
  return next_step({kind, rail_of(kind, blocks.front().chunk), peer, sends}, sends ? "a message to" : "a message from");
}

// All that it waits for belongs to earlier moves.
bool OwnProof::may_start(std::uint32_t step) {
  const RunList& after = proof_.step(step).after;
  for (std::uint32_t k = after.first; k < after.first + after.count; ++k) {
    const std::uint32_t before = proof_.schedule().after[k];
    if (done_[before] || (is_local(proof_.step(before).kind) && run_local(before))) continue;
    fail(step, "waits for step " + std::to_string(before) + ", which is of no earlier move");
    return false;
  }
  return true;
}

bool OwnProof::run_local(std::uint32_t step) {
  if (proof_.step(step).kind != StepKind::copy) {
    fail(step, "combines without a move");
    return false;
  }
  if (!may_start(step)) return false;
  const auto source = proof_.cells_of(proof_.step(step).source),
             destination = proof_.cells_of(proof_.step(step).destination);
  for (std::size_t in_place = 0; in_place < memory_.size(); ++in_place)
    for (std::size_t i = 0; i < source.size(); ++i)
      memory_[in_place][proof_.memory_of(destination[i], in_place == 1)] =
          memory_[in_place][proof_.memory_of(source[i], in_place == 1)];
  done_[step] = true;
  return true;
}

bool OwnProof::check_blocks(std::uint32_t step, RunList list, std::span<const BlockRun> blocks, const char* what) {
  const auto cells = proof_.cells_of(list);
  std::size_t i = 0;
  for (const BlockRun& run : blocks)
    for (int segment = run.first; segment < run.first + run.count; ++segment, ++i)
      if (i >= cells.size() || proof_.block_of(cells[i]) != semantics_.block(segment, run.chunk)) {
        fail(step, std::string(what) + " other blocks than its move");
        return false;
      }
  if (i != cells.size()) fail(step, std::string(what) + " more blocks than its move");
  return status_.ok();
}

// The cells have what the rank holds of their blocks by now.
bool OwnProof::check_values(std::uint32_t step, RunList list) {
  for (const Cell cell : proof_.cells_of(list)) {
    const Value held = held_[proof_.block_of(cell)];
    for (std::size_t in_place = 0; in_place < memory_.size(); ++in_place)
      if (held == 0 || memory_[in_place][proof_.memory_of(cell, in_place == 1)] != held) {
        fail(step, "uses another value of block " + std::to_string(proof_.block_of(cell)) + " than it holds by then");
        return false;
      }
  }
  return true;
}

void OwnProof::put(RunList list, Value value) {
  for (const Cell cell : proof_.cells_of(list)) {
    held_[proof_.block_of(cell)] = value;
    for (std::size_t in_place = 0; in_place < memory_.size(); ++in_place)
      memory_[in_place][proof_.memory_of(cell, in_place == 1)] = value;
  }
}

bool OwnProof::check_send(std::uint32_t step, std::span<const BlockRun> blocks) {
  const RunList source = proof_.step(step).source;
  return check_blocks(step, source, blocks, "gives") && check_values(step, source);
}

bool OwnProof::take(std::uint32_t step, std::span<const BlockRun> blocks, const Receipt& receipt) {
  const Step& taken = proof_.step(step);
  if ((taken.kind == StepKind::recv_reduce) != receipt.combines ||
      (receipt.combines && taken.incoming_left != receipt.on_the_left)) {
    fail(step, "does otherwise with what it gets than its move");
    return false;
  }
  if (!check_blocks(step, taken.destination, blocks, "gets")) return false;
  if (receipt.combines && !check_values(step, taken.operand)) return false;
  put(taken.destination, turn_ + 1);
  return true;
}

void OwnProof::send(int to, std::span<const BlockRun> blocks) {
  const auto step = message_step(to, true, blocks);
  if (step && check_send(*step, blocks)) done_[*step] = true;
}

void OwnProof::receive(int from, std::span<const BlockRun> blocks, const Receipt& receipt) {
  const auto step = message_step(from, false, blocks);
  if (step && take(*step, blocks, receipt)) done_[*step] = true;
}

void OwnProof::move(int from, int to, std::span<const BlockRun> blocks) {
  if (from == to || !begin(blocks)) return;
  if (from == rank_) send(to, blocks);
  if (to == rank_) receive(from, blocks, {});
}

void OwnProof::combine(int from, int to, std::span<const BlockRun> blocks, bool on_the_left) {
  if (from == to || !begin(blocks)) return;
  if (from == rank_) send(to, blocks);
  if (to == rank_) receive(from, blocks, {true, on_the_left});
}

// Neither of its messages may wait for the other one.
void OwnProof::exchange(int left, int right, std::span<const BlockRun> blocks) {
  if (!begin(blocks) || (left != rank_ && right != rank_)) return;
  const int other = left == rank_ ? right : left;
  const auto sent = message_step(other, true, blocks);
  if (!sent || !check_send(*sent, blocks)) return;
  const auto taken = message_step(other, false, blocks);
  if (!taken || !take(*taken, blocks, {true, right == rank_})) return;
  done_[*sent] = done_[*taken] = true;
}

void OwnProof::together(const ShmCollectiveCall& call) {
  const auto empty = [](const BlockRuns& piece) { return piece.empty(); };
  if (call.members.size() < 2 || std::ranges::all_of(call.pieces, empty)) return;
  if (std::ranges::find(call.members, rank_) == call.members.end()) return;
  ++turn_;
  if (!status_.ok()) return;
  const auto step = next_step(together_key(), "a shared-memory collective");
  if (!step) return;
  const Step& own = proof_.step(*step);
  const Schedule& schedule = proof_.schedule();
  const ShmCollective& collective = schedule.collectives[static_cast<std::size_t>(own.collective)];
  const ShmCollectiveView view(schedule, collective, rank_);
  const bool to_all = call.kind == ShmCollectiveKind::all_to_all;
  const std::size_t members = call.members.size();
  const auto self = static_cast<std::size_t>(std::ranges::find(call.members, rank_) - call.members.begin());
  std::vector<std::uint32_t> sizes;
  std::vector<BlockId> listed;  // of an all-to-all those that the rank gives
  BlockRuns column;             // and those that it gets
  for (std::size_t piece = 0; piece < call.pieces.size(); ++piece) {
    const BlockRuns& blocks = call.pieces[piece];
    if (to_all && piece % members == self) column.insert(column.end(), blocks.begin(), blocks.end());
    if (to_all && piece / members != self) continue;
    const std::size_t before = listed.size();
    for (const BlockRun& run : blocks)
      for (int segment = run.first; segment < run.first + run.count; ++segment)
        listed.push_back(semantics_.block(segment, run.chunk));
    sizes.push_back(static_cast<std::uint32_t>(listed.size() - before));
  }
  const std::span<const std::uint32_t> pieces =
      std::span(schedule.collective_pieces).subspan(collective.pieces.first, collective.pieces.count);
  const bool same = own.channel == *routes_.shared_memory() && view.kind() == call.kind &&
                    static_cast<std::size_t>(collective.root) == call.root &&
                    std::ranges::equal(view.members(), call.members) && std::ranges::equal(view.blocks(), listed) &&
                    (!has_pieces(call.kind) || std::ranges::equal(pieces, sizes));
  if (!same) return fail(*step, "is another collective than its move");
  if (to_all && !check_blocks(*step, own.destination, column, "gets")) return;
  if (!check_values(*step, own.source)) return;
  put(own.destination, turn_ + 1);
  done_[*step] = true;
}

Status OwnProof::finish() {
  for (std::uint32_t step = 0; step < done_.size() && status_.ok(); ++step)
    if (!done_[step] && !(is_local(proof_.step(step).kind) && run_local(step))) fail(step, "belongs to no move");
  if (!status_.ok()) return status_;
  for (std::uint32_t cell = 0; cell < semantics_.output_cells(rank_); ++cell) {
    const BlockId block = semantics_.output_block(rank_, cell);
    for (std::size_t in_place = 0; in_place < memory_.size(); ++in_place)
      if (held_[block] == 0 ||
          memory_[in_place][proof_.memory_of({Space::output, cell}, in_place == 1)] != held_[block])
        return {Code::invalid, "proof: rank " + std::to_string(rank_) +
                                   " ends with another value than it came to hold of block " + std::to_string(block)};
  }
  return {};
}

}  // namespace plait::plan

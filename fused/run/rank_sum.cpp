#include "fused/run/rank_sum.h"

namespace plait::fused {
namespace {

Blocks blocks_of(const RankSum::Request& request, int owner) {
  Blocks blocks;
  const Pane& pane = (*request.panes)[static_cast<std::size_t>(owner)];
  blocks.reserve(pane.slices.size());
  for (const Slice& slice : pane.slices) blocks.push_back(request.block_of(owner, slice));
  return blocks;
}

Blocks as_kept(Blocks blocks) {
  for (Block& block : blocks) block.kept = true;
  return blocks;
}

void append(Blocks& blocks, const Blocks& behind) { blocks.insert(blocks.end(), behind.begin(), behind.end()); }

}  // namespace

void RankSum::lay_out(const Request& request, ExchangeRequest& exchange) {
  rank_ = request.rank;
  ranks_ = static_cast<int>(request.panes->size());
  to_ = request.to;
  blocks_ = blocks_of(request, rank_);
  for (int other = 0; other < ranks_; ++other) {
    const Blocks theirs = blocks_of(request, other);
    Blocks outgoing = as_kept(theirs), incoming = as_kept(blocks_);
    parts_for_.push_back(static_cast<std::uint32_t>(theirs.size()));
    if (gets_sums(other)) {
      append(outgoing, blocks_);
      receivers_.push_back(other);
    }
    if (to_ == To::all && other != rank_) append(incoming, theirs);
    exchange.outgoing.push_back(std::move(outgoing));
    exchange.incoming.push_back(std::move(incoming));
  }
}

void RankSum::prepare(Exchange& exchange, int workers) {
  exchange_ = &exchange;
  sum_ = make_reducer(Op::sum, Element::f32);
  ends_.resize(static_cast<std::size_t>(workers));
  for (Ends& ends : ends_) {
    ends.parts.resize(static_cast<std::size_t>(ranks_));
    ends.part_rows.resize(ends.parts.size());
    ends.sums.resize(receivers_.size());
    ends.sum_rows.resize(receivers_.size());
  }
}

bool RankSum::has_all_parts(std::uint32_t slice) const {
  for (int source = 0; source < ranks_; ++source)
    if (!exchange_->has_come(source, slice)) return false;
  return true;
}

// A row after the other: all of them are of the same length.
void RankSum::add(std::uint32_t slice, int worker) {
  Ends& ends = ends_[static_cast<std::size_t>(worker)];
  for (std::size_t of = 0; of < ends.parts.size(); ++of) ends.parts[of] = exchange_->kept(static_cast<int>(of), slice);
  for (std::size_t to = 0; to < receivers_.size(); ++to)
    ends.sums[to] = exchange_->target(receivers_[to], sum_at(receivers_[to], slice));
  const Block& block = blocks_[slice];
  for (std::uint64_t row = 0; row < block.rows; ++row) {
    for (std::size_t of = 0; of < ends.parts.size(); ++of) ends.part_rows[of] = ends.parts[of] + row * block.row_bytes;
    for (std::size_t to = 0; to < ends.sums.size(); ++to)
      ends.sum_rows[to] = ends.sums[to].rows + row * ends.sums[to].pitch;
    reduce_many(sum_, {.results = ends.sum_rows.data(),
                       .result_count = ends.sum_rows.size(),
                       .sources = ends.part_rows.data(),
                       .source_count = ends.part_rows.size(),
                       .elements = block.row_bytes / sizeof(float),
                       .streaming = false});
  }
  for (const int to : receivers_)
    if (to != rank_) exchange_->finished(to, sum_at(to, slice));
}

}  // namespace plait::fused

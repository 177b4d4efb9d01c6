// The sum over all ranks of what each computes: slice by slice, by the slice's owner. The ranks' parts of a slice are
// kept by its owner, who adds them once all have come, in the order of the ranks, and stores the sum to its own output,
// or to all: a reduce-scatter, or an all-reduce. One rank adds, always in the same order: all ranks have the same bits,
// in every run.
//
// Steps and bytes: with N ranks and a result of D bytes each rank sends (N - 1)/N D bytes of parts; and as much of
// sums, where these go to all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/reduction.h"
#include "fused/exchange/block.h"
#include "fused/exchange/exchange.h"
#include "fused/layer.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

class RankSum {
 public:
  enum class To : std::uint8_t { owner, all };
  struct Request {
    int rank = 0;
    To to = To::owner;
    // By owner: the slices of the result that are its own, the same on all ranks.
    const std::vector<Pane>* panes = nullptr;
    // Where a slice lies in an output: its parts, which are kept, are packed in the same way. In f32.
    std::function<Block(int owner, const Slice& slice)> block_of;
  };

  RankSum() = default;
  // Throws where memory is short. What the ranks exchange: to each owner first the parts of its slices, then the sums.
  void lay_out(const Request& request, ExchangeRequest& exchange);
  // `exchange`: made of that, and there as long as this.
  void prepare(Exchange& exchange, int workers);

  std::uint32_t slices() const { return static_cast<std::uint32_t>(blocks_.size()); }  // of this rank's
  bool has_all_parts(std::uint32_t slice) const;
  // Precondition: it has; and outputs may be written.
  void add(std::uint32_t slice, int worker);

 private:
  // What one worker adds: by rank, where the parts of a slice are, and where its sum goes.
  struct Ends {
    std::vector<const std::byte*> parts, part_rows;
    std::vector<Target> sums;
    std::vector<std::byte*> sum_rows;
  };
  bool gets_sums(int rank) const { return to_ == To::all || rank == rank_; }
  std::uint32_t sum_at(int owner, std::uint32_t slice) const {
    return parts_for_[static_cast<std::size_t>(owner)] + slice;
  }

  int rank_ = 0, ranks_ = 1;
  To to_ = To::owner;
  Blocks blocks_;                         // by slice of this rank's
  std::vector<std::uint32_t> parts_for_;  // by owner: its slices, whose parts go before the sums
  std::vector<int> receivers_;            // of this rank's sums
  std::vector<Ends> ends_;                // by worker
  Exchange* exchange_ = nullptr;
  Reducer sum_;
};

}  // namespace plait::fused

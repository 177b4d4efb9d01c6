// An all-to-all of tokens to the experts that they have chosen, and these experts' products, in one: what
// plait_fused_moe_dispatch_create() makes. A rank's output has a part of `capacity` rows for each rank, in which that
// one's rows stand: those for the first expert, then those for the second one, and so on.
//
// Steps and bytes: each rank leaves each of its tokens once for each expert that it has chosen, with the expert's rank,
// slice by slice, those first whose way is the longest. An expert's product of some rows begins when these rows have
// come, whatever else has not.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "fused/moe/moe_plan.h"

namespace plait::fused {

class MoeDispatch final : public MoePlan {
 public:
  static Result<std::unique_ptr<MoeDispatch>> make(Oob& all, const MoeArguments& arguments,
                                                   const MakeMembers& make_members) {
    return make_tile_plan<MoeDispatch>(all, arguments, make_members);
  }
  ~MoeDispatch() override { end(); }

  Status read(const MoeArguments& given, int, int) { return read_arguments(given, MoeHalf::dispatch, problem_); }

  // What one run is given; it stays as it is until wait().
  struct Tokens {
    const float* x = nullptr;               // tokens x depth
    const std::int32_t* experts = nullptr;  // tokens x choices
  };
  Status start(const Tokens& tokens);
  // And the counts, where the run was well.
  Status wait() override;

 private:
  // What passes between this rank and another in a run.
  struct Pair {
    std::vector<SliceRows> rows_to, rows_from;  // by slice
    std::atomic<std::int64_t> tasks{-1};        // products of what comes; known once it is not negative
  };

  const char* name() const override { return "moe_dispatch"; }
  std::int64_t output_floats() const override {
    return problem_.experts() > 0 ? ranks() * problem_.capacity * problem_.columns : 0;
  }
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) override;
  Blocks slices() const;
  Pane pane() const;
  void heard(int rank) noexcept override;
  void compute(const TilePlace& place) noexcept override;
  std::int64_t tasks_of(int chain) const noexcept override;
  bool is_ready(const Task& task) const noexcept override;
  void follow(const Task& task, int worker) noexcept override;
  int source_of(int chain) const { return order_[static_cast<std::size_t>(chain)]; }
  const Piece& piece_of(const Task& task) const;

  std::int64_t slice_rows_ = 1, column_blocks_ = 1;
  BlockShape block_;
  std::vector<std::unique_ptr<Pair>> pairs_;  // by rank
  std::vector<int> order_;                    // of the sources: the chains
  Tokens tokens_;                             // of the run at hand
};

}  // namespace plait::fused

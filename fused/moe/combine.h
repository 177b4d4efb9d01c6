// The products of experts, and the all-to-all by which their results come to the tokens that have chosen them, in one:
// what plait_fused_moe_combine_create() makes. A rank's input lies as a dispatch leaves its output. The output of each
// rank is for each of its tokens the sum of the results of the experts that it has chosen, each times its weight.
//
// Steps and bytes: each result of an expert goes once to the token's rank, which keeps it, block by block; others' come
// before the rank's own. A token's sum is made, some columns at once, when all results for it have come in these
// columns, in the order of its choices: the same bits in every run.
#pragma once

#include <memory>
#include <vector>

#include "fused/kernels/weighted_sum.h"
#include "fused/moe/combine_device.h"
#include "fused/moe/moe_plan.h"

namespace plait::fused {

class MoeCombine final : public MoePlan {
 public:
  static Result<std::unique_ptr<MoeCombine>> make(Oob& all, const MoeArguments& arguments,
                                                  const MakeMembers& make_members) {
    return make_tile_plan<MoeCombine>(all, arguments, make_members);
  }
  ~MoeCombine() override { end(); }

  Status read(const MoeArguments& given, int, int) { return read_arguments(given, MoeHalf::combine, problem_); }

  // What one run is given; it stays as it is until wait().
  struct Results {
    const float* x = nullptr;               // ranks x capacity x depth
    const std::int32_t* experts = nullptr;  // tokens x choices
    const float* weights = nullptr;         // likewise
  };
  Status start(const Results& results);

 private:
  const char* name() const override { return "moe_combine"; }
  std::int64_t output_floats() const override { return problem_.tokens * problem_.columns; }
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) override;
  void prepare() override;
  DeviceWork* device_work() override;
  void lay_out_on_devices(DeviceRunRequest& request) override;
  // What passes between this rank and another in a run.
  struct Pair {
    std::int64_t most_to = 0, most_from = 0;    // pieces of a block of columns
    std::vector<SliceRows> rows_to, rows_from;  // by slice
    Pieces from;                                // of what comes: what this rank's tokens have chosen there
  };
  Range columns_in(std::int64_t block) const {
    return elements_of({block, block + 1}, {0, problem_.columns}, block_.columns);
  }
  std::int64_t most_pieces(std::int64_t experts) const {
    return experts > 0 ? Pieces::most({experts, problem_.capacity, block_.rows}) : 0;
  }
  Pane pane(std::int64_t most) const;
  Blocks slices(std::int64_t most) const;
  const Pair& pair(int rank) const { return *pairs_[static_cast<std::size_t>(rank)]; }
  Range tokens_in(const Task& task) const;
  std::int64_t block_in(const Task& task) const { return task.number / token_blocks_; }
  // Of one of this rank's choices, where its result is: in which slice of a block of columns, and in which of its rows.
  struct Found {
    std::uint32_t slice = 0;
    std::int64_t row = 0;
  };
  Found find(std::int64_t entry, const Routing::Place& place, std::int64_t block) const;

  void heard(int rank) noexcept override;
  void compute(const TilePlace& place) noexcept override;
  std::int64_t tasks_of(int chain) const noexcept override;
  bool is_ready(const Task& task) const noexcept override;
  void follow(const Task& task, int worker) noexcept override;

  BlockShape block_;
  std::int64_t column_blocks_ = 1, token_blocks_ = 0;
  std::vector<std::unique_ptr<Pair>> pairs_;  // by rank
  WeightedSum sum_ = nullptr;
  Results results_;                          // of the run at hand
  std::unique_ptr<CombineOnDevice> device_;  // nullptr: data are elsewhere
};

}  // namespace plait::fused

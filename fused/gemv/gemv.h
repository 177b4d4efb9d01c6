// A product with weights whose depth is spread over the ranks, and its all-reduce, in one: what
// plait_fused_gemv_create() makes. Rank r has weights W_r and vectors x_r; each rank's output is the sum of all W_r
// x_r.
//
// Steps and bytes: the rows of the result are shared out among the ranks, who own them. Each rank computes its part of
// every row, others' rows first: each slice goes to its owner, who sums the parts of all ranks in their order, and
// stores the sum to all. With N ranks and a result of D bytes each sends (N - 1)/N D bytes of parts and as much of
// sums: a reduce-scatter and an all-gather, slice by slice. One rank adds all, always in the same order, so that all
// have the same bits, in every run.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/aligned_bytes.h"
#include "core/reduction.h"
#include "core/status.h"
#include "fused/exchange/exchange.h"
#include "fused/gemv/gemv_arguments.h"
#include "fused/ground/fused_plan.h"
#include "fused/ground/ground.h"
#include "fused/kernels/gemv.h"
#include "fused/layer.h"
#include "fused/run/plan_costs.h"
#include "fused/tiles/slice_size.h"
#include "fused/tiles/tiles.h"
#include "fused/workers/crew.h"
#include "fused/workers/worker_count.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class Gemv final : public FusedPlan {
 public:
  // Collective over `all`; blocks. All ranks succeed or all fail; a rank without a complaint of its own has that of the
  // first one with one.
  static Result<std::unique_ptr<Gemv>> make(Oob& all, const GemvArguments& arguments, const MakeMembers& make_members);
  ~Gemv() override;

  // Begins a run with `columns` vectors of `depth` f32, one after the other. They stay as they are, and the output is
  // left alone, until wait(). Does not block; allocates nothing, but what a channel takes. With one worker the
  // computation is wait()'s.
  Status start(const float* x);
  // Ends it: the output is complete. `invalid` on all ranks where a rank's vectors cannot be used: no output was
  // touched, and the plan is as good as before. After any other failure the plan can only be freed.
  Status wait() override;

  Members& members() override { return ground_->members(); }
  // What was planned, as JSON: workers, slices, and how they reach the others.
  const std::string& description() const override { return description_; }

 private:
  // What this rank computes for one owner.
  struct Share {
    Pane pane;
    std::unique_ptr<std::atomic<std::uint32_t>[]> left;  // by slice: tiles that are not done
    alignas(64) std::atomic<std::uint32_t> next{0};      // the next tile that nobody has taken
  };
  // What one worker adds: by rank, where the parts of a slice are, and where its sum goes.
  struct Ends {
    std::vector<const std::byte*> parts, part_rows;
    std::vector<Target> sums;
    std::vector<std::byte*> sum_rows;
  };
  enum class Take : std::uint8_t { one, later, none };

  Gemv() = default;
  static Result<std::unique_ptr<Gemv>> make_together(Oob& all, const GemvArguments& arguments,
                                                     const MakeMembers& make_members);
  Status connect(Oob& all, const MakeMembers& make_members);
  Status lay_out(ExchangeRequest& request);
  std::size_t bytes_of_slices() const;
  Pane pane_of(int owner, std::size_t bytes_of_slice) const;
  Blocks blocks_of(const Pane& pane, bool kept) const;
  void prepare(int workers);
  void describe();
  int rank() const { return ground_->rank(); }
  int ranks() const { return ground_->ranks(); }
  Share& share(int owner) const { return *shares_[static_cast<std::size_t>(owner)]; }
  std::uint32_t own_slices() const { return static_cast<std::uint32_t>(share(rank()).pane.slices.size()); }

  void arm();
  void work(int worker) noexcept;
  Take take(std::size_t& first, Turn& taken);
  void compute(const Turn& taken);
  Target part_of(int owner, std::uint32_t slice) const;
  bool has_all_parts(std::uint32_t slice) const;
  bool add_one(int worker);
  void add(std::uint32_t slice, Ends& ends);
  bool is_all_added() const { return added_.load(std::memory_order_acquire) == own_slices(); }

  GemvProblem problem_;
  std::unique_ptr<Ground> ground_;
  PlanCosts costs_;
  std::vector<std::unique_ptr<Share>> shares_;  // by owner
  std::vector<int> order_;                      // of the owners
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Crew> crew_;
  GemvKernel kernel_ = nullptr;
  Reducer sum_;
  AlignedBytes own_parts_;
  std::vector<std::uint64_t> own_places_;                   // by slice, in these
  std::unique_ptr<std::atomic<std::uint32_t>[]> own_come_;  // by slice: the last run in which the own part was there
  std::vector<Ends> ends_;                                  // by worker
  std::string description_;

  // Of the run at hand.
  struct Work {
    Gemv& of;
    void operator()(int worker) const noexcept { of.work(worker); }
  } work_{*this};
  const float* x_ = nullptr;
  std::uint32_t run_ = 0;
  alignas(64) std::atomic<std::uint32_t> next_sum_{0};  // own slices that somebody has added, or is about to
  std::atomic<std::uint32_t> added_{0};
  bool started_ = false;
  Status failure_;
};

}  // namespace plait::fused

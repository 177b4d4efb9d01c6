// What operators that run by tiles have in common: how they are made among their ranks, and their runs.
//
// Where a plan's data lie decides where it runs. All on devices of one node, and the operator has kernels
// (device_work()), and PLAIT_DEVICE_DIRECT lets it: there (fused/device/device_run.h). Else on processors: of data that
// are on a device these have copies, which come and go with each run. The ranks agree on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/attempt.h"
#include "core/status.h"
#include "fused/device/device_run.h"
#include "fused/device/plan_data.h"
#include "fused/exchange/exchange.h"
#include "fused/ground/alike.h"
#include "fused/ground/fused_plan.h"
#include "fused/ground/ground.h"
#include "fused/ground/plan_options.h"
#include "fused/layer.h"
#include "fused/run/plan_costs.h"
#include "fused/run/tile_run.h"
#include "fused/tiles/slice_size.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/agreement.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class TilePlan : public FusedPlan, protected TileWork {
 public:
  // Ends a run: this rank's output is complete. `invalid` on all ranks where what one gave cannot be used, with the
  // argument and the rank: no output was touched, and the plan is as good as before. After any other failure the plan
  // can only be freed.
  Status wait() override;

  Members& members() override { return ground_->members(); }
  // What was planned, as JSON: workers, slices, and how they reach the others.
  const std::string& description() const override { return description_; }

  // ---- Making, by make_tile_plan() ----

  // Numbers that all ranks must give alike; the same arguments on all of them.
  virtual std::vector<Alike> alike() const = 0;
  // Collective over `all`; blocks.
  Status connect(Oob& all, const MakeMembers& make_members);

 protected:
  // Ends the run that is under way. For destructors: a run needs the whole operator.
  void end() noexcept {
    run_.reset();
    device_run_.reset();
  }

  // ---- What an operator is ----

  virtual const char* name() const = 0;
  virtual const PlanOptions& options() const = 0;
  // Collective: what the ranks tell each other before the plan is laid out.
  virtual Status meet(Oob& /*oob*/) { return {}; }
  // Everything but the workers and nodes. Throws where memory is short.
  virtual Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) = 0;
  // Once the run can be looked at; on processors.
  virtual void prepare() {}
  // All of the program's memory that the plan is made of; what stands in for it takes its place.
  virtual void visit_data(DataVisitor& visit) = 0;
  // The operator on a device, where it has kernels for what it was given; nullptr: none. Asked once.
  virtual DeviceWork* device_work() { return nullptr; }
  // Everything but `ground`, the owners' order and the crowd. Throws where memory is short.
  virtual void lay_out_on_devices(DeviceRunRequest& /*request*/) {}
  // A complaint of a run in words, without the rank: here of one that is given `x` alone.
  virtual std::string text_of(const Complaint& /*complaint*/) const { return "x: NULL"; }

  // ---- For operators ----

  // Whether a run may begin now: before anything of the last one is changed.
  Status may_begin() {
    brought_.begin();
    return device_run_ != nullptr ? device_run_->may_start() : run_->may_start();
  }
  // Does not block; allocates nothing, but what a channel takes. With one worker the computation is wait()'s. Where
  // data of a device's are copied, that blocks.
  Status begin(const Complaint* complaint) {
    if (mirrors_ != nullptr || !brought_.status().ok()) [[unlikely]]
      if (Status status = copy_in(); !status.ok()) return status;
    return run_->start(complaint);
  }
  // The same on devices, which look themselves whether there is something to complain of.
  bool on_devices() const { return device_run_ != nullptr; }
  Status begin_on_devices() { return device_run_->start(); }
  // What a run is given is brought by this to where the processor finds it, between may_begin() and begin(), which
  // tells of it where that could not be.
  BroughtData& brought() { return brought_; }
  int rank() const { return ground_->rank(); }
  int ranks() const { return ground_->ranks(); }
  int node_of(int rank) const;
  bool goes_far() const;  // there are several nodes
  // How long slices of `bytes` for one owner are, by the options or by the cost model; the same on all ranks, as the
  // longest way counts.
  std::size_t slice_bytes_for(std::uint64_t bytes) const;
  const PlanCosts& costs() const { return costs_; }  // from lay_out() on
  // Blocks that a matrix for one owner is to have at least: some to follow each other, and several for each worker of
  // the rank that has most of them.
  std::int64_t enough_blocks() const;
  TileRun& run() const { return *run_; }
  // Wherever the plan runs.
  Exchange& exchange() const { return device_run_ != nullptr ? device_run_->exchange() : run_->exchange(); }

 private:
  enum class DataPlace : std::uint8_t { none, processor, device, elsewhere };
  static constexpr std::size_t data_places = 4;
  Status agree_on_workers(Oob& oob);
  Result<DataPlace> agree_on_place(Oob& oob);
  DataPlace own_place();
  bool share_one_node() const;
  Status connect_devices(Oob& oob);
  Status copy_in();
  void describe();
  void describe_devices();

  std::unique_ptr<Ground> ground_;
  PlanCosts costs_;
  std::int64_t most_workers_ = 1;  // of all ranks
  std::string description_;
  std::unique_ptr<TileRun> run_;
  DeviceGround device_ground_;
  DeviceWork* device_work_ = nullptr;
  std::unique_ptr<DeviceRun> device_run_;  // nullptr: on processors
  std::unique_ptr<DataMirrors> mirrors_;   // nullptr: no data are on a device
  BroughtData brought_;
};

// Collective over `all`; blocks. All ranks succeed or all fail; a rank without a complaint of its own has that of the
// first one with one. A Plan can be made of nothing, and reads its arguments: read(arguments, ranks, rank).
template <class Plan, class Arguments>
Result<std::unique_ptr<Plan>> make_tile_plan(Oob& all, const Arguments& arguments, const MakeMembers& make_members) {
  return take_or_withdraw(all, [&]() -> Result<std::unique_ptr<Plan>> {
    auto made = std::make_unique<Plan>();
    Status status = attempt([&] { return made->read(arguments, all.ranks(), all.rank()); });
    status = agree_if_possible(all, status, [] { return std::vector<Said>(); });
    if (!status.ok()) return status;
    if (Status same = agree_on(all, made->alike()); !same.ok()) return same;
    status = attempt([&] { return made->connect(all, make_members); });
    if (Status ready = all_prepared(all, status, "prepare the fused plan"); !ready.ok()) return ready;
    return made;
  });
}

}  // namespace plait::fused

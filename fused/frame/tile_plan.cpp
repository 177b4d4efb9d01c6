#include "fused/frame/tile_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/channel_kind.h"
#include "fused/run/plan_text.h"
#include "runtime/job/job.h"
#include "runtime/team/team_request.h"

namespace plait::fused {

Status TilePlan::connect(Oob& all, const MakeMembers& make_members) {
  Result<std::unique_ptr<Ground>> ground = Ground::make(all, make_members);
  if (!ground.ok()) return ground.status();
  ground_ = std::move(*ground);
  Oob& oob = ground_->members().oob();
  if (Status status = meet(oob); !status.ok()) return status;
  Result<PlanCosts> costs = agree_on_costs(oob, ground_->team());
  if (!costs.ok()) return costs.status();
  costs_ = *costs;
  if (Status status = agree_on_workers(oob); !status.ok()) return status;
  const Result<DataPlace> place = agree_on_place(oob);
  if (!place.ok()) return place.status();
  if (*place == DataPlace::device) {
    if (Status status = connect_devices(oob); !status.ok()) return status;
    if (device_run_ != nullptr) return attempt([&]() -> Status { return describe_devices(), Status(); });
  }
  ExchangeRequest exchange;
  TileRunRequest run;
  const Status laid_out = attempt([&]() -> Status {
    if (*place != DataPlace::processor) {
      mirrors_ = std::make_unique<DataMirrors>();
      visit_data(*mirrors_);
    }
    run.processors = costs_.processors;
    run.workers = options().workers;
    run.aware = options().aware;
    run.plan = name();
    for (int of = 0; of < ranks(); ++of) run.node_of.push_back(node_of(of));
    return lay_out(exchange, run);
  });
  if (Status status = oob.go_on_together(laid_out); !status.ok()) return status;
  Result<std::unique_ptr<Exchange>> made = Exchange::make(ground_->team(), std::move(exchange));
  if (!made.ok()) return made.status();
  return attempt([&]() -> Status {
    run_ = std::make_unique<TileRun>(static_cast<TileWork&>(*this), ground_->team(), std::move(*made), std::move(run));
    prepare();
    describe();
    return {};
  });
}

Status TilePlan::agree_on_workers(Oob& oob) {
  const std::int64_t mine = options().workers != 0 ? options().workers : costs_.processors.own;
  return oob.reduce_all(&mine, &most_workers_, 1, Element::i64, Op::max, "agree on how many workers they have");
}

bool TilePlan::goes_far() const {
  return ground_->team() != nullptr && ground_->team()->planner.hierarchy().nodes() > 1;
}

// ---- Where the data lie ----

TilePlan::DataPlace TilePlan::own_place() {
  if (surely_no_driver()) return DataPlace::processor;
  DataSurvey survey;
  visit_data(survey);
  if (!survey.any()) return DataPlace::none;
  if (!survey.any_on_device()) return DataPlace::processor;
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  const DeviceGround& ground = survey.ground();
  if (!survey.all_on_one_device() || !runtime::may_use({}, ChannelKind::cuda) ||
      job().config.device_direct_from == never || !ground.driver->fuses(ground.memory))
    return DataPlace::elsewhere;
  device_ground_ = ground;
  return DataPlace::device;
}

bool TilePlan::share_one_node() const {
  const Team* team = ground_->team();
  if (team == nullptr) return true;
  if (team->planner.hierarchy().nodes() > 1) return false;
  for (int other = 0; other < ranks(); ++other)
    if (other != rank() && !traits(team->routes().between(rank(), other)).segment) return false;
  return true;
}

// On devices where all data are on some, or there are none; on processors where all are theirs; else there as well, by
// copies. The same on all ranks.
Result<TilePlan::DataPlace> TilePlan::agree_on_place(Oob& oob) {
  DataPlace mine = DataPlace::elsewhere;
  Status ready = attempt([&]() -> Status {
    mine = own_place();
    if (mine != DataPlace::device) return {};
    device_work_ = device_work();
    if (device_work_ == nullptr || !share_one_node()) mine = DataPlace::elsewhere;
    return {};
  });
  if (Status status = oob.go_on_together(ready); !status.ok()) return status;
  // By place: whether it is somebody's. A lack of something outweighs all else.
  std::array<std::uint8_t, data_places> own{}, any{};
  own[static_cast<std::size_t>(mine)] = 1;
  if (Status met = reduce_all(oob, own, any, Op::max, "agree on where their data are"); !met.ok()) return met;
  const auto is_anybodys = [&](DataPlace place) { return any[static_cast<std::size_t>(place)] != 0; };
  if (is_anybodys(DataPlace::elsewhere)) return DataPlace::elsewhere;
  if (!is_anybodys(DataPlace::device)) return DataPlace::processor;
  return is_anybodys(DataPlace::processor) ? DataPlace::elsewhere : DataPlace::device;
}

Status TilePlan::connect_devices(Oob& oob) {
  DeviceRunRequest request;
  const Status laid_out = attempt([&]() -> Status {
    if (device_work_ == nullptr) device_work_ = device_work();
    std::vector<int> nodes(static_cast<std::size_t>(ranks()));
    for (int of = 0; of < ranks(); ++of) nodes[static_cast<std::size_t>(of)] = node_of(of);
    request.order = options().aware ? communication_order(nodes, rank()) : plain_order(ranks());
    request.ground = device_ground_;
    request.crowded = costs_.processors.crowded;
    lay_out_on_devices(request);
    if (device_work_ == nullptr) return {Code::internal, "an operator has no work for devices"};
    return {};
  });
  if (Status status = oob.go_on_together(laid_out); !status.ok()) return status;
  Result<std::unique_ptr<DeviceRun>> made = DeviceRun::make(ground_->team(), oob, *device_work_, std::move(request));
  if (!made.ok()) return made.status();
  device_run_ = std::move(*made);
  return {};
}

// All ranks start the run, and hear of what fails here.
Status TilePlan::copy_in() {
  Status status = brought_.status();
  if (status.ok() && mirrors_ != nullptr) status = mirrors_->copy_in();
  return status.ok() ? status : run_->break_off(status);
}

void TilePlan::describe_devices() {
  const auto field = [](const char* key, auto value) {
    return ", \"" + std::string(key) + "\": " + std::to_string(value);
  };
  description_ = "{\"operator\": \"" + std::string(name()) + "\", \"on\": \"devices\"" +
                 field("slices", device_run_->slices()) + field("tiles", device_run_->tiles()) +
                 field("memory", device_run_->reserved_bytes()) + "}";
}

// ---- How it is cut ----

// Within a node little is left to hide, and large blocks are worth more than many; between nodes the first block that
// is sent is to be there soon.
std::int64_t TilePlan::enough_blocks() const {
  constexpr std::int64_t near = 2, far = 8, for_each_worker = 4;
  return std::max(goes_far() ? far : near, for_each_worker * most_workers_ / ranks());
}

int TilePlan::node_of(int rank) const {
  return ground_->team() != nullptr ? ground_->team()->planner.hierarchy().node_of(rank) : 0;
}

std::size_t TilePlan::slice_bytes_for(std::uint64_t bytes) const {
  if (options().slice_bytes != 0) return options().slice_bytes;
  return slice_bytes(goes_far() ? costs_.far : costs_.near, bytes);
}

void TilePlan::describe() {
  PlanNumbers numbers{.workers = run_->workers(), .ranks = ranks()};
  for (const Pane& pane : run_->panes()) {
    numbers.slices += pane.slices.size();
    numbers.tiles += pane.tiles.size();
  }
  description_ = plan_text(name(), numbers, run_->exchange());
}

Status TilePlan::wait() {
  const Status ended = device_run_ != nullptr ? device_run_->wait() : run_->wait();
  if (!ended.ok()) return ended;
  const auto& refusal = device_run_ != nullptr ? device_run_->refusal() : run_->refusal();
  if (!refusal) {
    if (mirrors_ == nullptr) return {};
    const Status copied = mirrors_->copy_out();
    return copied.ok() ? copied : run_->break_off(copied);
  }
  return attempt([&] {
    return Status(Code::invalid, text_of(refusal->complaint) + " (on rank " + std::to_string(refusal->rank) + ")");
  });
}

}  // namespace plait::fused

#include "runtime/execution/device_exchange.h"

#include <optional>
#include <utility>

#include "runtime/execution/caller.h"
#include "runtime/job/job.h"
#include "tl/data_flow.h"

namespace plait::runtime {
namespace {

// As steps of a node's ranks; none for other collectives.
std::optional<ShmCollectiveKind> kind_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return ShmCollectiveKind::all_reduce;
    case Collective::reduce:
      return ShmCollectiveKind::reduce;
    case Collective::reduce_scatter_block:
      return ShmCollectiveKind::reduce_scatter;
    case Collective::bcast:
      return ShmCollectiveKind::broadcast;
    case Collective::allgather:
      return ShmCollectiveKind::all_gather;
    case Collective::gather:
      return ShmCollectiveKind::gather;
    case Collective::scatter:
      return ShmCollectiveKind::scatter;
    case Collective::alltoall:
      return ShmCollectiveKind::all_to_all;
    default:
      return {};
  }
}

// What all ranks know of the request. Floating-point results whose bits must be the same in every run are not left to
// what a driver lets us do.
bool may_run_on_devices(const Request& request) {
  if (request.prefix != Prefix::none || request.ordered != nullptr) return false;
  if (!plan::reduces(request.call.collective)) return true;
  const Reducer* reducer = request.reducer;
  if (request.user != nullptr || reducer == nullptr || reducer->op == Op::count_) return false;
  return reducer->exact || job().config.reproducible == Reproducible::no;
}

// Data that could not be staged, while the others run the plan: the engine fails at once.
class FailedFlow final : public tl::DataFlow {
 public:
  explicit FailedFlow(Status why) : why_(std::move(why)) {}
  bool awaits(std::uint32_t) const override { return true; }
  void note_complete(std::uint32_t) override {}
  Result<bool> progress(std::vector<std::uint32_t>&) override { return why_; }
  bool active() const override { return true; }
  bool complete() const override { return false; }

 private:
  Status why_;
};

// Where the data are one piece of a device's memory. Precondition: the side is used.
bool is_one_piece(const Region& region) {
  return region.device != nullptr && region.direct && region.segment_displacements == nullptr && region.bytes != 0;
}

}  // namespace

bool asks_devices_of_other(Team& team, const Request& request) {
  const std::optional<ShmCollectiveKind> kind = kind_of(request.call.collective);
  if (!kind || !may_run_on_devices(request)) return false;
  const std::uint64_t ranks =
      plan::counts_parts(request.call.collective) ? static_cast<std::uint64_t>(team.planner.hierarchy().ranks()) : 1;
  return team.device_calls.is_due(*kind, request.call.count * request.call.element_bytes * ranks);
}

void DeviceExchange::take(Team& team, int rank, const Request& request, const BoundSchedule& schedule,
                          CallMemory& memory, const Staging* laid_out) {
  team_ = &team;
  rank_ = rank;
  request_ = &request;
  schedule_ = &schedule;
  memory_ = &memory;
  laid_out_ = laid_out;
  on_devices_ = false;
  error_ = 0;
  make_question(team.planner.hierarchy().ranks());
}

// One step of all ranks, whose data the engine need not know.
void DeviceExchange::make_question(int ranks) {
  if (!question_.collectives.empty()) {
    const BoundShmCollective& before = question_.collectives.front();
    if (before.self == rank_ && before.members.size() == static_cast<std::size_t>(ranks)) return;
  }
  BoundShmCollective step;
  step.self = rank_;
  for (int rank = 0; rank < ranks; ++rank) step.members.push_back(rank);
  question_.collectives = {std::move(step)};
  question_.steps = {{.kind = StepKind::shm_collective,
                      .channel = ChannelKind::shm,
                      .incoming_left = false,
                      .rail = any_rail,
                      .peer = -1,
                      .collective = 0,
                      .predecessors = 0,
                      .successors = {},
                      .source = {},
                      .operand = {},
                      .destination = {},
                      .bytes = 0,
                      .lane = 0}};
  question_.lanes = {{.steps = {0, 1}}};
  question_.lane_steps = {0};
  question_.channels_used.add(ChannelKind::shm);
}

// Where this rank's data are, if they are all on a device, in one piece each.
void DeviceExchange::place(tl::DeviceCall& call) const {
  const Request& request = *request_;
  const bool from_output = request.sharing == Sharing::input_in_output;
  const bool into_input = request.sharing == Sharing::output_in_input;
  const bool gives = from_output || request.input.type != nullptr;
  const bool gets = into_input || request.output.type != nullptr;
  const Region& given = from_output ? request.output : request.input;
  const Region& got = into_input ? request.input : request.output;
  if (request.copy_input || (gives && !is_one_piece(given)) || (gets && !is_one_piece(got))) return;
  if (gives && gets && given.device != got.device) return;
  if (gives) call.input = given.address + (from_output ? request.own_offset : 0);
  if (gets) call.output = got.address + (into_input ? request.own_offset : 0);
  call.driver = gives ? given.device : gets ? got.device : nullptr;
}

int DeviceExchange::begin(const BoundSchedule&) {
  const Call& made = request_->call;
  tl::DeviceCall call{.kind = *kind_of(made.collective),
                      .members = static_cast<std::size_t>(team_->planner.hierarchy().ranks()),
                      .self = static_cast<std::size_t>(rank_),
                      .root = static_cast<std::size_t>(made.root),
                      .bytes = made.count * made.element_bytes,
                      .element_bytes = made.element_bytes,
                      .shared_from = team_->device_calls.shared_from()};
  if (request_->reducer != nullptr) {
    call.op = request_->reducer->op;
    call.element = request_->reducer->element;
  }
  place(call);
  if (on_device(*request_)) {
    if (!memory_->has_flow() || !memory_->flow().follows_program()) follow_program(*request_, *memory_);
    if (const Status followed = memory_->flow().followed(); !followed.ok()) return caller().code_of(followed);
    call.program = memory_->flow().program();
  }
  tl::DeviceCollective& collective = team_->device_calls.collective();
  collective.start(call);
  buffers_ = {.base = {}, .flow = nullptr, .talk = &collective};
  return 0;
}

const BoundSchedule* DeviceExchange::rest(const Routes&) {
  const auto outcome = team_->device_calls.collective().outcome();
  team_->device_calls.note(*kind_of(request_->call.collective), outcome);
  on_devices_ = outcome == tl::DeviceCollective::Outcome::done;
  if (on_devices_) return nullptr;
  staging_ = laid_out_ != nullptr ? *laid_out_ : lay_out(*request_, *schedule_, *memory_);
  buffers_ = staging_.buffers;
  error_ = stage_in(*request_, *schedule_, staging_);
  if (error_ != 0) {
    failed_ = std::make_unique<FailedFlow>(pack_error(error_));
    buffers_.flow = failed_.get();
  }
  return schedule_;
}

int DeviceExchange::end() {
  if (!on_devices_) return error_ != 0 ? error_ : stage_out(*request_, staging_);
  if (memory_->has_flow()) memory_->flow().end();
  return 0;
}

}  // namespace plait::runtime

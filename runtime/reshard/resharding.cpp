#include "runtime/reshard/resharding.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/attempt.h"
#include "core/immortal.h"
#include "plan/reshard/lowering.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/decide.h"
#include "runtime/execution/device_data.h"
#include "runtime/execution/execution.h"
#include "runtime/job/job.h"
#include "runtime/progress/progress.h"
#include "runtime/reshard/agreement.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// All that are alive, in the order in which they were made.
struct Reshardings {
  std::mutex guard;
  std::vector<Resharding*> all;
};
Reshardings& reshardings() {
  static Immortal<Reshardings> made;  // never destroyed: plans may be freed until the process ends
  return *made;
}

// Ranks of the communicator that take part, ascending.
std::vector<int> members_of(const reshard::Task& task) {
  std::vector<int> members = task.source.ranks;
  members.insert(members.end(), task.destination.ranks.begin(), task.destination.ranks.end());
  std::ranges::sort(members);
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

void renumber(reshard::Mesh& mesh, const std::vector<int>& members) {
  for (int& rank : mesh.ranks) rank = static_cast<int>(std::ranges::lower_bound(members, rank) - members.begin());
}

// A side's data are bytes one after the other, whatever the elements are made of.
constexpr Layout bytes_layout = {.size = 1, .extent = 1, .true_extent = 1, .contiguous = true, .gapless = true};

}  // namespace

Result<std::unique_ptr<Resharding>> Resharding::make(Oob& all, const ReshardArguments& arguments,
                                                     const MakeMembers& make_members) {
  return take_or_withdraw(all, [&] { return make_together(all, arguments, make_members); });
}

Result<std::unique_ptr<Resharding>> Resharding::make_together(Oob& all, const ReshardArguments& arguments,
                                                              const MakeMembers& make_members) {
  std::unique_ptr<Resharding> made(new Resharding);
  Status status = attempt([&] { return read_arguments(arguments, all.ranks(), made->problem_); });
  status = agree_if_possible(all, status, [&] { return arguments_said(made->problem_); });
  if (!status.ok()) return status;
  status = attempt([&] { return made->connect(all, make_members); });
  // Those that take part must find the same plan; the others have none.
  if (made->communicator_ != nullptr) {
    if (status.ok()) status = attempt([&] { return made->plan(); });
    status = agree_if_possible(made->members_->oob(), status, [&] {
      return std::vector<Said>{{"plan", std::exchange(made->plan_.found, {})}};
    });
  }
  if (status.ok()) status = attempt([&] { return made->enlist(); });
  if (Status ready = all_prepared(all, status, "prepare the resharding"); !ready.ok()) return ready;
  return made;
}

// Collective over the program's communicator. Afterwards ranks are those of the members.
Status Resharding::connect(Oob& all, const MakeMembers& make_members) {
  bool takes_part = false;
  std::vector<int> members;
  const Status ready = attempt([&]() -> Status {
    const reshard::Task& task = problem_.task;
    members_ = make_members();
    members = members_of(task);
    source_box_ = reshard::shard_of(task.source, task.source_spec, task.shape, all.rank());
    destination_box_ = reshard::shard_of(task.destination, task.destination_spec, task.shape, all.rank());
    takes_part = std::ranges::binary_search(members, all.rank());
    return {};
  });
  if (Status status = all.go_on_together(ready); !status.ok()) return status;
  if (Status status = members_->part(takes_part); !status.ok() || !takes_part) return status;
  renumber(problem_.task.source, members);
  renumber(problem_.task.destination, members);
  const Status known = attempt([&]() -> Status {
    communicator_ = members_->make_communicator();
    return {};
  });
  if (Status status = members_->oob().go_on_together(known); !status.ok()) {
    communicator_.reset();
    return status;
  }
  if (communicator_->ranks == 1) return {};
  Result<std::unique_ptr<Team>> made = communicator_->connect(TeamExtent::all_calls, nullptr);
  if (!made.ok()) return made.status();
  communicator_->team = std::move(*made);
  communicator_->road = Road::accelerated;
  return {};
}

Status Resharding::plan() {
  Team* team = communicator_->team.get();
  Result<ReshardPlan> planned =
      plan_resharding(problem_, {.rank = communicator_->rank, .ranks = communicator_->ranks, .team = team});
  if (!planned.ok()) return planned.status();
  plan_ = std::move(*planned);
  const BoundSchedule& schedule = plan_.prepared->schedule;
  (team == nullptr ? alone_ : team->engine).make_room(schedule);
  if (schedule.scratch_bytes > 0) scratch_ = memory_.reserve(schedule.scratch_bytes);
  return {};
}

// Its end takes it out again.
Status Resharding::enlist() {
  const std::scoped_lock lock(reshardings().guard);
  reshardings().all.push_back(this);
  return {};
}

Resharding::~Resharding() {
  {
    const std::scoped_lock lock(reshardings().guard);
    std::erase(reshardings().all, this);
  }
  if (is_shared()) communicator_->progress.retire(*communicator_);
}

// Memory that the processor must not touch is copied to `memory` and back.
Staging Resharding::lay_out_sides(Request& request, CallMemory& memory, const void* source, void* destination) const {
  Staging staging;
  staging.buffers.base = {static_cast<std::byte*>(const_cast<void*>(source)), static_cast<std::byte*>(destination),
                          scratch_};
  const auto describe = [&](Region& region, std::byte* address, const reshard::Box& box) {
    const auto bytes = static_cast<std::size_t>(box.elements()) * problem_.task.element_bytes;
    region = {.address = address, .count = bytes, .type = &bytes_layout, .bytes = bytes, .direct = true};
    if (bytes > 0) region.device = device_under(address, *region.type);
  };
  describe(request.input, staging.buffers.base[0], source_box_);
  describe(request.output, staging.buffers.base[1], destination_box_);
  const bool staged = request.input.staged() || request.output.staged();
  return staged ? lay_out(request, plan_.prepared->schedule, memory) : staging;
}

// One rank has both sides: there is nobody to connect with, so no team, and nobody to wait for. Its copies run in an
// engine of the plan's own.
int Resharding::run_alone(const void* source, void* destination) {
  Request request;
  Execution execution{.schedule = &plan_.prepared->schedule,
                      .staging = lay_out_sides(request, device_memory_, source, destination)};
  if (!pack(request, execution)) return execution.error;
  static_cast<void>(alone_.run(*execution.schedule, execution.staging.buffers, nullptr, nullptr));
  return finish(request, execution);
}

// The other ranks are told.
int Resharding::fail(const Status& cause, int error) {
  communicator_->error = error;
  communicator_->road = Road::broken;
  communicator_->team->give_up(cause);
  return error;
}

int Resharding::execute(const void* source, void* destination) {
  if (communicator_ == nullptr) return 0;
  const PreparedCall& prepared = *plan_.prepared;
  note_call({.plan = prepared.plan, .channels = prepared.channels});
  if (!is_shared()) return run_alone(source, destination);
  communicator_->progress.drain(*communicator_);
  if (is_broken(*communicator_)) return communicator_->error;
  Team& team = *communicator_->team;
  const std::uint64_t begin_ns = team.trace != nullptr ? monotonic_ns() : 0;
  Request request;
  Execution execution{.schedule = &prepared.schedule,
                      .staging = lay_out_sides(request, device_memory_, source, destination)};
  if (!pack(request, execution)) return fail(pack_error(execution.error), execution.error);
  if (const Status status = run(team, request, execution); !status.ok()) {
    const Status reason = team.reason_of(status);
    return fail(reason, caller().code_of(reason));
  }
  if (const int error = finish(request, execution); error != 0) return error;
  if (begin_ns != 0) team.trace->add({begin_ns, monotonic_ns(), prepared.payload, prepared.plan, Collective::reshard});
  return 0;
}

void Resharding::prepare(Operation& operation, const void* source, void* destination) {
  operation.prepared = plan_.prepared;
  operation.execution.staging = lay_out_sides(operation.request, operation.memory, source, destination);
  operation.laid_out = true;
  operation.needs_host = plan_.calls_host;
  if (communicator_->team->trace != nullptr) operation.begin_ns = monotonic_ns();
  note_call({.plan = operation.prepared->plan, .channels = operation.prepared->channels});
}

void finish_reshardings() {
  std::vector<Resharding*> all;
  {
    const std::scoped_lock lock(reshardings().guard);
    all = reshardings().all;
  }
  for (Resharding* one : all) delete one;
}

}  // namespace plait::runtime

#include "runtime/enforcer/enforced_plans.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/intern.h"
#include "plan/motif/parts.h"
#include "plan/step/channel_lines.h"
#include "plan/step/step_options.h"

namespace plait::runtime {
namespace {

// More shapes of the schedule's calls than any step has.
constexpr std::size_t most_bound = 1024;

bool has_lists(const Request& request) { return request.displacements != nullptr || request.call.counts != nullptr; }

std::uint64_t bits_of(const std::vector<int>& pieces) {
  std::uint64_t bits = 0;
  for (const int piece : pieces) bits |= std::uint64_t{1} << piece;
  return bits;
}

}  // namespace

Result<std::unique_ptr<EnforcedPlans>> EnforcedPlans::make(Planner& planner, int rank,
                                                           const plan::step::StepSchedule& schedule) {
  std::unique_ptr<EnforcedPlans> plans(new EnforcedPlans(planner, rank));
  plans->operations_ = schedule.operations;
  for (std::size_t number = 0; number < schedule.operations.size(); ++number) {
    const plan::step::ScheduledOperation& operation = schedule.operations[number];
    const Call call{.collective = operation.collective, .count = operation.bytes, .element_bytes = 1};
    auto made = std::make_unique<Rewritten>();
    const Result<After> after = plans->rewrite(static_cast<int>(number), call, *made);
    if (!after.ok())
      return Status(after.status().code(),
                    "operation \"" + operation.name + "\", " + operation.plan + ": " + after.status().message());
    plans->after_.push_back(*after);
    plans->rewritten_.push_back(std::move(made));
  }
  if (Status ordered = plan::step::check_order(schedule, plans->after_); !ordered.ok()) return ordered;
  return plans;
}

Result<EnforcedPlans::After> EnforcedPlans::leave_whole(const Call& call, Rewritten& made) const {
  const Choice choice = planner_.choose(call);
  if (choice.plan == nullptr) return Status(Code::unsupported, "it is the host's: " + std::string(choice.reason));
  made.pieces = 1;
  made.whole = true;
  made.semantics = choice.plan->semantics;
  made.schedule = choice.plan->schedule;
  return After(1);
}

Result<EnforcedPlans::After> EnforcedPlans::rewrite(int operation, const Call& call, Rewritten& made) const {
  const plan::step::ScheduledOperation& scheduled = operations_[static_cast<std::size_t>(operation)];
  made.operation = operation;
  made.root = call.root;
  made.commutative = call.commutative;
  if (scheduled.plan == plan::step::default_plan && scheduled.pieces == 1) return leave_whole(call, made);
  Result<plan::motif::PartedPlan> parted = planner_.in_parts(call, scheduled.plan);
  if (!parted.ok()) return parted.status();
  if (parted->parts != scheduled.pieces)
    return Status(Code::invalid,
                  "expected " + std::to_string(parted->parts) + " pieces, not " + std::to_string(scheduled.pieces));
  made.pieces = parted->parts;
  made.semantics = std::move(parted->plan.semantics);
  made.schedule = std::move(parted->plan.schedules[static_cast<std::size_t>(rank_)]);
  After after = std::move(parted->after);
  after.pop_back();
  return after;
}

// What waits for what was looked at for another root: where it differs, nobody knows whether the order can be kept.
const EnforcedPlans::Rewritten& EnforcedPlans::rewritten(int operation, const Call& call) {
  const int root = rooted(call.collective) ? call.root : 0;
  for (const auto& known : rewritten_)
    if (known->operation == operation && known->root == root && known->commutative == call.commutative) return *known;
  auto made = std::make_unique<Rewritten>();
  const Result<After> after = rewrite(operation, call, *made);
  made->root = root;
  if (!after.ok() || *after != after_[static_cast<std::size_t>(operation)]) made->semantics.reset();
  return *rewritten_.emplace_back(std::move(made));
}

std::shared_ptr<const EnforcedCall> EnforcedPlans::bind_to(const Rewritten& rewritten, const Request& request) const {
  Placement placement = dense_placement(request.call);
  placement.in_place = request.sharing != Sharing::none;
  placement.displacements = request.displacements;
  auto call = std::make_shared<EnforcedCall>();
  call->whole = bind(rewritten.schedule, *rewritten.semantics, rank_, placement);
  if (rewritten.whole) call->pieces = {call->whole, BoundSchedule()};
  for (int piece = 0; !rewritten.whole && piece <= rewritten.pieces; ++piece)
    call->pieces.push_back(
        bind(plan::motif::steps_of_part(rewritten.schedule, piece), *rewritten.semantics, rank_, placement));
  const auto operation = static_cast<std::size_t>(rewritten.operation);
  for (const std::vector<int>& before : after_[operation]) call->after.push_back(bits_of(before));
  call->plan = intern(operations_[operation].plan);
  call->channels = intern(names(call->whole.channels_used));
  return call;
}

std::shared_ptr<const EnforcedCall> EnforcedPlans::find(int operation, const Request& request) {
  const Call& call = request.call;
  const int root = rooted(call.collective) ? call.root : 0;
  const bool in_place = request.sharing != Sharing::none;
  for (const Bound& known : bound_)
    if (!has_lists(request) && known.operation == operation && known.count == call.count &&
        known.element_bytes == call.element_bytes && known.root == root && known.in_place == in_place &&
        known.commutative == call.commutative)
      return known.call;
  const Rewritten& plan = rewritten(operation, call);
  if (!plan.semantics.has_value()) return nullptr;
  std::shared_ptr<const EnforcedCall> bound = bind_to(plan, request);
  if (has_lists(request)) return bound;
  if (bound_.size() == most_bound) bound_.clear();
  bound_.push_back({.operation = operation,
                    .root = root,
                    .commutative = call.commutative,
                    .in_place = in_place,
                    .count = call.count,
                    .element_bytes = call.element_bytes,
                    .call = bound});
  return bound;
}

}  // namespace plait::runtime

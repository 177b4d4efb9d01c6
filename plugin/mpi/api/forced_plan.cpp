#include "plugin/mpi/api/forced_plan.h"

#include <array>
#include <cstdint>
#include <exception>
#include <string>

#include "core/attempt.h"
#include "core/log.h"
#include "core/text_hash.h"
#include "plan/choose/plan_file.h"
#include "plugin/layer.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/communicator/communicators.h"
#include "plugin/mpi/communicator/leave_call.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/progress.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/request.h"
#include "runtime/job/job.h"

namespace plait::plugin {
namespace {

std::int64_t fingerprint(const std::string& text) { return static_cast<std::int64_t>(hash_text(text) >> 1); }

struct Verdict {
  int first_refusing = 0;  // the lowest rank that cannot use its plan; the number of ranks: none
  bool same = false;       // all ranks named the same plan
};

// Collective. False when the host failed at it.
bool agree(const MpiCommunicator& communicator, const Status& mine, const std::string& plan, Verdict& verdict) {
  const std::int64_t print = fingerprint(plan);
  const std::array<std::int64_t, 3> own = {mine.ok() ? communicator.ranks : communicator.rank, print, -print};
  std::array<std::int64_t, 3> lowest{};
  if (!reduce_all(*communicator.team->oob, own, lowest, Op::min, "agree on a plan").ok()) return false;
  verdict = {static_cast<int>(lowest[0]), lowest[1] == -lowest[2]};
  return true;
}

int refuse(const std::string& reason, bool prints) {
  if (prints) warn("plait_set_plan: " + reason);
  return MPI_ERR_ARG;
}

int force_on_accelerated(MpiCommunicator& communicator, const char* wanted) {
  Planner& planner = communicator.team->planner;
  std::string plan;
  const Status mine = attempt([&]() -> Status {
    plan = wanted;
    const Result<std::string> text = read_plan(wanted);  // nodes may hold different files of one name
    if (!text.ok()) return text.status();
    plan = *text;
    return planner.check(plan);
  });
  Verdict verdict;
  const bool agreed = agree(communicator, mine, plan, verdict);
  if (agreed && verdict.same && verdict.first_refusing == communicator.ranks) {
    try {
      planner.force(plan);
      communicator.sample = {};
      communicator.team->schedules.clear();
      communicator.team->trials.clear();
    } catch (const std::exception& exception) {  // the others have it
      return leave_call(communicator.handle, &communicator, exception);
    }
  }
  const MPI_Comm comm = communicator.handle;
  if (!agreed) return raise_error(comm, Status(Code::peer_failed, "the ranks could not agree on a plan"));
  if (verdict.first_refusing < communicator.ranks)
    return refuse(mine.message(), communicator.rank == verdict.first_refusing);
  return verdict.same ? MPI_SUCCESS : refuse("the ranks name different plans", communicator.rank == 0);
}

}  // namespace

int force_plan(MPI_Comm comm, const char* plan) {
  if (phase() == Phase::before && host().allreduce != nullptr) start_late();
  MpiCommunicator* communicator = phase() == Phase::open ? find_communicator(comm) : nullptr;
  if (communicator == nullptr) {
    if (*plan == '\0') return MPI_SUCCESS;
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return refuse("Plait does not run in this job", rank == 0);
  }
  communicator->progress.drain(*communicator);
  const bool short_only = communicator->road == Road::accelerated && communicator->team->short_calls_only;
  if (communicator->road == Road::waiting || short_only) set_up_now(*communicator, TeamExtent::all_calls);
  if (communicator->road == Road::broken) return raise_error(comm, communicator->error);
  if (communicator->road == Road::accelerated) return force_on_accelerated(*communicator, plan);
  if (*plan == '\0') return MPI_SUCCESS;
  return refuse(std::string("the host MPI has this communicator's collectives: ") + communicator->host_reason,
                communicator->rank == 0);
}

}  // namespace plait::plugin

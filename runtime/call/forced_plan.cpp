#include "runtime/call/forced_plan.h"

#include <array>
#include <exception>
#include <string>

#include "core/attempt.h"
#include "core/log.h"
#include "core/text_hash.h"
#include "plan/choose/plan_file.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/decide.h"
#include "runtime/oob/verdict.h"
#include "runtime/progress/progress.h"

namespace plait::runtime {
namespace {

Answer refuse(const std::string& reason, bool prints) {
  if (prints) warn("plait_set_plan: " + reason);
  return {.what = Answer::What::refused};
}

Status read_and_check(const Planner& planner, const char* wanted, std::string& plan) {
  plan = wanted;
  const Result<std::string> text = read_plan(wanted);  // nodes may hold different files of one name
  if (!text.ok()) return text.status();
  plan = *text;
  return planner.check(plan);
}

// False where memory is short.
bool force(Communicator& communicator, const std::string& plan) {
  try {
    Team& team = *communicator.team;
    team.planner.force(plan);
    communicator.sample = {};
    team.schedules.clear();
    team.trials.clear();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Answer force_on_accelerated(Communicator& communicator, const char* wanted) {
  std::string plan;
  const Status mine = attempt([&] { return read_and_check(communicator.team->planner, wanted, plan); });
  const std::array prints = {hash_text(plan)};
  Verdict verdict;
  if (!compare(*communicator.team->oob, mine.ok(), prints, "agree on a plan", verdict).ok())
    return Answer::failure(Status(Code::peer_failed, "the ranks could not agree on a plan"));
  const bool speaks = communicator.rank == verdict.speaker();
  if (verdict.some_refuse()) return refuse(mine.message(), speaks);
  if (!verdict.all_same()) return refuse("the ranks name different plans", speaks);
  if (!force(communicator, plan)) return {.what = Answer::What::left};
  return {};
}

}  // namespace

Answer force_plan(Communicator& communicator, const char* plan) {
  communicator.progress.drain(communicator);
  const bool short_only = is_set_up(communicator) && communicator.team->short_calls_only;
  if (waits_for_set_up(communicator) || short_only) set_up_now(communicator, TeamExtent::all_calls);
  if (is_broken(communicator)) return Answer::failure(communicator.error);
  if (is_set_up(communicator)) return force_on_accelerated(communicator, plan);
  if (*plan == '\0') return {};
  return refuse(name_of_host(job()) + " has this communicator's collectives: " + communicator.host_reason,
                communicator.rank == 0);
}

}  // namespace plait::runtime

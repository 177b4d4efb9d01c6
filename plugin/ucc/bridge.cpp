#include "plugin/ucc/bridge.h"

#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "core/config.h"
#include "plugin/ucc/context.h"
#include "plugin/ucc/operation.h"
#include "plugin/ucc/scores.h"
#include "plugin/ucc/team.h"
#include "runtime/job/job.h"
#include "tl/device/device_memory.h"

namespace plait::plugin {
namespace {

struct Variable {
  std::string name, help, initial;
};

// Never destroyed: UCC may ask until the process ends.
const std::vector<Variable>& variables() {
  static const auto* list = [] {
    auto* made = new std::vector<Variable>;
    for (const Knob& knob : knobs())
      made->push_back({.name = std::string(knob.name.substr(knob.name.find('_') + 1)),
                       .help = std::string(knob.help) + " (" + std::string(knob.type) + "; as " +
                               std::string(knob.name) + " in the environment)",
                       .initial = initial_text(knob)});
    return made;
  }();
  return *list;
}

template <class T, class Make>
T* made_or_null(Make&& make) noexcept {
  try {
    return reinterpret_cast<T*>(make());
  } catch (const std::exception&) {
    return nullptr;
  }
}

UccContext& of(plait_ucc_context* context) { return *reinterpret_cast<UccContext*>(context); }
const UccContext& of(const plait_ucc_context* context) { return *reinterpret_cast<const UccContext*>(context); }
UccTeam& of(plait_ucc_team* team) { return *reinterpret_cast<UccTeam*>(team); }
UccOperation& of(plait_ucc_operation* operation) { return *reinterpret_cast<UccOperation*>(operation); }

std::vector<std::string> settings(const plait_ucc_process& process) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < process.value_count; ++i)
    if (process.values[i] != nullptr) list.push_back(std::string(knobs()[i].name) + "=" + process.values[i]);
  return list;
}

}  // namespace
}  // namespace plait::plugin

using plait::plugin::of;

extern "C" {

void plait_ucc_loaded(void) {
  try {
    plait::tl::start_device_memory();
  } catch (const std::exception&) {  // each call looks for drivers, then
  }
}

size_t plait_ucc_variable_count(void) {
  try {
    return plait::plugin::variables().size();
  } catch (const std::exception&) {
    return 0;
  }
}

plait_ucc_variable plait_ucc_variable_at(size_t index) {
  const plait::plugin::Variable& variable = plait::plugin::variables()[index];
  return {variable.name.c_str(), variable.help.c_str(), variable.initial.c_str()};
}

plait_ucc_context* plait_ucc_begin(const plait_ucc_process* process) {
  return plait::plugin::made_or_null<plait_ucc_context>([&] {
    return new plait::plugin::UccContext({.rank = process->rank,
                                          .ranks = process->ranks,
                                          .concurrent = process->concurrent,
                                          .exchanges = process->exchanges,
                                          .host = process->host},
                                         plait::plugin::settings(*process));
  });
}

size_t plait_ucc_introduction_bytes(void) { return sizeof(plait::plugin::Introduction); }

void plait_ucc_introduce(const plait_ucc_context* context, void* introduction) {
  std::memcpy(introduction, &of(context).introduction(), sizeof(plait::plugin::Introduction));
}

void plait_ucc_agree(plait_ucc_context* context, int ranks, const void* const* introductions) {
  const auto* list = reinterpret_cast<const plait::plugin::Introduction* const*>(introductions);
  try {
    of(context).agree({list, introductions != nullptr ? static_cast<std::size_t>(ranks) : 0});
  } catch (const std::exception&) {  // for want of memory: it takes no calls
  }
}

void plait_ucc_end(plait_ucc_context* context, const ucc_oob_coll_t* oob) {
  if (oob != nullptr) of(context).report(*oob);
  delete &of(context);
}

plait_ucc_team* plait_ucc_make_team(plait_ucc_context* context, const ucc_oob_coll_t* oob, int rank, int ranks) {
  if (!of(context).takes_calls() || plait::plugin::UccTeam::why_not(ranks) != nullptr) return nullptr;
  return plait::plugin::made_or_null<plait_ucc_team>(
      [&] { return new plait::plugin::UccTeam(of(context), *oob, rank, ranks); });
}

ucc_status_t plait_ucc_connect(plait_ucc_team* team) {
  if (!of(team).turn()) return UCC_INPROGRESS;
  return of(team).takes_calls() ? UCC_OK : UCC_ERR_NOT_SUPPORTED;
}

char* plait_ucc_scores(const plait_ucc_team* team, int score) {
  const auto& ours = *reinterpret_cast<const plait::plugin::UccTeam*>(team);
  if (ours.team == nullptr) return nullptr;
  try {
    const plait::Config& config = plait::runtime::job().config;
    const bool measured = config.host_when_faster && config.plan.empty() && plait::runtime::job().table == nullptr;
    const std::string text = plait::plugin::scores_of_host(ours.team->planner, score, measured);
    return text.empty() ? nullptr : strdup(text.c_str());
  } catch (const std::exception&) {  // UCC asks for each call, then
    return nullptr;
  }
}

void plait_ucc_destroy_team(plait_ucc_team* team) { delete &of(team); }

plait_ucc_operation* plait_ucc_make_operation(plait_ucc_team* team) {
  return plait::plugin::made_or_null<plait_ucc_operation>([&] { return new plait::plugin::UccOperation(of(team)); });
}

void plait_ucc_free_operation(plait_ucc_operation* operation) { delete &of(operation); }

ucc_status_t plait_ucc_prepare(plait_ucc_operation* operation, const ucc_coll_args_t* args) {
  return of(operation).prepare(*args);
}

void plait_ucc_post(plait_ucc_operation* operation) { of(operation).post(); }

ucc_status_t plait_ucc_progress(plait_ucc_operation* operation) { return of(operation).turn(); }

bool plait_ucc_clear(plait_ucc_operation* operation) { return of(operation).clear(); }

}  // extern "C"

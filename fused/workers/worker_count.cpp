#include "fused/workers/worker_count.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "core/log.h"
#include "runtime/job/job.h"
#include "runtime/job/own_location.h"
#include "topo/core_order.h"

namespace plait::fused {
namespace {

struct Binding {
  HostId host;
  cpu_set_t processors;
};

Binding own_binding() {
  Binding own{.host = own_rough_location().host, .processors = {}};
  sched_getaffinity(0, sizeof own.processors, &own.processors);
  return own;
}

// Where the threads of a process that has its processors to itself are kept. Nowhere, where the topology is not known.
std::vector<int> places_on(const cpu_set_t& processors) {
  Result<std::vector<int>> order = topo::processors_by_core(processors, {});
  if (order.ok()) return std::move(order.value());
  warn("PLAIT_FUSED_BINDING: " + order.status().message() + "; threads are kept nowhere");
  return {};
}

}  // namespace

double share_of_processors(const cpu_set_t& own, std::span<const cpu_set_t* const> all) {
  double share = 0;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &own)) continue;
    const auto sharing = std::ranges::count_if(all, [&](const cpu_set_t* set) { return CPU_ISSET(processor, set); });
    share += 1.0 / static_cast<double>(std::max<std::ptrdiff_t>(sharing, 1));
  }
  return share;
}

Result<Processors> own_processors(Oob& oob) {
  Binding mine;
  std::vector<Binding> all;
  const Status ready = attempt([&]() -> Status {
    mine = own_binding();
    all.resize(static_cast<std::size_t>(oob.ranks()));
    return {};
  });
  if (Status status = oob.go_on_together(ready); !status.ok()) return status;
  if (Status met = oob.gather_all(&mine, sizeof mine, all.data(), "count their workers"); !met.ok()) return met;
  std::vector<const cpu_set_t*> here;
  for (const Binding& one : all)
    if (one.host == mine.host) here.push_back(&one.processors);
  // A container may have less of the processors' time than all of it.
  const double bound_to = std::max(CPU_COUNT(&mine.processors), 1), usable = own_rough_location().cores_allowed;
  const double share = share_of_processors(mine.processors, here) * std::min(usable / bound_to, 1.0);
  constexpr double nearly = 1e-6;  // sums of fractions
  const int wanted = job().config.fused_workers, own = std::max(static_cast<int>(share + nearly), 1);
  Processors made{.own = wanted > 0 ? wanted : own, .crowded = std::max(wanted, 1) > share + nearly, .places = {}};
  if (job().config.fused_binding && share + nearly > bound_to) made.places = places_on(mine.processors);
  return made;
}

}  // namespace plait::fused

#include "fused/workers/worker_count.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/attempt.h"
#include "core/text_hash.h"
#include "runtime/job/job.h"
#include "runtime/job/own_location.h"

namespace plait::fused {
namespace {

struct Binding {
  HostId host;
  std::uint64_t processors = 0;  // a hash of their numbers
  bool operator==(const Binding&) const = default;
};

Binding own_binding() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  return {.host = own_rough_location().host,
          .processors = hash_text({reinterpret_cast<const char*>(&allowed), sizeof allowed})};
}

}  // namespace

Result<Processors> own_processors(Oob& oob) {
  Binding mine;
  int processors = 1;
  std::vector<Binding> all;
  const Status ready = attempt([&]() -> Status {
    mine = own_binding();
    processors = std::max(own_rough_location().cores_allowed, 1);
    all.resize(static_cast<std::size_t>(oob.ranks()));
    return {};
  });
  if (Status status = oob.go_on_together(ready); !status.ok()) return status;
  if (Status met = oob.gather_all(&mine, sizeof mine, all.data(), "count their workers"); !met.ok()) return met;
  const auto sharing = static_cast<int>(std::ranges::count(all, mine));
  const int wanted = job().config.fused_workers, own = std::max(processors / sharing, 1);
  return Processors{.own = wanted > 0 ? wanted : own, .crowded = std::max(wanted, 1) * sharing > processors};
}

}  // namespace plait::fused

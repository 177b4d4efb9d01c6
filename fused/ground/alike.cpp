#include "fused/ground/alike.h"

#include <string>

#include "core/attempt.h"
#include "fused/ground/plan_options.h"

namespace plait::fused {

Status compare_alike(std::span<const Alike> names, std::span<const std::int64_t> values) {
  const std::size_t count = names.size();
  for (std::size_t at = 0; at < count; ++at)
    for (std::size_t rank = 1; rank * count < values.size(); ++rank) {
      const std::int64_t given = values[rank * count + at], expected = values[at];
      if (given != expected)
        return bad_argument(names[at].argument, std::to_string(given) + ": expected " + std::to_string(expected) +
                                                    ", as rank 0 has it (on rank " + std::to_string(rank) + ")");
    }
  return {};
}

Status agree_on(Oob& all, const std::vector<Alike>& mine) noexcept {
  std::vector<std::int64_t> own, of_all;
  Status status = attempt([&]() -> Status {
    for (const Alike& one : mine) own.push_back(one.value);
    of_all.resize(own.size() * static_cast<std::size_t>(all.ranks()));
    return {};
  });
  if (Status ready = all.go_on_together(status); !ready.ok()) return ready;
  const std::size_t bytes = own.size() * sizeof own.front();
  if (Status met = all.gather_all(own.data(), bytes, of_all.data(), "exchange their shapes"); !met.ok()) return met;
  status = attempt([&] { return compare_alike(mine, of_all); });
  if (Status same = all.go_on_together(status); !same.ok()) return status.ok() ? same : status;
  return {};
}

}  // namespace plait::fused

#include "tuner/measure/bench_measure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/config.h"
#include "plait/plait.h"
#include "tuner/measure/call_comparison.h"

namespace plait::tuner {
namespace {

// Appends those of a comma-separated list that are not there yet.
void add_channels(std::string_view list, std::vector<std::string>& channels) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view channel = list.substr(0, comma);
    if (std::find(channels.begin(), channels.end(), channel) == channels.end()) channels.emplace_back(channel);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

}  // namespace

Status warm_up(MpiSession& session) {
  constexpr double most_barriers = 10000;  // a setting above this one means that Plait is not to be set up
  plait_set_enabled(0);
  const std::array mine = {std::min(most_barriers, 1.0 + load_config_from_process().config.setup_calls)};
  const double barriers = session.maxima(mine)[0];
  plait_set_enabled(1);
  for (double call = 0; call < barriers; ++call) session.barrier();
  const bool reached = *plait_last_plan() != '\0';
  plait_set_enabled(0);
  if (reached) return {};
  return {Code::internal,
          "this program's calls of MPI do not reach Plait: libplait.so must come before the MPI library"};
}

Result<Measurement> measure(MpiSession& session, const CallSpec& spec, const MeasureOptions& options) {
  constexpr int host = 0, plait = 1;
  const std::array<Side, 2> sides = {Side{.accelerated = false}, Side{.accelerated = true}};
  const auto times = compare(session, spec, sides, {.seconds = options.seconds, .nic_bytes = options.nic_bytes});
  if (!times.ok()) return times.status();
  Measurement result{.host_seconds = (*times)[host].seconds,
                     .plait_seconds = (*times)[plait].seconds,
                     .batches = (*times)[host].batches,
                     .on_trial = (*times)[plait].on_trial,
                     .plan = (*times)[plait].plan,
                     .channels = {}};
  auto lists = session.gather_text_at_root((*times)[plait].channels);
  // Ranks that use more channels know their order.
  std::stable_sort(lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& list : lists) add_channels(list, result.channels);
  return result;
}

}  // namespace plait::tuner

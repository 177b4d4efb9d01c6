#include "tuner/bench_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/config.h"
#include "core/units.h"
#include "plait/plait.h"

namespace plait {
namespace {

constexpr double shortest_batch_s = 0.005, longest_batch_s = 0.1;
constexpr double trial_batch_s = 0.002;  // enough to tell how long a call takes
constexpr int fewest_batches = 3, most_batches = 1000;
constexpr int batches_wanted = 10;  // of each side
// A rank that need not wait for the others, such as the root of a broadcast, may run this far ahead of them: what it
// has sent lies in the receivers' memory.
constexpr int most_calls = 100000, most_calls_ahead = 1000;
// Network interfaces may lend some hundred KiB after an idle time (a token bucket): twice that is sent before the clock
// starts.
constexpr double settling_bytes = 512 * 1024;
// Small calls never use up what is lent, because they do not fill the network: no use in waiting for it.
constexpr int most_untimed_beyond_a_batch = 8;

enum class Side { host, plait };

struct BatchSize {
  int untimed = 1, timed = 1;  // calls
};

struct BatchTime {
  double per_call_s, total_s;  // of the slowest rank; the total includes the untimed calls
};

struct Wrong {
  std::size_t rank = 0;
  std::uint64_t offset = std::numeric_limits<std::uint64_t>::max();
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Appends those of a comma-separated list that are not there yet.
void add_channels(std::string_view list, std::vector<std::string>& channels) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view channel = list.substr(0, comma);
    if (std::find(channels.begin(), channels.end(), channel) == channels.end()) channels.emplace_back(channel);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

class Comparison {
 public:
  Comparison(MpiSession& session, const CallSpec& spec, CollectiveCall& call, const MeasureOptions& options)
      : session_(session), spec_(spec), call_(call), options_(options) {}

  Result<Measurement> run() {
    const auto host = calibrate(Side::host);
    if (!host.ok()) return host.status();
    const auto plait = calibrate(Side::plait);
    if (!plait.ok()) return plait.status();
    std::vector<double> host_times, plait_times;
    double spent_s = 0;
    for (int pair = 0; pair < fewest_batches || (spent_s < options_.seconds && pair < most_batches); ++pair) {
      const auto of_host = batch(Side::host, *host);
      if (!of_host.ok()) return of_host.status();
      const auto of_plait = batch(Side::plait, *plait);
      if (!of_plait.ok()) return of_plait.status();
      host_times.push_back(of_host->per_call_s);
      plait_times.push_back(of_plait->per_call_s);
      spent_s += of_host->total_s + of_plait->total_s;  // agreed, so that all ranks stop together
    }
    return summary(host_times, plait_times);
  }

 private:
  // Runs calls back to back. The first of them are not timed: they fill pipelines, warm caches and use up what an idle
  // network lends. Ranks start their clocks without waiting for each other, in the middle of the stream.
  Result<BatchTime> batch(Side side, BatchSize size) {
    call_.prepare(++key_);
    session_.barrier();
    plait_set_enabled(side == Side::plait ? 1 : 0);
    const double start_s = session_.wall_seconds();
    for (int call = 0; call < size.untimed; ++call) call_.run();
    const double begin_s = session_.wall_seconds();
    for (int call = 0; call < size.timed; ++call) call_.run();
    const double end_s = session_.wall_seconds();
    if (side == Side::plait) note_last_call();
    plait_set_enabled(0);

    const auto wrong = call_.first_wrong_byte();
    const std::array mine = {end_s - begin_s, end_s - start_s, wrong ? 1.0 : 0.0};
    const auto slowest = session_.maxima(mine);
    if (slowest[2] > 0) return wrong_result(side, wrong);
    return BatchTime{.per_call_s = slowest[0] / size.timed, .total_s = slowest[1]};
  }

  void note_last_call() {
    plan_ = plait_last_plan();
    channels_ = plait_last_channels();
  }

  Status wrong_result(Side side, std::optional<std::size_t> offset) {
    const std::uint64_t mine = offset.value_or(Wrong{}.offset);
    const auto bytes = session_.gather_bytes(std::as_bytes(std::span(&mine, 1)));
    Wrong first;
    for (std::size_t rank = 0; rank * sizeof mine < bytes.size(); ++rank) {
      std::uint64_t found = 0;
      std::memcpy(&found, bytes.data() + rank * sizeof found, sizeof found);
      if (first.offset == Wrong{}.offset && found != first.offset) first = {rank, found};
    }
    const std::string by = side == Side::host ? "the host" : "Plait (plan " + plan_ + ")";
    return {Code::peer_failed, "wrong result of " + std::string(name(spec_.collective)) + " of " +
                                   format_bytes(spec_.bytes) + " by " + by + ": on rank " + std::to_string(first.rank) +
                                   " from byte " + std::to_string(first.offset) + " on"};
  }

  // The number of calls for a batch of the wanted length. The first call of all, in which Plait may plan, is not timed.
  Result<BatchSize> calibrate(Side side) {
    const bool runs_ahead = rooted(spec_.collective);
    const int most = runs_ahead ? most_calls_ahead : most_calls;
    const double wanted_s = std::clamp(options_.seconds / (2 * batches_wanted), shortest_batch_s, longest_batch_s);
    for (int calls = 1;; calls = std::min(calls * 4, most)) {
      const auto time = batch(side, {.untimed = 1, .timed = calls});
      if (!time.ok()) return time.status();
      if (time->per_call_s * calls < trial_batch_s && calls < most) continue;
      const double fitting = std::clamp(wanted_s / time->per_call_s, 1.0, static_cast<double>(most));
      const int timed = static_cast<int>(std::lround(fitting));
      return BatchSize{.untimed = untimed_calls(timed), .timed = timed};
    }
  }

  int untimed_calls(int timed) const {
    const int quarter = std::max(1, timed / 4);
    if (options_.nic_bytes <= 0) return quarter;
    const double settling = std::ceil(settling_bytes / options_.nic_bytes);
    const int most = std::max(timed, most_untimed_beyond_a_batch);
    return static_cast<int>(std::clamp(settling, static_cast<double>(quarter), static_cast<double>(most)));
  }

  Measurement summary(const std::vector<double>& host_times, const std::vector<double>& plait_times) {
    Measurement result;
    result.host_seconds = median(host_times);
    result.plait_seconds = median(plait_times);
    result.batches = static_cast<int>(host_times.size());
    result.plan = plan_;
    auto lists = session_.gather_text_at_root(channels_);
    // Ranks that use more channels know their order.
    std::stable_sort(lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const std::string& list : lists) add_channels(list, result.channels);
    return result;
  }

  MpiSession& session_;
  const CallSpec spec_;
  CollectiveCall& call_;
  const MeasureOptions options_;
  std::uint64_t key_ = 0;
  std::string plan_, channels_;  // of this rank's last call with Plait
};

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
  plait_set_enabled(1);  // so that MPI_Alloc_mem gives what a program gets
  auto call = CollectiveCall::make(spec, session.rank(), session.ranks());
  plait_set_enabled(0);
  const std::array failed = {call.ok() ? 0.0 : 1.0};
  if (session.maxima(failed)[0] > 0) {
    return {Code::unavailable,
            "no memory on some rank for " + std::string(name(spec.collective)) + " of " + format_bytes(spec.bytes)};
  }
  return Comparison(session, spec, *call, options).run();
}

}  // namespace plait

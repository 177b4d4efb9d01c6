#include "tuner/measure/tune_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/units.h"
#include "plait/plait.h"
#include "tuner/measure/bench_measure.h"
#include "tuner/measure/call_comparison.h"
#include "tuner/measure/collective_calls.h"
#include "tuner/measure/group_calls.h"
#include "tuner/measure/measure_agenda.h"

namespace plait::tuner {
namespace {

// A plan that takes so many times as long as another at the first look cannot become the best.
constexpr double hopeless = 3;
// Calls of each side that are the least that can be measured: to look at it, then three batches, some of them untimed.
constexpr double fewest_calls = 10;
// Of a size's time: the rest goes into filling and checking buffers, and into taking plans.
constexpr double batches_share = 0.7;
// A size that takes less than this share of the whole is always measured.
constexpr double small_share = 0.005;
// Shares of the time left that one size may take: large sizes take longer than small ones.
constexpr double most_shares = 4;
// Where a rank has a message for, or of, every rank: of all of them together.
constexpr std::size_t largest_buffer_bytes = std::size_t{64} << 20;

bool holds_one_vector(Collective collective) {
  return collective == Collective::bcast || collective == Collective::reduce || collective == Collective::allreduce;
}

class TuneMeasurer {
 public:
  TuneMeasurer(MpiSession& session, const JobShape& job, std::span<const AgendaItem> agenda,
               const TuneMeasureOptions& options)
      : session_(session), job_(job), agenda_(agenda), options_(options), begin_s_(session.wall_seconds()) {}

  Result<TuneMeasurement> run() {
    if (!plait_takes_plans()) return Status(Code::unavailable, "Plait cannot be used in this job");
    for (std::size_t index = 0; index < agenda_.size(); ++index) {
      const AgendaItem& item = agenda_[index];
      if (session_.rank() == 0) options_.progress(label(item), static_cast<double>(index) / agenda_.size());
      const double left_s = agreed_seconds_left();
      const double share_s = left_s / static_cast<double>(agenda_.size() - index);
      if (!worth_it(item, std::max(std::min(most_shares * share_s, left_s), small_share * options_.seconds))) {
        result_.left_out.push_back(item);
        continue;
      }
      Result<MeasuredSize> measured = measure_item(item, share_s);
      if (!measured.ok()) return measured.status();
      result_.sizes.push_back(std::move(*measured));
    }
    return std::move(result_);
  }

 private:
  static std::string label(const AgendaItem& item) {
    return std::string(name(item.collective)) + (item.bytes > 0 ? " " + format_bytes(item.bytes) : "");
  }

  // Any plan of the first call: where Plait is off, or its ranks cannot connect, none can be taken.
  bool plait_takes_plans() {
    plait_set_enabled(1);
    const auto takes = [](const std::string& plan) { return take_plan_of_job(plan).ok(); };
    const std::vector<std::string>& plans = agenda_.front().plans;
    const bool taken = std::any_of(plans.begin(), plans.end(), takes);
    const bool released = taken && takes("");
    plait_set_enabled(0);
    return released;
  }

  double agreed_seconds_left() {
    const std::array spent = {session_.wall_seconds() - begin_s_};
    return std::max(options_.seconds - session_.maxima(spent)[0], 0.0);
  }

  // What was measured of this collective at the size before; nullptr: nothing.
  const MeasuredSize* before(const AgendaItem& item) const {
    const bool any = !result_.sizes.empty() && result_.sizes.back().collective == item.collective;
    return any ? &result_.sizes.back() : nullptr;
  }

  // Whether the item can be measured within so many seconds, from what the size before took. Once a size is left out,
  // so are the larger ones.
  bool worth_it(const AgendaItem& item, double most_s) const {
    if (!result_.left_out.empty() && result_.left_out.back().collective == item.collective) return false;
    const std::size_t messages = holds_one_vector(item.collective) ? 1 : static_cast<std::size_t>(job_.ranks());
    if (item.bytes > largest_buffer_bytes / messages) return false;
    const MeasuredSize* known = before(item);
    if (known == nullptr) return true;
    const double best_s = std::min(known->host_seconds, known->best_plan().seconds);
    const double growth = static_cast<double>(item.bytes) / static_cast<double>(known->bytes);
    const double sides = static_cast<double>(item.plans.size() + 1);
    return fewest_calls * sides * best_s * growth <= most_s;
  }

  // The host, the model's plans, and what was the best at the size before.
  static std::vector<std::string> plans_of(const AgendaItem& item, const MeasuredSize* known) {
    std::vector<std::string> plans = item.plans;
    if (known == nullptr || known->plans.empty()) return plans;
    const PlanTime& best = known->best_plan();
    if (std::isfinite(best.seconds) && std::find(plans.begin(), plans.end(), best.plan) == plans.end())
      plans.push_back(best.plan);
    return plans;
  }

  Result<CallSpec> spec_of(const AgendaItem& item) const {
    // Of reduce_scatter_block a table counts a rank's part, a call its whole vector.
    const bool parts = item.collective == Collective::reduce_scatter_block;
    const std::size_t wanted = item.bytes * (parts ? static_cast<std::size_t>(job_.ranks()) : 1);
    const auto bytes = measurable_bytes(item.collective, wanted, job_.ranks());
    if (!bytes.ok()) return bytes.status();
    return CallSpec{.collective = item.collective, .bytes = *bytes};
  }

  Result<MeasuredSize> measure_item(const AgendaItem& item, double seconds) {
    const auto spec = spec_of(item);
    if (!spec.ok()) return spec.status();
    const std::vector<std::string> plans = plans_of(item, before(item));
    std::vector<Side> sides = {Side{.accelerated = false}};
    for (const std::string& plan : plans) sides.push_back({.accelerated = true, .plan = plan});
    sides.push_back({.accelerated = true});
    const double moved = nic_bytes(job_, spec->collective, spec->bytes, spec->root);
    const auto times =
        compare(session_, *spec, sides,
                {.seconds = batches_share * seconds, .nic_bytes = moved, .hopeless = hopeless, .paired = true});
    if (!times.ok()) return times.status();
    MeasuredSize measured{item.collective, item.bytes, {}, item.plans.size(), times->front().seconds};
    for (std::size_t plan = 0; plan < plans.size(); ++plan)
      measured.plans.push_back({plans[plan], (*times)[plan + 1].seconds});
    add_own_choice(times->back(), measured);
    return measured;
  }

  // What the job takes without a table: it knows its network's rate, where the machine's model may not.
  static void add_own_choice(const SideTime& own, MeasuredSize& measured) {
    if (own.plan == host_plan || own.plan.empty()) return;
    const std::string plan = with_chunks(own.plan, measured.collective);
    const auto same = [&](const PlanTime& other) { return other.plan == plan; };
    if (std::none_of(measured.plans.begin(), measured.plans.end(), same)) measured.plans.push_back({plan, own.seconds});
  }

  MpiSession& session_;
  const JobShape& job_;
  std::span<const AgendaItem> agenda_;
  const TuneMeasureOptions& options_;
  const double begin_s_;
  TuneMeasurement result_;
};

}  // namespace

Result<TuneMeasurement> measure_agenda(MpiSession& session, const JobShape& job, std::span<const AgendaItem> agenda,
                                       const TuneMeasureOptions& options) {
  return TuneMeasurer(session, job, agenda, options).run();
}

}  // namespace plait::tuner

#include "plan/overlap/contention.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plait::plan {
namespace {

ReductionCost between(const ReductionCost& low, const ReductionCost& high, double bytes) {
  const double span = static_cast<double>(high.bytes) - static_cast<double>(low.bytes);
  const double part = (bytes - static_cast<double>(low.bytes)) / span;
  return {.bytes = static_cast<std::size_t>(bytes),
          .startup = std::max(0., low.startup + part * (high.startup - low.startup)),
          .moved = std::max(0., low.moved + part * (high.moved - low.moved)),
          .plan = part < 0.5 ? low.plan : high.plan};
}

// Beyond the list the start-up stays, and the moved bytes keep their proportion.
ReductionCost beyond(const ReductionCost& last, double bytes) {
  return {.bytes = static_cast<std::size_t>(bytes),
          .startup = last.startup,
          .moved = last.moved * bytes / static_cast<double>(last.bytes),
          .plan = last.plan};
}

Result<ContentionRow> row_of(const Contention& contention, const CommunicationShare& share) {
  const auto same = [&](const ContentionRow& row) { return row.share == share; };
  const auto found = std::find_if(contention.table.begin(), contention.table.end(), same);
  if (found != contention.table.end()) return *found;
  if (!contention.table.empty())
    return {Code::invalid, "the table of the contention file has no row for the share " + share_text(share)};
  if (!contention.fit) return {Code::invalid, "the contention file has neither a table nor fitted curves"};
  const ContentionFit& fit = *contention.fit;
  return ContentionRow{share, fit.computation.at(share), fit.overlapped.at(share), fit.alone.at(share)};
}

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

double RateCurve::at(const CommunicationShare& share) const {
  return g1 - g2 * std::exp(-g3 * std::pow(resources(share), g4));
}

ReductionCosts interpolated(std::vector<ReductionCost> reductions) {
  return [list = std::move(reductions)](double bytes) {
    if (bytes <= static_cast<double>(list.front().bytes)) return beyond(list.front(), bytes);
    if (bytes >= static_cast<double>(list.back().bytes)) return beyond(list.back(), bytes);
    const auto high = std::upper_bound(list.begin(), list.end(), bytes, [](double size, const ReductionCost& entry) {
      return size < static_cast<double>(entry.bytes);
    });
    return between(*(high - 1), *high, bytes);
  };
}

ReductionCosts ring_costs(int processes, double latency) {
  return [processes, latency](double bytes) {
    const double hops = 2. * (processes - 1);
    return ReductionCost{.bytes = static_cast<std::size_t>(bytes),
                         .startup = hops * latency,
                         .moved = hops / processes * bytes,
                         .plan = "ring"};
  };
}

std::vector<CommunicationShare> known_shares(const Contention& contention) {
  std::vector<CommunicationShare> shares;
  const auto add = [&](const CommunicationShare& share) {
    if (std::find(shares.begin(), shares.end(), share) == shares.end()) shares.push_back(share);
  };
  for (const ContentionRow& row : contention.table) add(row.share);
  if (contention.table.empty())
    for (const ContentionSample& sample : contention.samples) add(sample.share);
  std::stable_sort(shares.begin(), shares.end(), [](const CommunicationShare& one, const CommunicationShare& other) {
    return resources(one) < resources(other);
  });
  return shares;
}

double agreement_seconds(const Contention& contention, const ReductionCosts& costs) {
  constexpr double two_numbers = 16;
  const double startup = costs(two_numbers).startup;
  if (contention.agreement <= 0 || contention.reductions.empty()) return startup;
  const double there = interpolated(contention.reductions)(two_numbers).startup;
  return there > 0 ? contention.agreement * startup / there : contention.agreement;
}

Result<OverlapModel> overlap_model(const Contention& contention, const std::vector<CommunicationShare>& shares,
                                   const ReductionCosts& costs, double agreement) {
  OverlapModel model{.shares = shares, .slowdown = {}, .overlapped = {}, .alone = {}, .agreement = agreement};
  std::vector<double> overlapped, alone;
  for (const CommunicationShare& share : shares) {
    const Result<ContentionRow> row = row_of(contention, share);
    if (!row.ok()) return row.status();
    if (!is_positive(row->slowdown) || !is_positive(row->overlapped_rate) || !is_positive(row->alone_rate))
      return {Code::invalid, "the contention file's curves have no positive value for the share " + share_text(share)};
    model.slowdown.push_back(row->slowdown);
    overlapped.push_back(row->overlapped_rate);
    alone.push_back(row->alone_rate);
  }
  const auto seconds = [costs](double bytes, double rate) {
    const ReductionCost cost = costs(bytes);
    // Something positive even where one process has nothing to move: stages are divided by it.
    return std::max(cost.startup + cost.moved / rate, 1e-12);
  };
  model.overlapped = [=](double bytes, std::size_t share) { return seconds(bytes, overlapped[share]); };
  model.alone = [=](double bytes, std::size_t share) { return seconds(bytes, alone[share]); };
  return model;
}

}  // namespace plait::plan

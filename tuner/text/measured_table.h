// From measured times to the ranges of a tuning table, and how good the model's predictions were. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "plan/choose/table.h"
#include "plan/model/collective.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Bytes as a table counts them.
struct SizeSpan {
  std::size_t least = 1, most = 1;
};

// One collective at one size.
struct AgendaItem {
  Collective collective = Collective::barrier;
  std::size_t bytes = 0;           // as a table counts them; 0 for barrier
  std::vector<std::string> plans;  // the model's best, the best first; each once
};

// Times that are so close are equal, for all that a measurement of a second or less can tell.
inline constexpr double measured_tolerance = 0.05;

struct PlanTime {
  std::string plan;
  double seconds = std::numeric_limits<double>::infinity();  // infinite: it cannot run this call
};

// One collective at one size.
struct MeasuredSize {
  Collective collective = Collective::barrier;
  std::size_t bytes = 0;        // as a table counts them; 0 for barrier
  std::vector<PlanTime> plans;  // the model's, its best first; then what was good at the size before, and what the job
                                // takes by itself
  std::size_t of_model = 0;     // how many of them are the model's
  double host_seconds = std::numeric_limits<double>::infinity();

  const PlanTime& best_plan() const;   // precondition: there are plans
  const PlanTime& model_best() const;  // of the model's plans alone
};

struct TuneMeasurement {
  std::vector<MeasuredSize> sizes;
  std::vector<AgendaItem> left_out;  // too slow for the time that there was, or too large
};

// One collective's ranges. `sizes`: its own, ascending; with `span.least` of 8 or less, the smallest stands for all
// smaller ones. Each range's plan, or the host, is within 5 % of the best that was measured at each size of it; a
// boundary lies at the geometric mean of the sizes around it; of all such divisions it has the fewest ranges.
std::vector<TunedRange> measured_ranges(std::span<const MeasuredSize> sizes, SizeSpan span);

// Counts of sizes.
struct ModelScore {
  int sizes = 0;
  int first = 0, first_nearly = 0;  // the model's first choice was the best of its plans; or within 5 % of it
  int three = 0, three_nearly = 0;  // one of its first three
  int host = 0;                     // the host was faster than any plan
  double mean_loss = 1;             // the first choice's time over the best plan's: geometric mean
  double usual_worst_loss = 1;      // at 19 of 20 sizes no more than this (95th percentile)
  double worst_loss = 1;
  const MeasuredSize* worst = nullptr;  // one of `sizes`
};
ModelScore score_model(std::span<const MeasuredSize> sizes);

}  // namespace plait::tuner

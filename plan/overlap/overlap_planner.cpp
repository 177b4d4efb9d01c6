#include "plan/overlap/overlap_planner.h"

#include <algorithm>
#include <functional>

#include "plan/overlap/baselines.h"
#include "plan/overlap/contention.h"

namespace plait::plan {
namespace {

using Grouping = std::function<OverlapSolution(const CommunicationShare& share)>;

bool quicker(const OverlapSolution& one, const OverlapSolution& other) { return one.time.seconds < other.time.seconds; }

class Comparison {
 public:
  Comparison(const BackwardPass& pass, const OverlapModel& model, const GroupSearchOptions& options, double startup)
      : pass_(pass), model_(model), options_(options), startup_(startup) {}

  OverlapComparison make(const std::vector<OverlapGroup>& given) const {
    OverlapComparison result;
    result.guarantee = 1 + static_cast<double>(pass_.bytes.size() - 1) / options_.chunks;
    result.libra = searched("LIBRA", choose_groups(pass_, model_, options_));
    result.libra.share = "chosen a group";
    result.variants.push_back(
        shares_alone("LIBRA-M", best_of([&](const auto& share) { return merged(share); }).groups));
    add(result.variants, [&](const CommunicationShare& share) { return groups_alone(share); });
    result.keeps_given = !given.empty();
    if (result.keeps_given) result.variants.push_back(shares_alone("given groups", given));
    add(result.baselines, [&](const CommunicationShare& share) {
      return OverlapSolution{"SE", {}, one_group(pass_, share), reduction_at_end(pass_, model_, share)};
    });
    add(result.baselines,
        [&](const CommunicationShare& share) { return scheduled("WFBP", one_group_a_call(pass_, share)); });
    add(result.baselines, [&](const CommunicationShare& share) {
      // As many of them as the real network would have.
      return scheduled("25 MB buckets", buckets(pass_, usual_bucket_bytes * pass_.bytes_factor, share));
    });
    add(result.baselines, [&](const CommunicationShare& share) { return merged(share); });
    return result;
  }

 private:
  OverlapSolution scheduled(const std::string& method, std::vector<OverlapGroup> groups) const {
    OverlapSolution solution{method, {}, std::move(groups), {}};
    solution.time = backward_time(pass_, solution.groups, model_);
    return solution;
  }

  OverlapSolution searched(const std::string& method, const GroupChoice& choice) const {
    OverlapSolution solution = scheduled(method, choice.groups);
    solution.chunked_seconds = choice.chunked_seconds;
    return solution;
  }

  OverlapSolution merged(const CommunicationShare& share) const {
    return scheduled("MG-WFBP", merged_gradients(pass_, model_, share, startup_));
  }

  // Section IV-A.
  OverlapSolution shares_alone(const std::string& method, const std::vector<OverlapGroup>& groups) const {
    GroupChoice choice = choose_shares(fused(pass_, groups), model_, options_.chunks);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      choice.groups[i].first_call = groups[i].first_call;
      choice.groups[i].calls = groups[i].calls;
    }
    OverlapSolution solution = searched(method, choice);
    solution.share = "chosen a group";
    return solution;
  }

  OverlapSolution groups_alone(const CommunicationShare& share) const {
    return searched("LIBRA, one share", choose_groups(pass_, with_share(model_, share_index(model_, share)), options_));
  }

  OverlapSolution best_of(const Grouping& grouping) const {
    OverlapSolution best = grouping(model_.shares.front());
    for (std::size_t r = 1; r < model_.shares.size(); ++r) best = std::min(best, grouping(model_.shares[r]), quicker);
    best.share = "best, " + share_text(best.groups.front().share);
    return best;
  }

  void add(std::vector<OverlapSolution>& to, const Grouping& grouping) const {
    to.push_back(best_of(grouping));
    const CommunicationShare& share = model_.shares[library_share(model_)];
    to.push_back(grouping(share));
    to.back().share = "a library's, " + share_text(share);
  }

  const BackwardPass& pass_;
  const OverlapModel& model_;
  const GroupSearchOptions options_;
  const double startup_;
};

}  // namespace

const OverlapSolution& OverlapComparison::best() const {
  if (keeps_given) return variants.back();
  const OverlapSolution* best = &libra;
  for (const auto* list : {&variants, &baselines})
    for (const OverlapSolution& solution : *list)
      if (solution.method != "SE" && quicker(solution, *best)) best = &solution;
  return *best;
}

const OverlapSolution& OverlapComparison::best_baseline() const {
  return *std::min_element(baselines.begin(), baselines.end(), quicker);
}

std::size_t library_share(const OverlapModel& model) {
  const auto less = [](const CommunicationShare& one, const CommunicationShare& other) {
    const double r = resources(one), s = resources(other);
    return r != s ? r < s : one.threads > other.threads;
  };
  return static_cast<std::size_t>(std::max_element(model.shares.begin(), model.shares.end(), less) -
                                  model.shares.begin());
}

OverlapComparison compare_overlap(const BackwardPass& pass, const OverlapModel& model,
                                  const GroupSearchOptions& options, double startup,
                                  const std::vector<OverlapGroup>& given) {
  return Comparison(pass, model, options, startup).make(given);
}

OverlapPlan overlap_plan_of(const LayerTable& table, const Fingerprint& fingerprint, const OverlapSolution& solution) {
  return {.model = table.model,
          .fingerprint = fingerprint,
          .calls = overlap_calls(table),
          .groups = solution.groups,
          .backward_seconds = solution.time.seconds,
          .computation_seconds = solution.time.computation,
          .exposed_seconds = solution.time.exposed};
}

}  // namespace plait::plan

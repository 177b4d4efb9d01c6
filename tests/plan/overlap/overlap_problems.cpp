#include "tests/plan/overlap/overlap_problems.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace plait::plan {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// A stage that begins at chunk `from` and ends at chunk `to`: eq. 18 and 19.
double stage_seconds(const OverlapModel& model, double bytes, bool several, int from, int to, int chunks, double chunk,
                     std::size_t share) {
  const OverlapStage stage = overlap_stage(model, bytes, (to - from) * chunk, share, several);
  return to < chunks && stage.communication > 0 ? infinite : stage.seconds();
}

}  // namespace

OverlapProblem random_problem(std::mt19937_64& random, std::size_t calls, std::size_t shares) {
  const auto uniform = [&](double from, double to) { return std::uniform_real_distribution(from, to)(random); };
  OverlapProblem problem;
  double bytes = 0;
  for (std::size_t i = 0; i < calls; ++i) {
    problem.pass.computation.push_back(uniform(0, 1) < 0.1 ? 0 : std::exp(uniform(-3, 1)));
    problem.pass.bytes.push_back(std::floor(std::exp(uniform(2, 10))) + 1);
    bytes += problem.pass.bytes.back();
  }
  problem.pass.tail = uniform(0, 1) < 0.5 ? 0 : uniform(0, 1);
  if (problem.pass.total() <= 0) problem.pass.tail = 1;
  const double rate = bytes / problem.pass.total() * std::exp(uniform(-2.3, 2.3));
  const double startup = problem.pass.total() * std::exp(uniform(-7, -1));
  if (uniform(0, 1) < 0.5) problem.model.agreement = startup * uniform(0, 2);
  std::vector<double> alone_rates, overlapped_rates;
  for (std::size_t share = 0; share < shares; ++share) {
    const double speed = uniform(0.2, 1), slowdown = 1 + uniform(0, 0.6);
    problem.model.shares.push_back({static_cast<int>(share) + 1, 1});
    problem.model.slowdown.push_back(slowdown);
    alone_rates.push_back(rate * speed);
    // The sum of both is reached where overlap gains nothing: 1/slowdown of the computation in the same time.
    const double least = 1 - 1 / slowdown;
    overlapped_rates.push_back(rate * speed * uniform(least, 1));
  }
  problem.model.alone = [=](double size, std::size_t share) { return startup + size / alone_rates[share]; };
  problem.model.overlapped = [=](double size, std::size_t share) {
    const double factor = alone_rates[share] / overlapped_rates[share];
    return (startup + size / alone_rates[share]) * factor;
  };
  return problem;
}

double plain_algorithm_1(const OverlapProblem& problem, const GroupSearchOptions& options) {
  const auto& [pass, model] = problem;
  const int K = options.groups, Z = options.chunks, L = static_cast<int>(pass.bytes.size());
  const double w = pass.total() / Z;
  const auto at = [&](int i, int l, int z) { return static_cast<std::size_t>((i * (L + 1) + l) * (Z + 1) + z); };
  std::vector<double> T(at(K, L, Z) + 1, infinite);
  for (int z = 0; z <= Z; ++z) T[at(0, 0, z)] = z * w;
  for (int i = 1; i <= K; ++i) {
    double computed = 0;
    for (int l = 1; l <= L; ++l) {
      computed += pass.computation[static_cast<std::size_t>(l) - 1];
      const int first = first_chunk(computed, w, Z);
      for (int z = 1; z <= Z; ++z) {
        double bytes = 0;
        for (int from = l; from >= 0; --from) {
          if (from < l) bytes += pass.bytes[static_cast<std::size_t>(from)];
          for (int begin = first; begin <= z; ++begin) {
            const double before = T[at(i - 1, from, begin)];
            if (before == infinite) continue;
            for (std::size_t share = 0; share < model.shares.size(); ++share)
              T[at(i, l, z)] =
                  std::min(T[at(i, l, z)], before + stage_seconds(model, bytes, l - from > 1, begin, z, Z, w, share));
          }
        }
      }
    }
  }
  return T[at(K, L, Z)];
}

double best_of_all_schedules(const OverlapProblem& problem, int groups) {
  double best = infinite;
  std::vector<OverlapGroup> chosen;
  const std::size_t calls = problem.pass.bytes.size();
  const std::function<void(std::size_t)> extend = [&](std::size_t first) {
    if (first == calls) {
      best = std::min(best, backward_time(problem.pass, chosen, problem.model).seconds);
      return;
    }
    if (static_cast<int>(chosen.size()) == groups) return;
    for (std::size_t count = 1; first + count <= calls; ++count) {
      for (const CommunicationShare& share : problem.model.shares) {
        chosen.push_back({first, count, share});
        extend(first + count);
        chosen.pop_back();
      }
    }
  };
  extend(0);
  return best;
}

double chunked_time(const OverlapProblem& problem, const std::vector<OverlapGroup>& groups, int chunks) {
  const auto& [pass, model] = problem;
  const BackwardPass tasks = fused(pass, groups);
  const double w = pass.total() / chunks;
  const auto Z = static_cast<std::size_t>(chunks);
  std::vector<double> before(Z + 1);
  for (std::size_t z = 0; z <= Z; ++z) before[z] = static_cast<double>(z) * w;
  double computed = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    computed += tasks.computation[i];
    std::vector<double> after(Z + 1, infinite);
    const std::size_t share = share_index(model, groups[i].share);
    for (int z = 1; z <= chunks; ++z)
      for (int begin = first_chunk(computed, w, chunks); begin <= z; ++begin)
        after[static_cast<std::size_t>(z)] =
            std::min(after[static_cast<std::size_t>(z)],
                     before[static_cast<std::size_t>(begin)] +
                         stage_seconds(model, tasks.bytes[i], tasks.fused[i], begin, z, chunks, w, share));
    before = after;
  }
  return before[Z];
}

}  // namespace plait::plan

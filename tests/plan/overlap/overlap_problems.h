// Random backward passes and models of overlap, and Algorithm 1 of LIBRA as the paper writes it, loop by loop.
#pragma once

#include <random>
#include <vector>

#include "plan/overlap/group_search.h"
#include "plan/overlap/overlap_model.h"

namespace plait::plan {

struct OverlapProblem {
  BackwardPass pass;
  OverlapModel model;
};

// Communication alone takes from a tenth to ten times the computation; overlap makes neither faster, and costs no more
// than one after the other (the paper's assumptions 1 to 3).
OverlapProblem random_problem(std::mt19937_64& random, std::size_t calls, std::size_t shares);

// T(K, L, Z) by the plain loops over i, l, z, l', z' and r.
double plain_algorithm_1(const OverlapProblem& problem, const GroupSearchOptions& options);

// The least time of the exact schedule over all ways to make at most K groups and all shares.
double best_of_all_schedules(const OverlapProblem& problem, int groups);

// T of these groups with these shares where communication begins at chunks' ends: the least over all begins.
double chunked_time(const OverlapProblem& problem, const std::vector<OverlapGroup>& groups, int chunks);

}  // namespace plait::plan

// The tree of the postal model (Bar-Noy and Kipnis, "Designing broadcasting algorithms in the postal model for
// message-passing systems", SPAA 1992): a message arrives lambda sends after it was posted, and its sender goes on
// sending meanwhile, so that of f(t) = f(t-1) + f(t-lambda) members who are reached in time t the first child's
// subtree has f(t-lambda). With lambda 1 that is the binomial tree. A reduction is the same backwards.
//
// Each subtree is a run of members from its root on, so that operands stay in order.
#include <algorithm>
#include <utility>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

constexpr int lambda = 4;
// Of fewer a k-nomial tree is as good, or nearly.
constexpr int least_postal_members = 17;

// reached[t]: members by time t, up to the first that has all of them.
std::vector<int> reached_by(int members) {
  std::vector<int> reached = {1};
  while (reached.back() < members) {
    const auto t = reached.size();
    reached.push_back(reached[t - 1] + (t >= lambda ? reached[t - lambda] : 0));
  }
  return reached;
}

int time_for(const std::vector<int>& reached, int members) {
  return static_cast<int>(std::ranges::lower_bound(reached, members) - reached.begin());
}

// Messages that a root has sent by then.
int sent_by(int time) { return std::max(time - lambda + 1, 0); }

struct Hop {
  int parent, child;
};

// Of members first..end-1, whose root is the first; those of one member alone where it is not Moves::everybody. In the
// order of a broadcast.
void add_hops(const std::vector<int>& reached, int first, int end, int self, std::vector<Hop>& hops) {
  while (end - first > 1) {
    const int child = first + reached[static_cast<std::size_t>(time_for(reached, end - first) - 1)];
    if (self == Moves::everybody || self == first || self == child) hops.push_back({first, child});
    if (self == Moves::everybody) add_hops(reached, child, end, self, hops);
    if (self != Moves::everybody && self >= child)
      first = child;
    else
      end = child;
  }
}

void emit_postal(Moves& moves, const GroupWork& work) {
  std::vector<Hop> hops;
  add_hops(reached_by(work.members), 0, work.members, moves.self(), hops);
  const bool reduces = work.what == Instruct::reduce;
  if (reduces) std::ranges::reverse(hops);
  moves.next_stage();
  for (const Hop& hop : hops) {
    if (!moves.wants(hop.parent, hop.child)) continue;
    if (reduces)
      moves.combine(hop.child, hop.parent, 0);
    else
      moves.move(hop.parent, hop.child, 0);
  }
}

// From the root's first send to the last arrival, where one takes `hop` and the next send begins `gap` later.
double longest_way(int time, double hop, double gap) {
  std::vector<double> ends = {0};
  for (int t = 1; t <= time; ++t) {
    const auto at = static_cast<std::size_t>(t);
    ends.push_back(t < lambda ? 0 : std::max(t > lambda ? ends[at - 1] + gap : 0, ends[at - lambda] + hop));
  }
  return ends.back();
}

// As longest_way, of messages that share their sender's port: each of a root's children has its own with the last.
double sent_together(int time) {
  double sum = 0;
  for (int t = time; t >= lambda; t -= lambda) sum += sent_by(t);
  return sum;
}

void charge_postal(AlgorithmCost& cost) {
  const auto time_of = [](double members) {
    const int whole = static_cast<int>(members);
    return time_for(reached_by(whole), whole);
  };
  cost.charge([&](const Port& port, bool) {
    const double g = cost.members();
    const double sent = sent_by(time_of(std::max(g / port.below, 1.0)));
    return Traffic{std::min(sent, g - port.below), sent, false};
  });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const int time = time_of(port.cardinality);
    const double sent = sent_by(time);
    const bool together = port.shared && cost.what() == Instruct::broadcast;
    cost.wait_seconds(longest_way(time, port.latency + 2 * port.overhead, port.overhead));
    cost.hold_up(l, together ? sent_together(time) : sent, false);
    cost.compute_one_sided(sent, port);
  }
}

}  // namespace

constinit const Algorithm algorithms::postal4 = {
    .name = "postal4",
    .fits = [](Instruct what, int) { return what == Instruct::reduce || what == Instruct::broadcast; },
    .worth_trying =
        [](Instruct, const Extent& extent) { return extent.members >= least_postal_members && !extent.several_levels; },
    .keeps_order = true,
    .cost = charge_postal,
    .emit = emit_postal,
};

}  // namespace plait::plan

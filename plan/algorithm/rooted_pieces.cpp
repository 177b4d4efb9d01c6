#include "plan/algorithm/rooted_pieces.h"

#include <cmath>

namespace plait::plan {

namespace {

// Where a scatter's messages leave a member together and share its port, the longest, which has the furthest to go on,
// arrives with the last byte: 1 - 1/parts of the data through the root's port, then 1/2 - 1/parts through that of who
// got the longest, 1/4 - 1/parts and so on. What comes after the first.
double waits_for_the_longest(double parts) {
  double after = 0;
  for (double share = 0.5; share * parts > 1; share /= 2) after += share - 1 / parts;
  return after;
}

}  // namespace

void charge_rooted_pieces(AlgorithmCost& cost, bool forwarded) {
  const double g = cost.members();
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) {
    const double far = g - port.below;
    return Traffic{far / g, forwarded ? AlgorithmCost::rounds(std::ceil(g / port.below), 2) : far, false};
  });
  if (forwarded && cost.what() == Instruct::scatter)
    cost.charge_again([&](const Port& port) { return waits_for_the_longest(g / port.below); });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const double far = (port.cardinality - 1) * port.below;
    if (forwarded || l == cost.first()) cost.wait(forwarded ? port.rounds : 1, port);
    if (!forwarded) cost.wait_seconds((far - (l == cost.first() ? 1 : 0)) * port.overhead);
    const Port idle;
    cost.compute(forwarded ? port.rounds : far, far / g, port, idle);
    if (forwarded) cost.pass_on(far / g * port.cpu, 0);  // what inner members forward
  }
}

}  // namespace plait::plan

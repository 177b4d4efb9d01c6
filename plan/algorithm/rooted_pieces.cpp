#include "plan/algorithm/rooted_pieces.h"

#include <cmath>

namespace plait::plan {

void charge_rooted_pieces(AlgorithmCost& cost, bool forwarded) {
  const double g = cost.members();
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) {
    const double far = g - port.below;
    return Traffic{far / g, forwarded ? AlgorithmCost::rounds(std::ceil(g / port.below), 2) : far, false};
  });
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

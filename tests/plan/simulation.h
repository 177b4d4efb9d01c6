// Predicts how long a plan takes: a simulation of all ranks' schedules over the machine's links.
#pragma once

#include <span>

#include "plan/lower/bound_schedule.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "plan/model/schedule.h"
#include "topo/hierarchy.h"

namespace plait::plan {

// All ranks' schedules of one plan bound to a call's sizes, by rank.
struct SimulatedPlan {
  std::span<const Schedule> schedules;
  const Semantics* semantics;
  const Hierarchy* hierarchy;
};

// Seconds until the last rank is done. Deterministic. Every rank's processor runs one thing at a time, a node's NIC
// sends one byte at a time and receives one at a time; a message leaves when its dependencies are complete. Where ranks
// share cores, all work is done by so many cores less: the time that it takes them is added.
double predict_seconds(const SimulatedPlan& plan, const Call& call, const Machine& machine);

}  // namespace plait::plan

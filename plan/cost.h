// Predicts how long a plan takes: a simulation of all ranks' schedules over the machine's links.
#pragma once

#include <span>

#include "plan/bound_schedule.h"
#include "plan/collective.h"
#include "plan/schedule.h"
#include "topo/hierarchy.h"

namespace plait {

// What moving and combining bytes costs over one channel.
struct Link {
  double latency = 0;             // alpha: seconds from the start of a send to the arrival of its first byte
  double overhead = 0;            // seconds of the processor's time to post or to take one message, on either side
  double cpu_seconds_per_byte = 0;  // processor time a byte on either side
};

// The measured or assumed links of a system.
struct Machine {
  Link shm;
  Link network;
  double nic_seconds_per_byte = 0;   // of a node's NIC in each direction, shared by the node's ranks (full duplex)
  double nic_seconds_per_message = 0;  // likewise: the limit of its message rate
  double reduce_seconds_per_byte = 0;  // gamma
  double copy_seconds_per_byte = 0;
  double ranks_per_core = 1;  // more than 1: ranks share cores, so that the work of all of them counts, not only the
                              // longest chain of it
};

// Figures of an ordinary cluster of today (Ethernet or slower InfiniBand), used until a machine was measured.
Machine default_machine();

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

}  // namespace plait

#include "plan/choose/device_cost.h"

#include <algorithm>

namespace plait::plan {
namespace {

// Of the busiest rank in the busier direction, a share of this for each of the other ranks.
std::optional<double> device_bytes_of(Collective collective, double bytes, double ranks) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
      return 2 * (ranks - 1) / ranks * bytes;
    case Collective::reduce_scatter_block:
    case Collective::bcast:
    case Collective::allgather:
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
      return (ranks - 1) * bytes;
    default:
      return {};
  }
}

const LinkLevel& device_link_of(const Machine& machine, const Level& level) {
  const auto named =
      std::ranges::find_if(machine.levels, [&](const LinkLevel& one) { return one.name == name(level.kind); });
  return named != machine.levels.end() ? *named : machine.levels.back();
}

// The first rank's peers that this level parts from it, and no level further out: ranks in its parent's group less
// those in its own.
int peers_across(const Hierarchy& hierarchy, std::size_t index) {
  const auto own_group = [&](std::size_t level) {
    const auto& first = hierarchy.levels()[level].group_first;
    return first.size() > 1 ? first[1] : hierarchy.ranks();
  };
  return (index == 0 ? hierarchy.ranks() : own_group(index - 1)) - own_group(index);
}

std::optional<double> between_devices(const Call& call, const Hierarchy& hierarchy, const Machine& machine) {
  const double others = hierarchy.ranks() - 1;
  const std::optional<double> bytes =
      device_bytes_of(call.collective, static_cast<double>(call.count * call.element_bytes), hierarchy.ranks());
  if (hierarchy.nodes() > 1 || !bytes) return {};
  double seconds = 0, begins = 0, words = 0;
  for (std::size_t index = 0; index < hierarchy.levels().size(); ++index) {
    const LinkLevel& link = device_link_of(machine, hierarchy.levels()[index]);
    if (!link.devices.known()) return {};
    seconds += *bytes * peers_across(hierarchy, index) / others * link.devices.seconds_per_byte;
    begins = std::max(begins, link.devices.latency);
    words = std::max(words, link.latency + 2 * link.overhead);
  }
  return seconds + begins + 2 * words;
}

}  // namespace

std::optional<DeviceCost> device_cost(const Call& call, const Hierarchy& hierarchy, const Machine& machine,
                                      double plan_s) {
  if (!machine.to_device.known() || !machine.from_device.known() || hierarchy.ranks() < 2 || machine.levels.empty())
    return {};
  const double bytes = static_cast<double>(call.count * call.element_bytes), ranks = hierarchy.ranks();
  const Collective collective = call.collective;
  const bool gives_all = collective == Collective::scatter || collective == Collective::alltoall ||
                         collective == Collective::reduce_scatter_block;
  const bool takes_all =
      collective == Collective::gather || collective == Collective::alltoall || collective == Collective::allgather;
  const double given = gives_all ? ranks * bytes : bytes, taken = takes_all ? ranks * bytes : bytes;
  const double copies = machine.from_device.at(given) + machine.to_device.at(taken);
  return DeviceCost{.between_s = between_devices(call, hierarchy, machine), .staged_s = plan_s + copies};
}

}  // namespace plait::plan

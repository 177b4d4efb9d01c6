#include "plan/reshard/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace plait::plan::reshard {

namespace {

constexpr std::array<std::string_view, strategy_count> strategy_names = {"send-recv", "local-allgather",
                                                                         "global-allgather", "broadcast"};

// Shorter chunks are not worth a message; nothing is gained by longer ones.
constexpr std::uint64_t least_chunk_bytes = 64 * 1024, most_chunk_bytes = 4 * 1024 * 1024;
constexpr std::uint32_t most_chunks = 256, most_blocks = 32768;

template <class Enum>
Result<Enum> named(std::string_view wanted, std::string_view argument, int count) {
  std::string names;
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    if (name(value) == wanted) return value;
    names += std::string(i == 0 ? "" : ", ") + std::string(name(value));
  }
  return Status(Code::invalid, std::string(argument) + ": \"" + std::string(wanted) + "\": expected one of " + names);
}

int host_at(std::span<const int> host_of, int rank) { return host_of[static_cast<std::size_t>(rank)]; }

void add_to_group(std::vector<HostGroup>& groups, int host, int rank) {
  const auto found = std::ranges::find(groups, host, &HostGroup::host);
  if (found != groups.end())
    found->ranks.push_back(rank);
  else
    groups.push_back({host, {rank}});
}

TaskPlan who_gets_what(const UnitTasks& unit, const UnitTask& task, std::span<const int> host_of) {
  TaskPlan plan;
  for (const int rank : unit.holders(task)) plan.holder_hosts.push_back(host_at(host_of, rank));
  std::ranges::sort(plan.holder_hosts);
  plan.holder_hosts.erase(std::unique(plan.holder_hosts.begin(), plan.holder_hosts.end()), plan.holder_hosts.end());
  for (const int rank : unit.receivers(task)) {
    if (std::ranges::find(unit.holders(task), rank) != unit.holders(task).end()) continue;
    const int host = host_at(host_of, rank);
    const bool near = std::ranges::binary_search(plan.holder_hosts, host);
    add_to_group(near ? plan.near : plan.far, host, rank);
  }
  return plan;
}

std::size_t largest_group(const TaskPlan& task) {
  std::size_t most = 1;
  for (const auto* groups : {&task.near, &task.far})
    for (const HostGroup& group : *groups) most = std::max(most, group.ranks.size());
  return most;
}

std::size_t far_receivers(const TaskPlan& task) {
  std::size_t all = 0;
  for (const HostGroup& group : task.far) all += group.ranks.size();
  return all;
}

// A chain of `hops` after the first transfer: T(K) = t + K m + (t_hops) / K is least at K = sqrt(t_hops / m).
std::uint32_t best_chunks(const TaskPlan& task, std::uint64_t bytes, const Links& links) {
  const bool far = !task.far.empty();
  const double size = static_cast<double>(bytes);
  const double hops = (far ? static_cast<double>(task.far.size() - 1) * size * links.network_per_byte : 0) +
                      static_cast<double>(largest_group(task) - 1) * size * links.local_per_byte;
  const double each = far ? links.network_per_message : links.local_per_message;
  const double best = each > 0 ? std::sqrt(hops / each) : static_cast<double>(most_chunks);
  const auto most = static_cast<double>(std::clamp<std::uint64_t>(bytes / least_chunk_bytes, 1, most_chunks));
  const std::uint64_t least = (bytes + most_chunk_bytes - 1) / most_chunk_bytes;
  return std::max(static_cast<std::uint32_t>(std::clamp(best, 1.0, most)), static_cast<std::uint32_t>(least));
}

// Parts that divide among the receivers of each host, or of all hosts.
std::uint32_t parts_for(const TaskPlan& task, Strategy strategy) {
  constexpr std::uint32_t most_parts = 64;
  if (strategy == Strategy::global_allgather)
    return static_cast<std::uint32_t>(std::max<std::size_t>(far_receivers(task), 1));
  std::uint32_t parts = 1;
  for (const auto& group : task.far) {
    const auto size = static_cast<std::uint32_t>(group.ranks.size());
    std::uint32_t a = parts, b = size;
    while (b != 0) a = std::exchange(b, a % b);
    if (parts / a * size <= most_parts) parts = parts / a * size;
  }
  return std::max(parts, static_cast<std::uint32_t>(largest_group(task)));
}

void choose_chunks(Plan& plan, std::size_t element_bytes) {
  const Options& options = plan.options;
  const auto tasks = static_cast<std::uint32_t>(std::max<std::size_t>(plan.tasks.size(), 1));
  const std::uint32_t most = std::max<std::uint32_t>(most_blocks / tasks, 1);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    TaskPlan& task = plan.tasks[i];
    const std::uint64_t bytes = plan.unit.tasks[i].bytes;
    std::uint32_t chunks = 1;
    if (options.strategy == Strategy::broadcast)
      chunks = options.chunks > 0 ? static_cast<std::uint32_t>(options.chunks)
                                  : std::min(best_chunks(task, bytes, options.links), most);
    else if (options.strategy != Strategy::send_recv)
      chunks = parts_for(task, options.strategy);
    task.chunks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(chunks, 1, bytes / element_bytes));
    task.first_block = plan.blocks;
    plan.blocks += task.chunks;
  }
}

double seconds_of(const Plan& plan, const Leg& leg, const TaskPlan& task) {
  const Links& links = plan.options.links;
  const double bytes = static_cast<double>(plan.unit.tasks[static_cast<std::size_t>(leg.task)].bytes);
  const double once = bytes * links.network_per_byte + links.network_per_message;
  const auto hosts = static_cast<double>(leg.groups.size());
  switch (plan.options.strategy) {
    case Strategy::send_recv:
    case Strategy::local_allgather:
      return once;
    case Strategy::global_allgather: {
      const auto parts = static_cast<double>(far_receivers(task));
      const double ring = hosts > 1 ? links.network_per_byte : links.local_per_byte;
      return once + (parts - 1) / parts * bytes * ring;
    }
    case Strategy::broadcast:
      break;
  }
  const auto chunks = static_cast<double>(task.chunks);
  return once + (chunks - 1) * links.network_per_message +
         (hosts - 1) * (bytes / chunks * links.network_per_byte + links.network_latency);
}

void add_leg(Plan& plan, Leg leg) {
  const TaskPlan& task = plan.tasks[static_cast<std::size_t>(leg.task)];
  Transfer transfer{
      .seconds = seconds_of(plan, leg, task), .senders = task.holder_hosts, .receivers = {}, .forwarders = {}};
  for (const int group : leg.groups) transfer.receivers.push_back(task.far[static_cast<std::size_t>(group)].host);
  const bool ring = plan.options.strategy == Strategy::global_allgather;
  const std::size_t forwarding =
      transfer.receivers.size() > 1 && ring ? transfer.receivers.size() : transfer.receivers.size() - 1;
  transfer.forwarders.assign(transfer.receivers.begin(),
                             transfer.receivers.begin() + static_cast<std::ptrdiff_t>(forwarding));
  plan.legs.push_back(std::move(leg));
  plan.transfers.push_back(std::move(transfer));
}

void cut_into_legs(Plan& plan) {
  for (int index = 0; index < static_cast<int>(plan.tasks.size()); ++index) {
    const std::vector<HostGroup> far = plan.tasks[static_cast<std::size_t>(index)].far;
    if (far.empty()) continue;
    Leg all{.task = index, .groups = {}, .receiver = {}};
    for (int group = 0; group < static_cast<int>(far.size()); ++group) {
      const Leg one{.task = index, .groups = {group}, .receiver = {}};
      all.groups.push_back(group);
      if (plan.options.strategy == Strategy::local_allgather) add_leg(plan, one);
      if (plan.options.strategy == Strategy::send_recv)
        for (const int rank : far[static_cast<std::size_t>(group)].ranks)
          add_leg(plan, {.task = index, .groups = {group}, .receiver = {rank}});
    }
    if (plan.options.strategy >= Strategy::global_allgather) add_leg(plan, std::move(all));
  }
}

// What must cross the network whatever the plan: of each task its bytes, once out of the hosts that hold them and once
// into each host that wants them and has none.
std::vector<Transfer> bare_transfers(const UnitTasks& unit, const std::vector<TaskPlan>& tasks, const Links& links) {
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].far.empty()) continue;
    Transfer transfer{.seconds = static_cast<double>(unit.tasks[i].bytes) * links.network_per_byte,
                      .senders = tasks[i].holder_hosts,
                      .receivers = {},
                      .forwarders = {}};
    for (const HostGroup& group : tasks[i].far) transfer.receivers.push_back(group.host);
    transfers.push_back(std::move(transfer));
  }
  return transfers;
}

std::vector<TaskPlan> task_plans(const UnitTasks& unit, std::span<const int> host_of) {
  std::vector<TaskPlan> tasks;
  for (const UnitTask& task : unit.tasks) tasks.push_back(who_gets_what(unit, task, host_of));
  return tasks;
}

int count_hosts(std::span<const int> host_of) { return host_of.empty() ? 1 : *std::ranges::max_element(host_of) + 1; }

}  // namespace

std::string_view name(Strategy strategy) { return strategy_names[static_cast<std::size_t>(strategy)]; }
Result<Strategy> strategy_named(std::string_view name) { return named<Strategy>(name, "strategy", strategy_count); }
Result<Scheduler> scheduler_named(std::string_view name) {
  return named<Scheduler>(name, "scheduler", scheduler_count);
}

Links links_of(const Machine& machine) {
  const LinkLevel& network = machine.levels.front();
  const LinkLevel& local = machine.levels.back();
  const double crowd = std::max(machine.ranks_per_core, 1.0);
  return {.network_per_byte = std::max(network.port_seconds_per_byte, network.cpu_seconds_per_byte),
          .network_per_message = network.overhead + network.port_seconds_per_message,
          .network_latency = network.latency,
          .local_per_byte = std::max(local.port_seconds_per_byte, 2 * local.cpu_seconds_per_byte * crowd),
          .local_per_message = local.overhead + local.latency};
}

double predicted_seconds(const Plan& plan) {
  return plan.legs.empty() ? 0 : plan.schedule.seconds + plan.options.links.network_latency;
}

Result<Plan> make_plan(const Task& task, std::span<const int> host_of, const Options& options) {
  if (Status status = check(task, static_cast<int>(host_of.size())); !status.ok()) return status;
  Plan plan{.options = options,
            .hosts = count_hosts(host_of),
            .unit = cut(task),
            .tasks = {},
            .legs = {},
            .transfers = {},
            .schedule = {}};
  plan.tasks = task_plans(plan.unit, host_of);
  choose_chunks(plan, task.element_bytes);
  cut_into_legs(plan);
  plan.schedule = schedule(plan.transfers, plan.hosts, options.scheduler, options.budget);
  plan.lower_bound = port_bound(bare_transfers(plan.unit, plan.tasks, options.links), plan.hosts);
  return plan;
}

}  // namespace plait::plan::reshard

// A resharding planned: its unit tasks, how each is carried out, which host sends it and when (section 3 of the paper).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/machine.h"
#include "plan/reshard/host_schedule.h"
#include "plan/reshard/task.h"
#include "plan/reshard/unit_tasks.h"

namespace plait::plan::reshard {

// How one unit task goes from a holder to all its receivers (section 3.1). Times for t, one transfer of it over the
// network, to receivers on A hosts:
enum class Strategy : std::uint8_t {
  send_recv,         // a message to each receiver: receivers * t
  local_allgather,   // a part to each receiver of a host, which exchange them, host after host: A * t
  global_allgather,  // a part to each receiver of all hosts, then a ring over all of them: 2 t
  broadcast,         // a chain over the hosts in K chunks: t (1 + (A - 1) / K)
};
inline constexpr int strategy_count = 4, scheduler_count = 3;
std::string_view name(Strategy strategy);  // "send-recv"
Result<Strategy> strategy_named(std::string_view name);
Result<Scheduler> scheduler_named(std::string_view name);

// What a plan is made for: seconds, and seconds a byte.
struct Links {
  double network_per_byte = 0;     // of a host's NIC, in each direction
  double network_per_message = 0;  // what each more message costs the sender
  double network_latency = 0;
  double local_per_byte = 0;  // one hop within a host
  double local_per_message = 0;
};
Links links_of(const Machine& machine);

struct Options {
  Strategy strategy = Strategy::broadcast;
  Scheduler scheduler = Scheduler::search;
  SearchBudget budget;
  int chunks = 0;  // of each unit task; 0: by the cost model
  Links links;
};

// Receivers of one unit task on one host, which do not hold its data themselves.
struct HostGroup {
  int host = 0;
  std::vector<int> ranks;
};

struct TaskPlan {
  std::vector<int> holder_hosts;  // ascending
  std::vector<HostGroup> near;    // on hosts that have a holder: the data comes from there
  std::vector<HostGroup> far;     // on all others
  std::uint32_t chunks = 1;       // blocks that it is cut into
  std::uint32_t first_block = 0;
};

// A task's way over the network, or a part of it: to some of the hosts of TaskPlan::far.
struct Leg {
  int task = 0;
  std::vector<int> groups;    // indices into TaskPlan::far
  std::vector<int> receiver;  // send_recv: the one rank; else empty
};

struct Plan {
  Options options;
  int hosts = 1;
  UnitTasks unit;
  std::vector<TaskPlan> tasks;  // by unit task
  std::vector<Leg> legs;
  std::vector<Transfer> transfers;  // by leg
  HostSchedule schedule;            // of the legs
  double lower_bound = 0;           // seconds: what the busiest host's port carries at least, whatever the plan
  std::uint32_t blocks = 0;
};

// Until the last rank has all of its data; 0 where nothing crosses the network. A transfer's latency keeps no side
// busy: it counts once.
double predicted_seconds(const Plan& plan);

// Pure, the same on all ranks. `host_of`: of each rank of the communicator, from 0 on without gaps. Fails where check()
// does.
Result<Plan> make_plan(const Task& task, std::span<const int> host_of, const Options& options);

}  // namespace plait::plan::reshard

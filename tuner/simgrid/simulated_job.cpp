// A rank of a job that SimGrid simulates (smpirun runs it): collectives as its MPI does them, by the algorithms that
// --cfg=smpi/coll-selector names, and as Plait would, by the schedules of the plans that it chooses; in turn, in
// simulated time. `plait simulate collective` runs this and reads what rank 0 prints: a line of JSON a row.
//
//   simulated_job --collectives allreduce,bcast --sizes 8,1048576 --ranks-per-node 16 [--nodes-per-switch 16]
//                 --machine FILE [--only host|plait] [--topology fat-tree --nodes 4096] [--flow-hosts FILE]
//
// With --flow-hosts one rank plays the schedules of all (flow_play.h), Plait's and binomial trees': 65,536 actors would
// need as many stacks and some 100 us a message.
//
// Bytes are: of the vector (bcast, reduce, allreduce), of all ranks' together (allgather, reduce_scatter_block), of one
// pair's message (alltoall). All ranks are actors of one process; they share what rank 0 has planned.
#include <mpi.h>
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <simgrid/s4u/Actor.hpp>
#include <simgrid/s4u/Host.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/units.h"
#include "tuner/simgrid/all_schedules.h"
#include "tuner/simgrid/binomial_trees.h"
#include "tuner/simgrid/flow_play.h"
#include "tuner/simgrid/global_links.h"
#include "tuner/simgrid/row_plan.h"
#include "tuner/simgrid/schedule_player.h"
#include "tuner/text/layer.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

struct Settings {
  std::string collectives = "allreduce", sizes = "8,1M", machine, only, topology = "flat";
  int ranks_per_node = 1, nodes_per_switch = 0, nodes = 0;
  std::string flow_hosts;  // a file: a rank's host a line; then this is the only actor, for all ranks
};

// A call of so many bytes, and what it needs of memory.
struct Row {
  Call call;
  std::size_t sent = 0, received = 0;
};

std::optional<Row> row_of(Collective collective, std::size_t bytes, int ranks) {
  using enum Collective;
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t element = reduces(collective) ? sizeof(float) : 1;
  Row row{.call = {.collective = collective, .element_bytes = element}};
  row.call.count = std::max<std::size_t>(bytes / element, 1);
  switch (collective) {
    case bcast:
    case reduce:
    case allreduce:
      row.sent = row.received = row.call.count * element;
      return row;
    case allgather:
    case reduce_scatter_block: {
      row.call.count = std::max<std::size_t>(bytes / element / n, 1);
      const std::size_t part = row.call.count * element;
      row.sent = collective == allgather ? part : part * n;
      row.received = collective == allgather ? part * n : part;
      return row;
    }
    case alltoall:
      row.sent = row.received = row.call.count * n;
      return row;
    default:
      return std::nullopt;
  }
}

// Not backed by as much memory as it is long; messages between such blocks are not copied.
class SharedBlock {
 public:
  explicit SharedBlock(std::size_t bytes)
      : memory_(static_cast<std::byte*>(SMPI_SHARED_MALLOC(std::max<std::size_t>(bytes, 1)))) {}
  ~SharedBlock() { SMPI_SHARED_FREE(memory_); }
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  std::byte* data() const { return memory_; }

 private:
  std::byte* memory_;
};

void run_host(const Row& row, std::byte* sent, std::byte* received) {
  using enum Collective;
  const auto count = static_cast<int>(row.call.count);
  switch (row.call.collective) {
    case bcast:
      MPI_Bcast(sent, count, MPI_BYTE, 0, MPI_COMM_WORLD);
      return;
    case reduce:
      MPI_Reduce(sent, received, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
      return;
    case allreduce:
      MPI_Allreduce(sent, received, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case allgather:
      MPI_Allgather(sent, count, MPI_BYTE, received, count, MPI_BYTE, MPI_COMM_WORLD);
      return;
    case reduce_scatter_block:
      MPI_Reduce_scatter_block(sent, received, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    default:
      MPI_Alltoall(sent, count, MPI_BYTE, received, count, MPI_BYTE, MPI_COMM_WORLD);
  }
}

struct Timed {
  double seconds = 0, global_bytes = 0;  // of the slowest rank; over the links of rank 0's `links`
};

// Sleeps in simulated time (smpi_usleep takes whole microseconds, so that ranks would begin up to one apart).
void sleep_until(double end_s) { simgrid::s4u::this_actor::sleep_until(end_s); }

// All having begun at one time; the second of two runs. What goes over the links is counted before anybody speaks of
// the run's end.
template <class Run>
Timed timed(const GlobalLinks& links, Run&& run) {
  constexpr double pause_s = 0.01, silence_s = 20;
  Timed found;
  for (int round = 0; round < 2; ++round) {
    double begin = MPI_Wtime(), latest = 0;
    MPI_Allreduce(&begin, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    latest += pause_s;
    sleep_until(latest);
    const double from = MPI_Wtime(), before = links.bytes();
    run();
    double mine = MPI_Wtime() - from;
    sleep_until(latest + silence_s);
    found.global_bytes = links.bytes() - before;
    MPI_Allreduce(&mine, &found.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  return found;
}

// What rank 0 has stays its own; it keeps it until all are done with it.
template <class Shared>
const Shared& share(const Shared* own) {
  auto address = reinterpret_cast<std::uintptr_t>(own);
  MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
  return *reinterpret_cast<const Shared*>(address);
}

// ---- The job ----

nlohmann::json measure_plait(const Row& row, const System& system, const GlobalLinks& links, int rank) {
  nlohmann::json line;
  SharedPlan found;
  if (rank == 0) found = plan_for(row.call, system);
  const SharedPlan& shared = share(&found);
  if (!shared.candidate) return {{"problem", shared.problem}};
  line["plan"] = shared.candidate->name;
  const Result<OwnPlan> plan = own_plan(shared, row.call, system, rank);
  int ready = plan.ok() ? 1 : 0, all_ready = 0;
  MPI_Allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all_ready == 0) {
    line["problem"] = plan.ok() ? "a rank has no schedule" : plan.status().message();
    return line;
  }
  const BoundSchedule schedule = bind(plan->schedule, plan->semantics, rank, dense_placement(row.call));
  const std::size_t longest = std::max(row.sent, row.received);
  const SharedBlock sent(longest), received(longest);
  SchedulePlayer player(schedule, {.sent = sent.data(), .received = received.data()});
  Status status;
  const Timed found_time = timed(links, [&] { status = player.play(); });
  line["plait"] = found_time.seconds;
  line["global_bytes"] = found_time.global_bytes;
  if (!status.ok()) line["problem"] = status.message();
  return line;
}

nlohmann::json measure(const Row& row, const Settings& settings, const System& system, const GlobalLinks& links,
                       int rank) {
  nlohmann::json line;
  if (settings.only != "host") line = measure_plait(row, system, links, rank);
  if (settings.only != "plait") {
    const SharedBlock sent(row.sent), received(row.received);
    const Timed found = timed(links, [&] { run_host(row, sent.data(), received.data()); });
    line["host"] = found.seconds;
    line["host_global_bytes"] = found.global_bytes;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return line;
}

Result<Machine> machine_of(const Settings& settings) {
  if (settings.machine.empty()) return default_machine();
  const Result<std::string> text = read_file(settings.machine, std::size_t{1} << 20);
  if (!text.ok()) return text.status();
  return parse_machine(*text);
}

// What the machine says of a message's time on a processor is simulated for everybody: posting it, and taking it.
void charge_messages(const Machine& machine) {
  if (machine.levels.empty()) return;
  const double far_s = machine.levels.front().overhead, near_s = machine.levels.back().overhead;
  const auto cost = [=](std::size_t, simgrid::s4u::Host* from, simgrid::s4u::Host* to) {
    return from == to ? near_s : far_s;
  };
  for (const SmpiOperation operation : {SmpiOperation::SEND, SmpiOperation::ISEND, SmpiOperation::RECV})
    smpi_register_op_cost_callback(operation, cost);
}

std::vector<BoundSchedule> tree_schedules(const Call& call, int ranks) {
  std::vector<BoundSchedule> schedules;
  for (int rank = 0; rank < ranks; ++rank)
    if (auto one = binomial_trees(call.collective, call.count * call.element_bytes, rank, ranks))
      schedules.push_back(std::move(*one));
  return schedules;
}

nlohmann::json measure_flows(const Row& row, const System& system, const FlowJob& job, GlobalCrossings& crossings) {
  constexpr double silence_s = 20;
  const SharedPlan shared = plan_for(row.call, system);
  if (!shared.candidate) return {{"problem", shared.problem}};
  nlohmann::json line = {{"plan", shared.candidate->name}};
  auto schedules = all_schedules(shared, row.call, system, job.ranks_per_node);
  if (!schedules.ok()) return {{"problem", schedules.status().message()}};
  const Result<Played> played = play_flows(job, *schedules, crossings, silence_s);
  if (!played.ok()) return {{"problem", played.status().message()}};
  line["plait"] = played->seconds;
  line["global_bytes"] = played->global_bytes;
  *schedules = tree_schedules(row.call, system.hierarchy.ranks());
  if (schedules->empty()) return line;
  if (const Result<Played> trees = play_flows(job, *schedules, crossings, silence_s); trees.ok()) {
    line["host"] = trees->seconds;
    line["host_global_bytes"] = trees->global_bytes;
  }
  return line;
}

Result<FlowJob> flow_job(const Settings& settings, const Machine& machine) {
  FlowJob job{.hosts = {}, .ranks_per_node = settings.ranks_per_node};
  std::ifstream file(settings.flow_hosts);
  simgrid::s4u::Host* host = nullptr;
  for (std::string line; std::getline(file, line); job.hosts.push_back(host)) {
    if (host == nullptr || host->get_name() != line) host = simgrid::s4u::Host::by_name_or_null(line);
    if (host == nullptr) return Status(Code::invalid, "--flow-hosts: the platform has no '" + line + "'");
  }
  if (job.hosts.empty()) return Status(Code::invalid, "--flow-hosts " + settings.flow_hosts + ": no hosts");
  if (!machine.levels.empty()) {
    job.far_s = machine.levels.front().overhead;
    job.near_s = machine.levels.back().overhead;
  }
  return job;
}

int run(const Settings& settings, int rank, int ranks) {
  const auto fail = [&](const std::string& why) {
    if (rank == 0) std::fprintf(stderr, "simulated_job: %s\n", why.c_str());
    return 2;
  };
  const Result<Machine> machine = machine_of(settings);
  if (!machine.ok()) return fail(machine.status().message());
  Result<FlowJob> flows = FlowJob();
  if (!settings.flow_hosts.empty()) flows = flow_job(settings, *machine);
  if (!flows.ok()) return fail(flows.status().message());
  const bool by_flows = !flows->hosts.empty();
  if (by_flows) ranks = static_cast<int>(flows->hosts.size());
  std::optional<System> own;
  if (rank == 0) {
    charge_messages(*machine);
    Hierarchy hierarchy = hierarchy_of({ranks, settings.ranks_per_node, settings.nodes_per_switch});
    Routes routes = usual_routes(hierarchy);
    own = System{std::move(hierarchy), *machine, std::move(routes)};
  }
  const System& system = share(rank == 0 ? &*own : nullptr);
  const std::optional<Topology> topology = topology_named(settings.topology);
  if (!topology) return fail("--topology " + settings.topology + ": expected flat, fat-tree, dragonfly or torus");
  const GlobalLinks links = rank == 0 && !by_flows ? GlobalLinks(*topology, settings.nodes) : GlobalLinks();
  GlobalCrossings crossings(*topology, settings.nodes);
  for (const std::string& name : split(settings.collectives, ',')) {
    const std::optional<Collective> collective = collective_named(name);
    for (const std::string& size : split(settings.sizes, ',')) {
      const Result<std::size_t> bytes = parse_bytes(size);
      const std::optional<Row> row = collective && bytes.ok() ? row_of(*collective, *bytes, ranks) : std::nullopt;
      if (!row) return fail("'" + name + "' of '" + size + "' cannot be simulated");
      nlohmann::json line =
          by_flows ? measure_flows(*row, system, *flows, crossings) : measure(*row, settings, system, links, rank);
      line["collective"] = name;
      line["bytes"] = *bytes;
      if (rank == 0) {
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace plait::tuner

int main(int argc, char** argv) {
  plait::tuner::Settings settings;
  CLI::App app("simulated_job");
  app.add_option("--collectives", settings.collectives);
  app.add_option("--sizes", settings.sizes);
  app.add_option("--machine", settings.machine);
  app.add_option("--only", settings.only)->check(CLI::IsMember({"host", "plait"}));
  app.add_option("--ranks-per-node", settings.ranks_per_node)->check(CLI::PositiveNumber);
  app.add_option("--nodes-per-switch", settings.nodes_per_switch)->check(CLI::NonNegativeNumber);
  app.add_option("--topology", settings.topology);
  app.add_option("--nodes", settings.nodes);
  app.add_option("--flow-hosts", settings.flow_hosts);
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = plait::tuner::run(settings, rank, ranks);
  MPI_Finalize();
  return code;
}

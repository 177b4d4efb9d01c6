#include "plan/step/chakra_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "plan/model/json_members.h"
#include "plan/step/chakra_nodes.h"

namespace plait::plan::step {
namespace {

constexpr std::size_t most_step_tasks = 4096, most_looks = std::size_t{1} << 22;
constexpr int most_communicators = 1 << 20;
constexpr double microsecond = 1e-6;

struct Pair {
  Collective ours;
  ChakraCollective theirs;
  bool of_parts;  // comm_size counts a part for each rank, our bytes are one
};
// The first that fits is written.
constexpr std::array<Pair, 9> pairs = {
    {{Collective::allreduce, ChakraCollective::all_reduce, false},
     {Collective::reduce, ChakraCollective::reduce, false},
     {Collective::bcast, ChakraCollective::broadcast, false},
     {Collective::allgather, ChakraCollective::all_gather, false},
     {Collective::gather, ChakraCollective::gather, false},
     {Collective::scatter, ChakraCollective::scatter, true},
     {Collective::alltoall, ChakraCollective::all_to_all, true},
     {Collective::reduce_scatter_block, ChakraCollective::reduce_scatter, true},
     {Collective::reduce_scatter_block, ChakraCollective::reduce_scatter_block, true}}};

std::string place_of(const ChakraNode& node) { return "node " + std::to_string(node.id) + ": "; }

// ---- From Chakra ----

// Names that are numbers are ours; others are numbered from 1 on, as they come.
class GroupNumbers {
 public:
  explicit GroupNumbers(const std::vector<ChakraNode>& nodes) {
    bool all = true;
    for (const ChakraNode& node : nodes) all = all && (node.pg_name.empty() || number_of(node.pg_name));
    if (all) return;
    for (const ChakraNode& node : nodes)
      if (!node.pg_name.empty()) numbers_.emplace(node.pg_name, static_cast<int>(numbers_.size()) + 1);
  }

  int of(const ChakraNode& node) const {
    const auto found = numbers_.find(node.pg_name);
    return found != numbers_.end() ? found->second : number_of(node.pg_name).value_or(0);
  }

 private:
  static std::optional<int> number_of(const std::string& name) {
    int number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool whole = error == std::errc() && end == name.data() + name.size() && std::to_string(number) == name;
    return whole && number >= 0 && number <= most_communicators ? std::optional<int>(number) : std::nullopt;
  }

  std::map<std::string, int> numbers_;
};

// By dependencies; of those that could be next the one with the least id.
class NodeOrder {
 public:
  explicit NodeOrder(const std::vector<ChakraNode>& nodes) : nodes_(nodes) {}

  Result<std::vector<std::size_t>> find() {
    if (Status status = index(); !status.ok()) return status;
    std::priority_queue<std::pair<std::uint64_t, std::size_t>, std::vector<std::pair<std::uint64_t, std::size_t>>,
                        std::greater<>>
        ready;
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (waits_[node] == 0) ready.emplace(nodes_[node].id, node);
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      order.push_back(ready.top().second);
      ready.pop();
      for (const std::size_t next : followers_[order.back()])
        if (--waits_[next] == 0) ready.emplace(nodes_[next].id, next);
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (waits_[node] > 0) return unexpected(place_of(nodes_[node]) + "it waits for itself", "no circle");
    return order;
  }

  std::size_t place(std::uint64_t id) const { return places_.at(id); }

 private:
  Status index() {
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (!places_.emplace(nodes_[node].id, node).second)
        return unexpected(place_of(nodes_[node]) + "it stands twice", "an id of its own");
    waits_.resize(nodes_.size());
    followers_.resize(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      for (const auto* ids : {&nodes_[node].data_deps, &nodes_[node].ctrl_deps})
        for (const std::uint64_t id : *ids) {
          const auto found = places_.find(id);
          if (found == places_.end())
            return unexpected(place_of(nodes_[node]) + "it waits for " + std::to_string(id), "a node of the file");
          followers_[found->second].push_back(node);
          ++waits_[node];
        }
    return {};
  }

  const std::vector<ChakraNode>& nodes_;
  std::map<std::uint64_t, std::size_t> places_;
  std::vector<std::size_t> waits_;
  std::vector<std::vector<std::size_t>> followers_;
};

class StepReader {
 public:
  StepReader(const ChakraTrace& chakra, int ranks)
      : nodes_(chakra.nodes), ranks_(ranks), groups_(chakra.nodes), order_(chakra.nodes), stands_for_(nodes_.size()) {
    trace_.step.name = chakra.step.empty() ? "chakra" : chakra.step;
    trace_.step.of = chakra.of;
  }

  Result<Trace> read() {
    const Result<std::vector<std::size_t>> order = order_.find();
    if (!order.ok()) return order.status();
    for (const std::size_t node : *order)
      if (Status status = take(node); !status.ok()) return status;
    if (trace_.step.tasks.empty()) return unexpected("the trace", "a COMP_NODE that takes time, or a COMM_COLL_NODE");
    if (Status status = check_previous(); !status.ok()) return status;
    for (const auto& [what, count] : left_out_)
      trace_.left_out += (trace_.left_out.empty() ? "" : ", ") + std::to_string(count) + " " + what;
    return std::move(trace_);
  }

 private:
  Status take(std::size_t place) {
    const ChakraNode& node = nodes_[place];
    switch (node.type) {
      case ChakraType::comp:
        return compute(place);
      case ChakraType::comm_coll:
        return node.comm_type == ChakraCollective::barrier ? compute(place) : operate(place);
      case ChakraType::metadata:
        return leave_out(place, std::string(name(node.type)));
      default:
        return unexpected(place_of(node) + std::string(name(node.type)), "COMP_NODE, COMM_COLL_NODE or METADATA_NODE");
    }
  }

  // What waits for it waits for what it waited for.
  Status leave_out(std::size_t place, const std::string& what) {
    ++left_out_[what];
    stands_for_[place] = tasks_before(place);
    return check_looks(place);
  }

  Status check_looks(std::size_t place) const {
    if (looks_ <= most_looks) return {};
    return unexpected(place_of(nodes_[place]) + "dependencies", "fewer of them through nodes that are left out");
  }

  std::vector<std::size_t> tasks_before(std::size_t place) {
    const ChakraNode& node = nodes_[place];
    std::vector<std::size_t> tasks;
    std::set<std::size_t> known;
    const auto add = [&](const std::vector<std::uint64_t>& ids) {
      for (const std::uint64_t id : ids) {
        const std::vector<std::size_t>& before = stands_for_[order_.place(id)];
        looks_ += before.size();
        if (looks_ > most_looks) return;  // which is refused
        for (const std::size_t task : before)
          if (known.insert(task).second) tasks.push_back(task);
      }
    };
    add(node.data_deps);
    if (!node.program_order) add(node.ctrl_deps);
    return tasks;
  }

  Status compute(std::size_t place) {
    const ChakraNode& node = nodes_[place];
    const double seconds = time_of(node);
    if (!(seconds > 0)) return leave_out(place, std::string(name(node.type)) + " without a duration");
    Task task;
    task.seconds = seconds;
    return add(place, std::move(task), {.submit = node.submit});
  }

  Status operate(std::size_t place) {
    const ChakraNode& node = nodes_[place];
    if (!node.comm_type) return unexpected(place_of(node) + "comm_type", "what the collective is");
    const auto* pair =
        std::find_if(pairs.begin(), pairs.end(), [&](const Pair& one) { return one.theirs == *node.comm_type; });
    if (pair == pairs.end()) return unexpected(place_of(node) + "comm_type", "a collective of a step");
    Task task;
    task.collective = pair->ours;
    const Result<std::size_t> bytes = bytes_of(node, pair->of_parts);
    if (!bytes.ok()) return bytes.status();
    task.bytes = *bytes;
    TaskTimes times{.submit = node.submit};
    if (time_of(node) > 0) times.seconds = time_of(node);
    return add(place, std::move(task), times);
  }

  static double time_of(const ChakraNode& node) {
    return node.seconds.value_or(microsecond * static_cast<double>(node.duration_micros));
  }

  Result<std::size_t> bytes_of(const ChakraNode& node, bool of_parts) const {
    const auto given = node.bytes ? node.bytes : node.comm_size;
    if (!given || *given == 0) return unexpected(place_of(node) + "comm_size", "a number of bytes");
    if (node.bytes || !of_parts) return static_cast<std::size_t>(*given);
    const std::uint64_t ranks = node.ranks > 0 ? node.ranks : static_cast<std::uint64_t>(ranks_);
    if (ranks == 0)
      return unexpected(place_of(node) + "comm_size counts what a rank gives to all others",
                        "--ranks, the number of ranks");
    return static_cast<std::size_t>((*given - 1) / ranks + 1);
  }

  Status add(std::size_t place, Task task, TaskTimes times) {
    const ChakraNode& node = nodes_[place];
    if (trace_.step.tasks.size() == most_step_tasks)
      return unexpected(place_of(node) + "tasks", "at most " + std::to_string(most_step_tasks) + " in a step");
    if (node.ranks > static_cast<std::uint64_t>(most_communicators))
      return unexpected(place_of(node) + "plait_ranks", "at most " + std::to_string(most_communicators));
    task.name = unique_name(node);
    for (const std::size_t before : tasks_before(place)) task.after.push_back(trace_.step.tasks[before].name);
    if (Status status = check_looks(place); !status.ok()) return status;
    task.after_previous = node.after_previous;
    task.communicator = groups_.of(node);
    task.blocking = node.blocking;
    task.persistent = node.persistent;
    task.site = node.site, task.type = node.data_type, task.op = node.op;
    if (node.ranks > 0) {
      const auto number = static_cast<std::size_t>(task.communicator);
      trace_.ranks.resize(std::max(trace_.ranks.size(), number + 1));
      trace_.ranks[number] = static_cast<int>(node.ranks);
    }
    stands_for_[place] = {trace_.step.tasks.size()};
    trace_.step.tasks.push_back(std::move(task));
    trace_.times.push_back(times);
    return {};
  }

  std::string unique_name(const ChakraNode& node) {
    const std::string id = std::to_string(node.id);
    std::string name = node.name.empty() ? id : node.name;
    for (std::uint64_t next = 0; !names_.insert(name).second; ++next)
      name = node.name + "." + id + (next == 0 ? "" : "." + std::to_string(next));
    return name;
  }

  Status check_previous() const {
    for (const Task& task : trace_.step.tasks)
      for (const std::string& name : task.after_previous)
        if (!names_.contains(name))
          return unexpected("\"" + task.name + "\": plait_after_previous \"" + name + "\"", "the name of a node");
    return {};
  }

  const std::vector<ChakraNode>& nodes_;
  int ranks_;
  GroupNumbers groups_;
  NodeOrder order_;
  std::vector<std::vector<std::size_t>> stands_for_;  // by node: tasks
  std::size_t looks_ = 0;                             // at what nodes stand for
  std::set<std::string> names_;
  std::map<std::string, std::size_t> left_out_;
  Trace trace_;
};

// ---- To Chakra ----

std::uint64_t micros_of(double seconds) {
  constexpr double longest = 9e18;
  return static_cast<std::uint64_t>(std::llround(std::clamp(seconds / microsecond, 0.0, longest)));
}

void set_times(const Task& task, const TaskTimes& times, ChakraNode& node) {
  const auto seconds = task.collective ? times.seconds : task.seconds;
  if (seconds) {
    node.duration_micros = micros_of(*seconds);
    if (microsecond * static_cast<double>(node.duration_micros) != *seconds) node.seconds = *seconds;
  }
  if (!times.submit) return;
  node.start_micros = micros_of(*times.submit);
  node.submit = *times.submit;
}

Status set_collective(const Task& task, ChakraNode& node) {
  const auto* pair =
      std::find_if(pairs.begin(), pairs.end(), [&](const Pair& one) { return one.ours == *task.collective; });
  if (pair == pairs.end()) return unexpected("\"" + task.name + "\"", "a collective that Chakra has");
  node.comm_type = pair->theirs;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t parts = pair->of_parts ? node.ranks : 1;
  if (parts == 0)
    return unexpected("\"" + task.name + "\": Chakra's comm_size counts what a rank gives to all others",
                      "--ranks, the number of ranks");
  node.comm_size = task.bytes > most / parts ? most : task.bytes * parts;
  if (*node.comm_size != task.bytes) node.bytes = task.bytes;
  return {};
}

Result<ChakraNode> node_of(const Trace& trace, std::size_t index, int ranks) {
  const Task& task = trace.step.tasks[index];
  ChakraNode node{.id = index, .name = task.name};
  node.type = task.collective ? ChakraType::comm_coll : ChakraType::comp;
  node.is_cpu_op = !task.collective;
  if (task.collective) {
    node.ranks = static_cast<std::uint64_t>(ranks_of(trace, task.communicator, ranks));
    if (Status status = set_collective(task, node); !status.ok()) return status;
  }
  if (task.collective || task.communicator != 0) node.pg_name = std::to_string(task.communicator);
  set_times(task, index < trace.times.size() ? trace.times[index] : TaskTimes{}, node);
  node.blocking = task.blocking;
  node.persistent = task.persistent;
  node.after_previous = task.after_previous;
  node.site = task.site, node.data_type = task.type, node.op = task.op;
  return node;
}

}  // namespace

Result<Trace> parse_chakra(std::string_view text, int ranks) {
  const Result<ChakraTrace> chakra = parse_chakra_nodes(text);
  if (!chakra.ok()) return chakra.status();
  return StepReader(*chakra, ranks).read();
}

Result<std::string> chakra_text(const Trace& trace, int ranks) {
  ChakraTrace chakra{.version = "0.0.4", .step = trace.step.name, .of = trace.step.of};
  std::map<std::string_view, std::uint64_t> ids;
  std::optional<std::uint64_t> computed;  // the last computation
  for (std::size_t index = 0; index < trace.step.tasks.size(); ++index) {
    const Task& task = trace.step.tasks[index];
    Result<ChakraNode> node = node_of(trace, index, ranks);
    if (!node.ok()) return node.status();
    for (const std::string& name : task.after) node->data_deps.push_back(ids.at(name));
    const std::vector<std::uint64_t>& waited = node->data_deps;
    if (computed && std::find(waited.begin(), waited.end(), *computed) == waited.end()) {
      node->ctrl_deps.push_back(*computed);
      node->program_order = true;
    }
    ids.emplace(task.name, index);
    if (!task.collective) computed = index;
    chakra.nodes.push_back(std::move(*node));
  }
  return chakra_json(chakra);
}

}  // namespace plait::plan::step

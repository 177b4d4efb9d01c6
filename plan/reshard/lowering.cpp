#include "plan/reshard/lowering.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace plait::plan::reshard {

namespace {

std::shared_ptr<const BlockOwners> owners_of(const Plan& plan, std::size_t ranks) {
  auto owners = std::make_shared<BlockOwners>();
  owners->blocks = plan.blocks;
  owners->inputs.resize(ranks);
  owners->outputs.resize(ranks);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const UnitTask& task = plan.unit.tasks[i];
    const TaskPlan& planned = plan.tasks[i];
    for (std::uint32_t chunk = 0; chunk < planned.chunks; ++chunk) {
      const BlockId block = planned.first_block + chunk;
      owners->origin.push_back(plan.unit.holders(task).front());
      for (const int rank : plan.unit.holders(task)) owners->inputs[static_cast<std::size_t>(rank)].push_back(block);
      for (const int rank : plan.unit.receivers(task)) owners->outputs[static_cast<std::size_t>(rank)].push_back(block);
    }
  }
  return owners;
}

class Lowering {
 public:
  Lowering(const Plan& plan, std::span<const int> host_of, Builder& builder)
      : plan_(plan), host_of_(host_of), builder_(builder), sent_(host_of.size()), received_(host_of.size()) {}

  // The legs in the order of their schedule, then what stays within the hosts.
  void run() {
    for (const int leg : plan_.schedule.order) add_leg(static_cast<std::size_t>(leg));
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) add_near(task);
  }

 private:
  const TaskPlan& task_of(const Leg& leg) const { return plan_.tasks[static_cast<std::size_t>(leg.task)]; }

  // The holder on that host that has sent the least; without balance the first.
  int sender_on(int host, std::size_t task, std::uint64_t bytes) {
    int chosen = -1;
    for (const int rank : plan_.unit.holders(plan_.unit.tasks[task])) {
      if (host_of_[static_cast<std::size_t>(rank)] != host) continue;
      if (chosen < 0 || (plan_.options.scheduler != Scheduler::naive &&
                         sent_[static_cast<std::size_t>(rank)] < sent_[static_cast<std::size_t>(chosen)]))
        chosen = rank;
    }
    sent_[static_cast<std::size_t>(chosen)] += bytes;
    return chosen;
  }

  // The ranks of a host in the order of a chain: the one that has taken the least from the network takes this as well.
  std::vector<int> chain_of(const HostGroup& group, std::uint64_t bytes) {
    std::vector<int> chain = group.ranks;
    const auto entry =
        std::ranges::min_element(chain, {}, [&](int rank) { return received_[static_cast<std::size_t>(rank)]; });
    std::rotate(chain.begin(), entry, chain.end());
    received_[static_cast<std::size_t>(chain.front())] += bytes;
    return chain;
  }

  void move(int from, int to, BlockId first, std::uint32_t count) {
    blocks_.resize(count);
    std::iota(blocks_.begin(), blocks_.end(), first);
    builder_.move(from, to, blocks_);
  }

  void add_leg(std::size_t index) {
    const Leg& leg = plan_.legs[index];
    const auto task = static_cast<std::size_t>(leg.task);
    const std::uint64_t bytes = plan_.unit.tasks[task].bytes;
    const int sender = sender_on(plan_.schedule.sender[index], task, bytes);
    std::vector<HostGroup> groups;
    for (const int group : leg.groups) groups.push_back(task_of(leg).far[static_cast<std::size_t>(group)]);
    switch (plan_.options.strategy) {
      case Strategy::send_recv:
        return move(sender, leg.receiver.front(), task_of(leg).first_block, task_of(leg).chunks);
      case Strategy::local_allgather:
        return add_local_allgather(task_of(leg), sender, groups.front().ranks);
      case Strategy::global_allgather:
        return add_global_allgather(task_of(leg), sender, groups);
      case Strategy::broadcast:
        return add_broadcast(task_of(leg), sender, groups, bytes);
    }
  }

  // A chain over the hosts, each entered once; where a chunk has come in it first goes on to the next host, then from
  // rank to rank of its own.
  void add_broadcast(const TaskPlan& task, int sender, const std::vector<HostGroup>& groups, std::uint64_t bytes) {
    std::vector<std::vector<int>> chains;
    for (const HostGroup& group : groups) chains.push_back(chain_of(group, bytes));
    for (std::uint32_t chunk = 0; chunk < task.chunks; ++chunk) {
      int from = sender;
      for (const std::vector<int>& chain : chains) {
        move(from, chain.front(), task.first_block + chunk, 1);
        from = chain.front();
      }
      for (const std::vector<int>& chain : chains)
        for (std::size_t i = 1; i < chain.size(); ++i) move(chain[i - 1], chain[i], task.first_block + chunk, 1);
    }
  }

  // Part `index` of `parts` of a task's blocks.
  static std::pair<BlockId, std::uint32_t> part(const TaskPlan& task, std::size_t parts, std::size_t index) {
    const auto boundary = [&](std::size_t i) { return static_cast<std::uint32_t>(task.chunks * i / parts); };
    return {task.first_block + boundary(index), boundary(index + 1) - boundary(index)};
  }

  void add_local_allgather(const TaskPlan& task, int sender, const std::vector<int>& ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto [first, count] = part(task, ranks.size(), i);
      if (count > 0) move(sender, ranks[i], first, count);
    }
    for (std::size_t distance = 1; distance < ranks.size(); ++distance)
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const auto [first, count] = part(task, ranks.size(), i);
        if (count > 0) move(ranks[i], ranks[(i + distance) % ranks.size()], first, count);
      }
  }

  void add_global_allgather(const TaskPlan& task, int sender, const std::vector<HostGroup>& groups) {
    std::vector<int> ring;
    for (const HostGroup& group : groups) ring.insert(ring.end(), group.ranks.begin(), group.ranks.end());
    const std::size_t size = ring.size();
    for (std::size_t i = 0; i < size; ++i) {
      const auto [first, count] = part(task, size, i);
      if (count > 0) move(sender, ring[i], first, count);
    }
    for (std::size_t step = 0; step + 1 < size; ++step)
      for (std::size_t i = 0; i < size; ++i) {
        const auto [first, count] = part(task, size, (i + size - step) % size);
        if (count > 0) move(ring[i], ring[(i + 1) % size], first, count);
      }
  }

  void add_near(std::size_t index) {
    const TaskPlan& task = plan_.tasks[index];
    const std::uint64_t bytes = plan_.unit.tasks[index].bytes;
    for (const HostGroup& group : task.near) {
      const int sender = sender_on(group.host, index, bytes);
      if (plan_.options.strategy == Strategy::send_recv) {
        for (const int rank : group.ranks) move(sender, rank, task.first_block, task.chunks);
      } else if (plan_.options.strategy == Strategy::broadcast) {
        add_broadcast(task, sender, {group}, bytes);
      } else {
        add_local_allgather(task, sender, group.ranks);
      }
    }
  }

  const Plan& plan_;
  std::span<const int> host_of_;
  Builder& builder_;
  std::vector<std::uint64_t> sent_, received_;  // by rank, bytes
  std::vector<BlockId> blocks_;
};

// First of the elements of a chunk; without overflow of elements * chunk.
std::int64_t chunk_begin(std::int64_t elements, std::int64_t chunks, std::int64_t chunk) {
  return elements / chunks * chunk + std::min(chunk, elements % chunks);
}

// Appends the grids of the cells of one side, one for each unit task.
std::vector<BlockPlaces::Cell> side_of(const Plan& plan, const Box& local, std::size_t element_bytes,
                                       std::uint32_t cells, const auto& block_at, std::vector<RunGrid>& grids) {
  std::vector<BlockPlaces::Cell> side;
  std::size_t task = 0;
  bool has_grid = false;
  for (std::uint32_t cell = 0; cell < cells; ++cell) {
    const BlockId block = block_at(cell);
    for (; block >= plan.tasks[task].first_block + plan.tasks[task].chunks; ++task) has_grid = false;
    const Box& box = plan.unit.tasks[task].box;
    if (!has_grid) grids.push_back(grid_of(box, local, element_bytes));
    has_grid = true;
    const std::int64_t first =
        chunk_begin(box.elements(), plan.tasks[task].chunks, block - plan.tasks[task].first_block);
    side.push_back({static_cast<std::uint32_t>(grids.size() - 1), static_cast<std::uint64_t>(first) * element_bytes});
  }
  return side;
}

}  // namespace

Result<LoweredPlan> lower(const Plan& plan, std::span<const int> host_of, Routes routes) {
  const Semantics semantics(owners_of(plan, host_of.size()));
  Builder builder(semantics, std::move(routes));
  builder.keep_order_of_sends();
  Lowering(plan, host_of, builder).run();
  return builder.finish();
}

Box shard_of(const Mesh& mesh, const ShardingSpec& spec, const std::vector<std::int64_t>& shape, int rank) {
  const auto found = std::ranges::find(mesh.ranks, rank);
  if (found == mesh.ranks.end()) return {static_cast<int>(shape.size()), {}};
  return shard(mesh, spec, shape, static_cast<int>(found - mesh.ranks.begin()));
}

// Dimensions that the piece covers entirely are one run with the one before them, or one level.
RunGrid grid_of(const Box& piece, const Box& local, std::size_t element_bytes) {
  RunGrid grid;
  bool in_run = true;
  std::uint64_t stride = element_bytes;  // of one step in the dimension, in the buffer
  for (int d = piece.dimensions; d-- > 0;) {
    const auto at = static_cast<std::size_t>(d);
    const auto count = static_cast<std::uint64_t>(piece.length(d));
    grid.origin += static_cast<std::uint64_t>(piece.extent[at].begin - local.extent[at].begin) * stride;
    RunGrid::Level* inner = grid.levels > 0 ? &grid.level[static_cast<std::size_t>(grid.levels - 1)] : nullptr;
    if (in_run)
      grid.run = stride * count;
    else if (inner != nullptr && inner->count * inner->stride == stride)
      inner->count *= count;
    else if (count > 1)
      grid.level[static_cast<std::size_t>(grid.levels++)] = {count, stride};
    in_run = in_run && count == static_cast<std::uint64_t>(local.length(d));
    stride *= static_cast<std::uint64_t>(local.length(d));
  }
  return grid;
}

BlockPlaces places_of(const Task& task, const Plan& plan, const Semantics& semantics, int rank) {
  BlockPlaces places;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const std::int64_t elements = plan.unit.tasks[i].box.elements(), chunks = plan.tasks[i].chunks;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      places.bytes.push_back(
          static_cast<std::uint64_t>(chunk_begin(elements, chunks, chunk + 1) - chunk_begin(elements, chunks, chunk)) *
          task.element_bytes);
  }
  places.input = side_of(
      plan, shard_of(task.source, task.source_spec, task.shape, rank), task.element_bytes, semantics.input_cells(rank),
      [&](std::uint32_t cell) { return semantics.input_block(rank, cell); }, places.grids);
  places.output = side_of(
      plan, shard_of(task.destination, task.destination_spec, task.shape, rank), task.element_bytes,
      semantics.output_cells(rank), [&](std::uint32_t cell) { return semantics.output_block(rank, cell); },
      places.grids);
  return places;
}

}  // namespace plait::plan::reshard

#include "plugin/communicator.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <string>

#include "core/intern.h"
#include "core/log.h"
#include "plan/choose/planner.h"
#include "plugin/fusion.h"
#include "plugin/machinery.h"
#include "plugin/persistent_space.h"
#include "plugin/job.h"
#include "plugin/process_grid.h"
#include "plugin/progress.h"
#include "plugin/reasons.h"

namespace plait::plugin {

thread_local constinit detail::CommunicatorCache detail::communicator_cache;
constinit std::atomic<std::uint64_t> detail::communicator_generation{1};

namespace {

constinit int keyval = MPI_KEYVAL_INVALID;

// All that are alive, for the end of the job. The lock is never held across a call into MPI.
struct Registry {
  std::mutex guard;
  Communicator* first = nullptr;

  void add(Communicator& communicator) {
    const std::scoped_lock lock(guard);
    communicator.next = first;
    if (first != nullptr) first->previous = &communicator;
    first = &communicator;
  }
  void remove(Communicator& communicator) {
    const std::scoped_lock lock(guard);
    if (communicator.next != nullptr) communicator.next->previous = communicator.previous;
    if (communicator.previous != nullptr)
      communicator.previous->next = communicator.next;
    else
      first = communicator.next;
  }
};
constinit Registry registry;

// For a communicator's state when there is no memory for one: the other ranks have theirs, and a rank without would
// leave its calls to the host alone. It is enough for a moment's lack.
struct Spare {
  alignas(Communicator) std::array<std::byte, sizeof(Communicator)> room;
  std::atomic<bool> used{false};
};
constinit Spare spare{};

Communicator* new_communicator(MPI_Comm handle) {
  void* room = ::operator new(sizeof(Communicator), std::nothrow);
  if (room == nullptr) {
    if (spare.used.exchange(true)) throw std::bad_alloc();
    room = spare.room.data();
  }
  return new (room) Communicator(handle);  // which throws nothing
}

void delete_communicator(Communicator* communicator) {
  communicator->~Communicator();
  if (reinterpret_cast<std::byte*>(communicator) == spare.room.data())
    spare.used = false;
  else
    ::operator delete(communicator);
}

int destroy_communicator(MPI_Comm, int, void* value, void*) {
  auto* communicator = static_cast<Communicator*>(value);
  retire(*communicator);
  // Its requests outlive it.
  if (communicator->persistent != nullptr) communicator->persistent->communicator().handle = MPI_COMM_NULL;
  registry.remove(*communicator);
  detail::communicator_generation.fetch_add(1, std::memory_order_acq_rel);
  delete_communicator(communicator);
  return MPI_SUCCESS;
}

Communicator* make_communicator(MPI_Comm handle) {
  Communicator* communicator = new_communicator(handle);
  registry.add(*communicator);
  if (PMPI_Comm_set_attr(handle, keyval, communicator) == MPI_SUCCESS) return communicator;
  destroy_communicator(handle, keyval, communicator, nullptr);
  return nullptr;
}

// A communicator's ranks in MPI_COMM_WORLD.
class WorldRanks {
 public:
  explicit WorldRanks(MPI_Comm comm) {
    PMPI_Comm_group(comm, &group_);
    PMPI_Comm_group(MPI_COMM_WORLD, &world_);
  }
  ~WorldRanks() {
    PMPI_Group_free(&group_);
    PMPI_Group_free(&world_);
  }
  WorldRanks(const WorldRanks&) = delete;
  WorldRanks& operator=(const WorldRanks&) = delete;
  // Negative: not in it.
  int of(int rank) const {
    int translated = MPI_UNDEFINED;
    return PMPI_Group_translate_ranks(group_, 1, &rank, world_, &translated) == MPI_SUCCESS ? translated
                                                                                            : MPI_UNDEFINED;
  }

 private:
  MPI_Group group_ = MPI_GROUP_NULL, world_ = MPI_GROUP_NULL;
};

std::vector<int> world_ranks(MPI_Comm comm, int ranks) {
  const WorldRanks world(comm);
  std::vector<int> translated;
  for (int rank = 0; rank < ranks; ++rank) translated.push_back(world.of(rank));
  return translated;
}

// Who is of another MPI_COMM_WORLD (spawned, connected) agreed on nothing with this process, and may lack Plait. All
// ranks see some such rank, or none does. Allocates nothing: it must not fail on some ranks alone.
bool of_one_job(MPI_Comm comm, int ranks) {
  int in_world = 0, rank = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &in_world);
  if (comm == MPI_COMM_WORLD || ranks > in_world) return comm == MPI_COMM_WORLD;
  const WorldRanks world(comm);
  while (rank < ranks && world.of(rank) >= 0) ++rank;
  return rank == ranks;
}

// Once a process: a program may make many.
void say_too_large(int ranks) {
  static constinit std::atomic<bool> said{false};
  if (!job().first_rank || said.exchange(true)) return;
  info("a communicator of " + std::to_string(ranks) + " ranks is left to the host MPI: plans are made for up to " +
       std::to_string(most_planned_ranks));
}

// Where memory is short the first call that needs them asks again.
void reserve(Lists& lists, std::size_t ranks) {
  try {
    lists.counts.reserve(ranks);
    lists.displacements.reserve(ranks);
    lists.sends.reserve(ranks);
    lists.receives.reserve(ranks);
  } catch (const std::exception&) {
  }
}

// For the report only: no reason to fail where memory is short.
const char* grid_text(MPI_Comm comm, int ranks) {
  try {
    const auto axes = grid_axes(world_ranks(comm, ranks));
    return axes.has_value() ? intern(text(*axes)) : "";
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace

const char* reasons::of_communicator(bool inter, int ranks) {
  if (inter) return reasons::inter_communicator;
  if (ranks == 1) return reasons::one_rank;
  return ranks > most_planned_ranks ? plan::reasons::too_large : nullptr;
}

Communicator::Communicator(MPI_Comm comm) : handle(comm) {
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_rank(comm, &rank);
  inter = is_inter != 0;
  if (inter) {
    int remote = 0;
    PMPI_Comm_remote_size(comm, &remote);
    ranks += remote;
  }
  const char* reason = reasons::of_communicator(inter, ranks);
  if (reason == plan::reasons::too_large) say_too_large(ranks);
  if (reason == nullptr && !of_one_job(comm, ranks)) reason = reasons::several_jobs;
  if (reason != nullptr) {
    host_reason = reason;
    road = Road::host;
  } else {
    reserve(lists, static_cast<std::size_t>(ranks));
  }
  if (!inter && ranks > 1 && reporting()) grid = grid_text(comm, ranks);
}

Communicator::~Communicator() = default;

void start_communicators() { PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, destroy_communicator, &keyval, nullptr); }

void stop_communicators() {
  if (keyval != MPI_KEYVAL_INVALID) PMPI_Comm_free_keyval(&keyval);
}

void free_all_communicators() {
  while (true) {
    MPI_Comm handle = MPI_COMM_NULL;
    {
      const std::scoped_lock lock(registry.guard);
      if (registry.first == nullptr) return;
      handle = registry.first->handle;
    }
    if (PMPI_Comm_delete_attr(handle, keyval) != MPI_SUCCESS) return;
  }
}

Communicator* detail::find_communicator_slowly(MPI_Comm handle) {
  if (handle == MPI_COMM_NULL) return nullptr;
  const std::uint64_t generation = communicator_generation.load(std::memory_order_acquire);
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(handle, keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  auto* communicator = found != 0 ? static_cast<Communicator*>(value) : make_communicator(handle);
  if (communicator != nullptr)
    communicator_cache.line[CommunicatorCache::index(handle)] = {handle, communicator, generation};
  return communicator;
}

}  // namespace plait::plugin

#include "plugin/mpi/call/host_copies.h"

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <utility>

#include "plugin/mpi/types/types.h"
#include "runtime/device/device_flow.h"
#include "runtime/device/pinned_memory.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/device_data.h"

namespace plait::plugin {
namespace {

// More than any process has of memory: data at absolute addresses in both kinds.
constexpr std::uintptr_t too_wide = std::uintptr_t{1} << 42;

std::byte* moved(const void* address, std::ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(address) + bytes);
}

// What an implementation says of itself, by the function that it has for that.
bool host_knows_devices() {
#if defined(OPEN_MPI) && defined(OMPI_HAVE_MPI_EXT_CUDA) && OMPI_HAVE_MPI_EXT_CUDA
  return MPIX_Query_cuda_support() != 0;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#else
  return false;
#endif
}

}  // namespace

bool host_may_need_copies_slowly() {
  static const bool ignorant = !host_knows_devices();
  return tl::has_device_driver() && ignorant;
}

// ---- One side ----

void HostCopies::add(Side& side, const void* address, std::size_t count, MPI_Datatype type) {
  const Datatype* facts = count > 0 && address != MPI_IN_PLACE ? find_datatype(type) : nullptr;
  if (facts == nullptr || facts->size == 0) return;  // none, or the host's error
  Part part{.place = moved(address, 0), .count = count, .extent = facts->extent};
  if (side.driver == nullptr) side.driver = runtime::device_under(part.place, *facts);
  if (facts->contiguous) {
    part.runs.push_back({0, facts->size * count});
    part.count = 1;
  } else {
    part.runs = runtime::caller().runs(*facts);
  }
  side.parts.push_back(std::move(part));
}

void HostCopies::add(Side& side, const void* address, const Pieces& pieces) {
  if (address == MPI_IN_PLACE || pieces.counts == nullptr) return;
  std::ptrdiff_t unit = 1;
  if (pieces.types == nullptr) {
    const Datatype* facts = find_datatype(pieces.type);
    if (facts == nullptr) return;
    unit = facts->extent;
  }
  for (int place = 0; place < pieces.places; ++place) {
    if (pieces.counts[place] <= 0) continue;
    const std::ptrdiff_t displacement = pieces.long_displacements != nullptr ? pieces.long_displacements[place]
                                        : pieces.displacements != nullptr    ? unit * pieces.displacements[place]
                                                                             : 0;
    add(side, moved(address, displacement), static_cast<std::size_t>(pieces.counts[place]),
        pieces.types != nullptr ? pieces.types[place] : pieces.type);
  }
}

// The copies stand to each other as the program's data do.
std::ptrdiff_t HostCopies::keep(Side&& side) {
  if (side.driver == nullptr) return 0;
  std::uintptr_t lowest = std::numeric_limits<std::uintptr_t>::max(), highest = 0;
  for (const Part& part : side.parts)
    for (const ByteRun& run : part.runs)
      for (const std::size_t element : {std::size_t{0}, part.count - 1}) {
        const auto begin = reinterpret_cast<std::uintptr_t>(
            moved(part.place, static_cast<std::ptrdiff_t>(element) * part.extent + run.begin));
        lowest = std::min(lowest, begin);
        highest = std::max(highest, begin + run.bytes);
      }
  if (highest - lowest > too_wide) throw std::bad_alloc();
  constexpr std::size_t alignment = 64;  // the copies are aligned as the data are
  side.bytes = highest - lowest + 2 * alignment;
  side.memory.reset(new std::byte[side.bytes]);
  const auto begin = reinterpret_cast<std::uintptr_t>(side.memory.get());
  const std::uintptr_t aligned = (begin + alignment - 1) / alignment * alignment + lowest % alignment;
  side.shift = static_cast<std::ptrdiff_t>(aligned - lowest);
  const std::ptrdiff_t shift = side.shift;
  sides_.push_back(std::move(side));
  return shift;
}

void HostCopies::replace(const void*& sent, std::size_t count, MPI_Datatype type) {
  Side side;
  add(side, sent, count, type);
  sent = moved(sent, keep(std::move(side)));
}

void HostCopies::replace(void*& received, std::size_t count, MPI_Datatype type) {
  Side side{.parts = {}, .received = true, .memory = nullptr};
  add(side, received, count, type);
  received = moved(received, keep(std::move(side)));
}

void HostCopies::replace(const void*& sent, const Pieces& pieces) {
  Side side;
  add(side, sent, pieces);
  sent = moved(sent, keep(std::move(side)));
}

void HostCopies::replace(void*& received, const Pieces& pieces) {
  Side side{.parts = {}, .received = true, .memory = nullptr};
  add(side, received, pieces);
  received = moved(received, keep(std::move(side)));
}

// Between the packed data and the copies that the host sees.
void HostCopies::copy_here(const Side& side, std::byte* packed, Way way) {
  for (const Part& part : side.parts)
    for (std::size_t element = 0; element < part.count; ++element)
      for (const ByteRun& run : part.runs) {
        std::byte* here =
            moved(part.place, static_cast<std::ptrdiff_t>(element) * part.extent + run.begin + side.shift);
        if (way == Way::bring)
          std::memcpy(here, packed, run.bytes);
        else
          std::memcpy(packed, here, run.bytes);
        packed += run.bytes;
      }
}

// Packed on the way. The call waits for it.
Status HostCopies::move(const Side& side, Way way) {
  tl::DeviceMemory memory;
  std::size_t all = 0;
  for (const Part& part : side.parts)
    for (const ByteRun& run : part.runs) {
      all += run.bytes * part.count;
      if (memory.kind != tl::MemoryKind::device) memory = side.driver->memory_at(moved(part.place, run.begin));
    }
  runtime::PinnedMemory pinned;
  runtime::DeviceFlow flow;
  std::byte* packed = pinned.reserve(all, *side.driver, memory);
  flow.follow_program(*side.driver, memory);
  if (Status started = flow.start(); !started.ok()) return started;
  if (way == Way::take) copy_here(side, packed, way);
  std::byte* next = packed;
  for (const Part& part : side.parts) {
    std::size_t bytes = 0;
    for (const ByteRun& run : part.runs) bytes += run.bytes;
    const bool dense = part.runs.size() == 1 && part.count == 1 && part.runs.front().begin == 0;
    runtime::DeviceView& view = way == Way::bring ? flow.bring(next) : flow.take(next, true);
    view.start(*side.driver, memory,
               {.bytes = bytes, .extent = part.extent, .runs = dense ? std::span<const ByteRun>() : part.runs});
    view.add(part.place, part.count);
    next += bytes * part.count;
  }
  const BoundSchedule nothing;
  flow.begin(nothing, {}, false);
  std::vector<std::uint32_t> released;
  while (!flow.complete())
    if (const Result<bool> moved_on = flow.progress(released); !moved_on.ok()) return moved_on.status();
  flow.end();
  if (way == Way::bring) copy_here(side, packed, way);
  return {};
}

Status HostCopies::bring() const {
  for (const Side& side : sides_)
    if (Status status = move(side, Way::bring); !status.ok()) return status;
  return {};
}

Status HostCopies::take() const {
  for (const Side& side : sides_)
    if (side.received)
      if (Status status = move(side, Way::take); !status.ok()) return status;
  return {};
}

void HostCopies::spoil() const noexcept {
  for (const Side& side : sides_) std::memset(side.memory.get(), 0xff, side.bytes);
}

// ---- What is significant of each collective ----

namespace {

using Pieces = HostCopies::Pieces;

// The ranks that this one exchanges data with: of the other group, where there are two.
struct Ranks {
  int number = 0, own = 0;
  bool inter = false;
};

Ranks ranks_of(MPI_Comm comm) {
  Ranks ranks;
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  ranks.inter = inter != 0;
  PMPI_Comm_rank(comm, &ranks.own);
  if (ranks.inter)
    PMPI_Comm_remote_size(comm, &ranks.number);
  else
    PMPI_Comm_size(comm, &ranks.number);
  return ranks;
}

// Who gives and gets what of a collective with a root.
struct Roles {
  bool root = false, other = false;
};
Roles roles(MPI_Comm comm, int root) {
  const Ranks ranks = ranks_of(comm);
  if (ranks.inter) return {.root = root == MPI_ROOT, .other = root != MPI_ROOT && root != MPI_PROC_NULL};
  return {.root = ranks.own == root, .other = true};
}

std::size_t times(int count, int number) {
  return count > 0 && number > 0 ? static_cast<std::size_t>(count) * static_cast<std::size_t>(number) : 0;
}

struct Edges {
  int sources = 0, destinations = 0;
};
Edges edges_of(MPI_Comm comm) {
  Edges edges;
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    edges = {2 * dimensions, 2 * dimensions};
  } else if (topology == MPI_GRAPH) {
    int own = 0, neighbors = 0;
    PMPI_Comm_rank(comm, &own);
    PMPI_Graph_neighbors_count(comm, own, &neighbors);
    edges = {neighbors, neighbors};
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &edges.sources, &edges.destinations, &weighted);
  }
  return edges;
}

void reduce_alike(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type) {
  copies.replace(send, times(count, 1), type);
  copies.replace(receive, times(count, 1), type);
}

}  // namespace

namespace host_copies {

void barrier(HostCopies&, MPI_Comm) {}

void bcast(HostCopies& copies, void*& buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const Roles role = roles(comm, root);
  if (role.root) {
    const void* sent = buffer;
    copies.replace(sent, times(count, 1), type);
    buffer = const_cast<void*>(sent);
  } else if (role.other) {
    copies.replace(buffer, times(count, 1), type);
  }
}

void reduce(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op, int root,
            MPI_Comm comm) {
  const Roles role = roles(comm, root);
  if (role.other) copies.replace(send, times(count, 1), type);
  if (role.root) copies.replace(receive, times(count, 1), type);
}

void allreduce(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op, MPI_Comm) {
  reduce_alike(copies, send, receive, count, type);
}

void allgather(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
               MPI_Datatype type, MPI_Comm comm) {
  copies.replace(send, times(send_count, 1), send_type);
  copies.replace(receive, times(count, ranks_of(comm).number), type);
}

void allgatherv(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm comm) {
  copies.replace(send, times(send_count, 1), send_type);
  copies.replace(receive, Pieces{ranks_of(comm).number, counts, displacements, type});
}

void gather(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
            MPI_Datatype type, int root, MPI_Comm comm) {
  const Roles role = roles(comm, root);
  if (role.other) copies.replace(send, times(send_count, 1), send_type);
  if (role.root) copies.replace(receive, times(count, ranks_of(comm).number), type);
}

void scatter(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
             MPI_Datatype type, int root, MPI_Comm comm) {
  const Roles role = roles(comm, root);
  if (role.root) copies.replace(send, times(send_count, ranks_of(comm).number), send_type);
  if (role.other) copies.replace(receive, times(count, 1), type);
}

void alltoall(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
              MPI_Datatype type, MPI_Comm comm) {
  const int ranks = ranks_of(comm).number;
  copies.replace(send, times(send_count, ranks), send_type);
  copies.replace(receive, times(count, ranks), type);
}

void reduce_scatter_block(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op,
                          MPI_Comm comm) {
  const bool in_place = send == MPI_IN_PLACE;
  Ranks ranks = ranks_of(comm);
  if (ranks.inter) PMPI_Comm_size(comm, &ranks.number);
  copies.replace(send, times(count, ranks.number), type);
  copies.replace(receive, times(count, in_place ? ranks.number : 1), type);
}

void reduce_scatter(HostCopies& copies, const void*& send, void*& receive, const int counts[], MPI_Datatype type,
                    MPI_Op, MPI_Comm comm) {
  if (counts == nullptr) return;
  const bool in_place = send == MPI_IN_PLACE;
  Ranks ranks = ranks_of(comm);
  if (ranks.inter) PMPI_Comm_size(comm, &ranks.number);
  const auto all = std::accumulate(counts, counts + ranks.number, std::ptrdiff_t{0});
  const auto elements = static_cast<std::size_t>(std::max<std::ptrdiff_t>(all, 0));
  copies.replace(send, elements, type);
  copies.replace(receive, in_place ? elements : times(counts[ranks.own], 1), type);
}

void alltoallv(HostCopies& copies, const void*& send, const int send_counts[], const int send_displacements[],
               MPI_Datatype send_type, void*& receive, const int counts[], const int displacements[], MPI_Datatype type,
               MPI_Comm comm) {
  const int ranks = ranks_of(comm).number;
  copies.replace(send, Pieces{ranks, send_counts, send_displacements, send_type});
  copies.replace(receive, Pieces{ranks, counts, displacements, type});
}

void alltoallw(HostCopies& copies, const void*& send, const int send_counts[], const int send_displacements[],
               const MPI_Datatype send_types[], void*& receive, const int counts[], const int displacements[],
               const MPI_Datatype types[], MPI_Comm comm) {
  const int ranks = ranks_of(comm).number;
  copies.replace(send, Pieces{ranks, send_counts, send_displacements, MPI_DATATYPE_NULL, send_types});
  copies.replace(receive, Pieces{ranks, counts, displacements, MPI_DATATYPE_NULL, types});
}

void gatherv(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
             const int counts[], const int displacements[], MPI_Datatype type, int root, MPI_Comm comm) {
  const Roles role = roles(comm, root);
  if (role.other) copies.replace(send, times(send_count, 1), send_type);
  if (role.root) copies.replace(receive, Pieces{ranks_of(comm).number, counts, displacements, type});
}

void scatterv(HostCopies& copies, const void*& send, const int counts[], const int displacements[],
              MPI_Datatype send_type, void*& receive, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const Roles role = roles(comm, root);
  if (role.root) copies.replace(send, Pieces{ranks_of(comm).number, counts, displacements, send_type});
  if (role.other) copies.replace(receive, times(count, 1), type);
}

void scan(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op, MPI_Comm) {
  reduce_alike(copies, send, receive, count, type);
}

void exscan(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op, MPI_Comm) {
  reduce_alike(copies, send, receive, count, type);
}

void neighbor_allgather(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                        int count, MPI_Datatype type, MPI_Comm comm) {
  copies.replace(send, times(send_count, 1), send_type);
  copies.replace(receive, times(count, edges_of(comm).sources), type);
}

void neighbor_allgatherv(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                         const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm comm) {
  copies.replace(send, times(send_count, 1), send_type);
  copies.replace(receive, Pieces{edges_of(comm).sources, counts, displacements, type});
}

void neighbor_alltoall(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                       int count, MPI_Datatype type, MPI_Comm comm) {
  const Edges edges = edges_of(comm);
  copies.replace(send, times(send_count, edges.destinations), send_type);
  copies.replace(receive, times(count, edges.sources), type);
}

void neighbor_alltoallv(HostCopies& copies, const void*& send, const int send_counts[], const int send_displacements[],
                        MPI_Datatype send_type, void*& receive, const int counts[], const int displacements[],
                        MPI_Datatype type, MPI_Comm comm) {
  const Edges edges = edges_of(comm);
  copies.replace(send, Pieces{edges.destinations, send_counts, send_displacements, send_type});
  copies.replace(receive, Pieces{edges.sources, counts, displacements, type});
}

void neighbor_alltoallw(HostCopies& copies, const void*& send, const int send_counts[],
                        const MPI_Aint send_displacements[], const MPI_Datatype send_types[], void*& receive,
                        const int counts[], const MPI_Aint displacements[], const MPI_Datatype types[], MPI_Comm comm) {
  const Edges edges = edges_of(comm);
  copies.replace(send,
                 Pieces{edges.destinations, send_counts, nullptr, MPI_DATATYPE_NULL, send_types, send_displacements});
  copies.replace(receive, Pieces{edges.sources, counts, nullptr, MPI_DATATYPE_NULL, types, displacements});
}

}  // namespace host_copies
}  // namespace plait::plugin

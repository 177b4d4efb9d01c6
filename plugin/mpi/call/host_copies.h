// Calls that the host MPI takes with data in memory of a device that it knows nothing of: it gets copies in the
// processor's memory, laid out as the program's data are, and what it has received there goes to the device afterwards.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/status.h"
#include "plugin/layer.h"
#include "plugin/lists/collective_functions.h"
#include "runtime/types/layout.h"
#include "tl/device/device_memory.h"

namespace plait::plugin {

// Of one call. Everything but take() may throw std::bad_alloc.
class HostCopies {
 public:
  // Replace an address that the call names, where some of its data lie in memory of a device. In place (MPI_IN_PLACE)
  // there are none.
  void replace(const void*& sent, std::size_t count, MPI_Datatype type);
  void replace(void*& received, std::size_t count, MPI_Datatype type);
  // The same of `places` pieces, their displacements in extents of the type, or in bytes with types of their own.
  struct Pieces {
    int places = 0;
    const int* counts = nullptr;
    const int* displacements = nullptr;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const MPI_Datatype* types = nullptr;
    const MPI_Aint* long_displacements = nullptr;
  };
  void replace(const void*& sent, const Pieces& pieces);
  void replace(void*& received, const Pieces& pieces);

  bool any() const { return !sides_.empty(); }
  // Before the host's call, and after it. What is received is brought as well: the host may leave some of it as it is.
  Status bring() const;
  Status take() const;
  // After bring() has failed, where the host's call is made all the same, as the other ranks wait in it: what they get
  // of this rank is plainly no number (all bits set).
  void spoil() const noexcept;

 private:
  struct Part {
    std::byte* place = nullptr;  // a null one may have displacements added all the same
    std::size_t count = 0;
    std::ptrdiff_t extent = 0;
    std::vector<ByteRun> runs = {};
  };
  struct Side {
    std::vector<Part> parts;
    const DeviceDriver* driver = nullptr;
    bool received = false;
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;     // of that
    std::ptrdiff_t shift = 0;  // from the program's data to the copies
  };

  static void add(Side& side, const void* address, std::size_t count, MPI_Datatype type);
  static void add(Side& side, const void* address, const Pieces& pieces);
  std::ptrdiff_t keep(Side&& side);
  enum class Way { bring, take };
  static Status move(const Side& side, Way way);
  static void copy_here(const Side& side, std::byte* packed, Way way);

  std::vector<Side> sides_;
};

// Whether such copies may be wanted: a device's driver is in the process, and the host does not say that it knows its
// memory.
bool host_may_need_copies_slowly();
inline bool host_may_need_copies() { return !tl::surely_no_driver() && host_may_need_copies_slowly(); }

// One function of its name a collective, with its arguments: replaces what is significant on this rank.
namespace host_copies {
void barrier(HostCopies& copies, MPI_Comm comm);
void bcast(HostCopies& copies, void*& buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
void reduce(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op op, int root,
            MPI_Comm comm);
void allreduce(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm);
void allgather(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
               MPI_Datatype type, MPI_Comm comm);
void allgatherv(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm comm);
void gather(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
            MPI_Datatype type, int root, MPI_Comm comm);
void scatter(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
             MPI_Datatype type, int root, MPI_Comm comm);
void alltoall(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive, int count,
              MPI_Datatype type, MPI_Comm comm);
void reduce_scatter_block(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm);
void reduce_scatter(HostCopies& copies, const void*& send, void*& receive, const int counts[], MPI_Datatype type,
                    MPI_Op op, MPI_Comm comm);
void alltoallv(HostCopies& copies, const void*& send, const int send_counts[], const int send_displacements[],
               MPI_Datatype send_type, void*& receive, const int counts[], const int displacements[], MPI_Datatype type,
               MPI_Comm comm);
void alltoallw(HostCopies& copies, const void*& send, const int send_counts[], const int send_displacements[],
               const MPI_Datatype send_types[], void*& receive, const int counts[], const int displacements[],
               const MPI_Datatype types[], MPI_Comm comm);
void gatherv(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
             const int counts[], const int displacements[], MPI_Datatype type, int root, MPI_Comm comm);
void scatterv(HostCopies& copies, const void*& send, const int counts[], const int displacements[],
              MPI_Datatype send_type, void*& receive, int count, MPI_Datatype type, int root, MPI_Comm comm);
void scan(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op op,
          MPI_Comm comm);
void exscan(HostCopies& copies, const void*& send, void*& receive, int count, MPI_Datatype type, MPI_Op op,
            MPI_Comm comm);
void neighbor_allgather(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                        int count, MPI_Datatype type, MPI_Comm comm);
void neighbor_allgatherv(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                         const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm comm);
void neighbor_alltoall(HostCopies& copies, const void*& send, int send_count, MPI_Datatype send_type, void*& receive,
                       int count, MPI_Datatype type, MPI_Comm comm);
void neighbor_alltoallv(HostCopies& copies, const void*& send, const int send_counts[], const int send_displacements[],
                        MPI_Datatype send_type, void*& receive, const int counts[], const int displacements[],
                        MPI_Datatype type, MPI_Comm comm);
void neighbor_alltoallw(HostCopies& copies, const void*& send, const int send_counts[],
                        const MPI_Aint send_displacements[], const MPI_Datatype send_types[], void*& receive,
                        const int counts[], const MPI_Aint displacements[], const MPI_Datatype types[], MPI_Comm comm);
}  // namespace host_copies

}  // namespace plait::plugin

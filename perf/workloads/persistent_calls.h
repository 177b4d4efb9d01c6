// MPI 4.0's persistent collectives, by their names without a prefix: Open MPI 4.1 has them as an extension.
#pragma once

#include <mpi.h>

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#endif

namespace plait::perf::workloads {

#if defined(OPEN_MPI) && MPI_VERSION < 4
inline constexpr auto alltoall_init = MPIX_Alltoall_init;
inline constexpr auto allgather_init = MPIX_Allgather_init;
inline constexpr auto reduce_scatter_block_init = MPIX_Reduce_scatter_block_init;
inline constexpr auto bcast_init = MPIX_Bcast_init;
inline constexpr auto allreduce_init = MPIX_Allreduce_init;
#else
inline constexpr auto alltoall_init = MPI_Alltoall_init;
inline constexpr auto allgather_init = MPI_Allgather_init;
inline constexpr auto reduce_scatter_block_init = MPI_Reduce_scatter_block_init;
inline constexpr auto bcast_init = MPI_Bcast_init;
inline constexpr auto allreduce_init = MPI_Allreduce_init;
#endif

}  // namespace plait::perf::workloads

// What the host calls the persistent form of a collective: Open MPI 4.1 has MPI 4.0's as an extension.
#pragma once

#include <mpi.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

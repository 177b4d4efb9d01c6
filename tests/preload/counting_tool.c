/* A PMPI tool as they all are: it defines MPI_ functions, counts, and goes on by the PMPI_ names. Built twice, under
 * two names, to stand before and behind the plugin. */
#include <mpi.h>
#include <stdio.h>

static int allreduces, posted, initialisations;

__attribute__((visibility("default"))) int MPI_Init(int* argc, char*** argv) {
  ++initialisations;
  return PMPI_Init(argc, argv);
}

__attribute__((visibility("default"))) int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type,
                                                         MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return PMPI_Allreduce(send, receive, count, type, op, comm);
}

__attribute__((visibility("default"))) int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type,
                                                          MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  ++posted;
  return PMPI_Iallreduce(send, receive, count, type, op, comm, request);
}

__attribute__((visibility("default"))) int MPI_Finalize(void) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    printf(TOOL_NAME " saw %d initialisation, %d allreduces, %d non-blocking ones\n", initialisations, allreduces,
           posted);
    fflush(stdout);
  }
  return PMPI_Finalize();
}

/* A collective that fails within Plait calls the communicator's error handler once, and returns the code it was given.
 * Receivers of a broadcast leave too little room, so that the messages are truncated: PLAIT_CHANNELS=mpi.
 *   mpirun -n 2 one_error */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "tests/preload/plan_used.h"

static int handled = 0, handled_code = MPI_SUCCESS;
static void count_handled(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++handled;
  handled_code = *code;
}

static int failures = 0;
static void check(int right, const char* what) {
  if (right) return;
  ++failures;
  printf("one_error: wrong: %s\n", what);
}

static void check_error(int code, const char* which) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  check(code != MPI_SUCCESS, which);
  check(handled == 1 && handled_code == code, "calls of the handler");
  MPI_Error_string(code, text, &length);
  check(strncmp(text, "plait: ", 7) == 0, text);
  handled = 0;
}

int main(int argc, char** argv) {
  enum { many = 64, few = 16 };
  int data[many] = {0}, rank;
  MPI_Comm comm;
  MPI_Errhandler counting;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(count_handled, &counting);
  MPI_Comm_set_errhandler(comm, counting);
  for (int call = 0; call < 4; ++call) MPI_Bcast(data, many, MPI_INT, 0, comm);
  check(accelerated(), "no plan");
  const int code = MPI_Bcast(data, rank == 0 ? many : few, MPI_INT, 0, comm);
  if (rank == 1) {
    check_error(code, "the truncated broadcast succeeded");
    check_error(MPI_Bcast(data, many, MPI_INT, 0, comm), "a call after the failed one succeeded");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&counting);
  if (rank == 1) printf("one_error: %s\n", failures == 0 ? "right" : "wrong");
  MPI_Finalize();
  return failures != 0;
}

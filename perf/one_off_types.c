/* A broadcast of 512 bytes between 2 ranks and more, of doubles and of a vector type that is made for the call and
 * freed after it, as the BLACS do: microseconds a call, the fastest of the rounds, making and freeing included. mpirun
 * -n 2 [-x LD_PRELOAD=libplait.so] one_off_types */
#include <mpi.h>
#include <stdio.h>

enum { rounds = 9, calls_a_round = 40000, blocks = 8, block = 8 };

static double data[blocks * block];

static void broadcast_doubles(int root) { MPI_Bcast(data, blocks * block, MPI_DOUBLE, root, MPI_COMM_WORLD); }

static void broadcast_vector(int root) {
  MPI_Datatype vector;
  MPI_Type_vector(blocks, block, block, MPI_DOUBLE, &vector);
  MPI_Type_commit(&vector);
  MPI_Bcast(data, 1, vector, root, MPI_COMM_WORLD);
  MPI_Type_free(&vector);
}

static double microseconds_a_call(void (*broadcast)(int root)) {
  double fastest = 1e9;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int call = 0; call < calls_a_round; ++call) broadcast(call % 2);
    const double took = (MPI_Wtime() - begin) / calls_a_round * 1e6;
    if (took < fastest) fastest = took;
  }
  return fastest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) {
    fputs("one_off_types: expected two or more ranks\n", stderr);
    MPI_Finalize();
    return 2;
  }
  const double doubles = microseconds_a_call(broadcast_doubles), vector = microseconds_a_call(broadcast_vector);
  if (rank == 0) printf("doubles %.2f us, a type of its own %.2f us\n", doubles, vector);
  MPI_Finalize();
  return 0;
}

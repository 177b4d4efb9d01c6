// fork() in a program with libraries that have handlers of their own, registered before Plait's shared heap is there
// and after, while other threads allocate. All memory is as with the C library: the child has its own, as it was at the
// fork.
//   preload_fork_handlers FORKS shared heap|private LIBRARY      where blocks of 64 KiB and more are expected; to be
//   loaded late
// Prints "right" on rank 0, and a line for each thing that is wrong.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "allocating_handlers.h"
#include "in_shared_heap.h"

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

int failures = 0;

void check(bool right, const char* what) {
  if (right || ++failures > 10) return;
  std::printf("wrong: %s\n", what);
  std::fflush(stdout);
}

void check(const handlers_state& library) {
  if (library.failure != nullptr) check(false, library.failure);
}

// A matrix product by OpenBLAS, where the job has it: its threads run from then on, until the next fork.
void multiply() {
  using Product =
      void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
  static const auto product = reinterpret_cast<Product>(dlsym(RTLD_DEFAULT, "cblas_dgemm"));
  if (product == nullptr) return;
  constexpr int n = 200;
  const std::vector<double> a(n * n, 1.0), b(n * n, 2.0);
  std::vector<double> c(n * n, 0.0);
  product(101, 111, 111, n, n, n, 1.0, a.data(), n, b.data(), n, 0.0, c.data(), n);
  check(c[0] == 2.0 * n && c.back() == 2.0 * n, "the matrix product");
}

int in_child(std::vector<char>& block, char mark, const std::vector<const handlers_state*>& libraries) {
  int bad = block.front() == mark && block.back() == mark ? 0 : 1;
  block.assign(block.size(), static_cast<char>(mark + 1));
  for (const handlers_state* library : libraries) bad |= library->failure == nullptr ? 0 : 2;
  std::vector<char> fresh(2 * mebibyte, 7);
  bad |= fresh.back() == 7 ? 0 : 4;
  return bad;
}

void fork_once(std::vector<char>& block, char mark, const std::vector<const handlers_state*>& libraries) {
  block.assign(block.size(), mark);
  multiply();
  const pid_t process = fork();
  if (process == 0) _exit(in_child(block, mark, libraries));
  check(process > 0, "fork");
  int status = -1;
  waitpid(process, &status, 0);
  check(WIFEXITED(status), "the child ended by a signal");
  check((WEXITSTATUS(status) & 1) == 0, "the child's block is not as it was at the fork");
  check((WEXITSTATUS(status) & 2) == 0, "a library's block in the child is not as it was at the fork");
  check((WEXITSTATUS(status) & 4) == 0, "the child's new block");
  check(block.front() == mark && block.back() == mark, "the child wrote to the parent's block");
  for (const handlers_state* library : libraries) check(*library);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int forks = std::atoi(argv[1]);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void* late = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
  if (late == nullptr) {
    std::printf("wrong: %s\n", dlerror());
    return 2;
  }
  const auto start_late = reinterpret_cast<handlers_start_function*>(dlsym(late, "handlers_start_late"));
  const std::vector<const handlers_state*> libraries = {HANDLERS_START(), start_late()};
  const bool shared_heap = std::strcmp(argv[2], "shared_heap") == 0;
  for (const handlers_state* library : libraries)
    check((in_shared_heap(library->block) != 0) == shared_heap, "where the block is");

  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      std::vector<char> block(3 * mebibyte / 2, 1);
      block.resize(2 * mebibyte);
    }
  });
  std::vector<char> block(mebibyte);
  for (int i = 0; i < forks; ++i) fork_once(block, static_cast<char>(i % 100), libraries);
  stop = true;
  other.join();

  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::printf("right\n");
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

// What is special about memory of a device, beside what the differential test compares: data of one call in memory of
// both kinds, resharding, allreduces in groups, and a driver that fails. The driver is the tests' own, linked: device
// memory that the processor touches ends the process.
//
//   device [groups]
// groups: the allreduces of an overlap plan's step (PLAIT_OVERLAP), which the report is to show in groups.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plait/reshard.hpp"
#include "tests/fake_cuda/fake_cuda.h"

namespace {

int rank = 0, ranks = 1;

void check(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "device: wrong: %s, rank %d\n", what.c_str(), rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Integers in memory of the device, or of the processor.
class Numbers {
 public:
  Numbers(std::size_t count, bool on_device) : count_(count), here_(on_device ? 0 : count) {
    CUdeviceptr made = 0;
    if (on_device) check(cuMemAlloc_v2(&made, count * sizeof(int)) == 0, "an allocation of device memory");
    device_ = reinterpret_cast<int*>(made);
  }
  ~Numbers() {
    if (device_ != nullptr) cuMemFree_v2(reinterpret_cast<CUdeviceptr>(device_));
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  int* address() { return device_ != nullptr ? device_ : here_.data(); }
  int* data() { return device_ != nullptr ? static_cast<int*>(fake_cuda_data(device_)) : here_.data(); }
  void fill(int first) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = first + static_cast<int>(i);
  }
  bool are(int first, int factor = 1) {
    for (std::size_t i = 0; i < count_; ++i)
      if (data()[i] != factor * (first + static_cast<int>(i))) return false;
    return true;
  }

 private:
  std::size_t count_;
  std::vector<int> here_;
  int* device_ = nullptr;
};

// A type that holds the addresses itself, of memory of both kinds.
void test_both_kinds(bool first_on_device) {
  constexpr int count = 1000;
  Numbers first(count, first_on_device), second(count, !first_on_device);
  first.fill(rank == 1 ? 7 : 0);
  second.fill(rank == 1 ? 9000 : 0);
  std::array<MPI_Aint, 2> places{};
  MPI_Get_address(first.address(), places.data());
  MPI_Get_address(second.address(), &places[1]);
  MPI_Datatype both = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed_block(2, count, places.data(), MPI_INT, &both);
  MPI_Type_commit(&both);
  MPI_Bcast(MPI_BOTTOM, 1, both, 1, MPI_COMM_WORLD);
  MPI_Type_free(&both);
  check(first.are(7) && second.are(9000), "a broadcast of both kinds of memory");
}

void test_reshard() {
  constexpr std::int64_t rows = 12, columns = 60;
  plait::Reshard plan(MPI_COMM_WORLD, {{ranks}, "S0R", {}}, {{ranks}, "RS0", {}}, {rows, columns}, MPI_INT);
  for (const bool by_request : {false, true}) {
    Numbers source(plan.source_elements(), rank % 2 == 0), destination(plan.destination_elements(), rank % 3 != 0);
    const auto own_rows = rows / ranks, own_columns = columns / ranks;
    source.fill(static_cast<int>(rank * own_rows * columns));
    if (by_request) {
      MPI_Request request = plan.start(source.address(), destination.address());
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      plan.execute(source.address(), destination.address());
    }
    bool right = true;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < own_columns; ++column)
        right &= destination.data()[row * own_columns + column] == row * columns + rank * own_columns + column;
    check(right, "a resharding");
  }
}

void test_groups() {
  constexpr int steps = 20;
  constexpr std::size_t counts[] = {256, 64, 1024};
  for (int step = 0; step < steps; ++step) {
    std::vector<std::unique_ptr<Numbers>> given, taken;
    std::array<MPI_Request, 3> requests{};
    for (std::size_t i = 0; i < 3; ++i) {
      given.push_back(std::make_unique<Numbers>(counts[i], rank != 0));
      taken.push_back(std::make_unique<Numbers>(counts[i], (rank + i) % 2 == 0));
      given.back()->fill(step);
      MPI_Iallreduce(given.back()->address(), taken.back()->address(), static_cast<int>(counts[i]), MPI_INT, MPI_SUM,
                     MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
    for (const auto& numbers : taken) check(numbers->are(step, ranks), "a sum of a group");
  }
}

// Where one rank may pin no more, its data go through other memory.
void test_unpinned() {
  if (rank == 1) fake_cuda_fail("cuMemHostRegister_v2", 0, 2);
  constexpr int count = 3'000'000;  // more than was pinned before
  Numbers numbers(count, true);
  numbers.fill(rank);
  MPI_Allreduce(MPI_IN_PLACE, numbers.address(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  bool right = true;
  for (int i = 0; i < count; ++i) right &= numbers.data()[i] == ranks * i + ranks * (ranks - 1) / 2;
  check(right, "a sum without pinned memory");
  if (rank == 1) fake_cuda_fail("cuMemHostRegister_v2", -1, 2);
}

// What the program has given its default stream before a call is done before the call reads or writes, whenever the
// call itself is moved on.
void test_late_kernel() {
  constexpr unsigned count = 70'000;
  CUfunction add = nullptr;
  check(cuModuleGetFunction(&add, nullptr, "fake_add") == 0, "a kernel");
  for (const bool posted : {false, true}) {
    Numbers numbers(count, true);
    numbers.fill(0);
    auto address = reinterpret_cast<CUdeviceptr>(numbers.address());
    unsigned length = count;
    int term = 5;
    std::array<void*, 3> parameters{&address, &length, &term};
    cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr);
    MPI_Request request = MPI_REQUEST_NULL;
    if (posted)
      MPI_Iallreduce(MPI_IN_PLACE, numbers.address(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    else
      MPI_Allreduce(MPI_IN_PLACE, numbers.address(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(numbers.are(5, ranks), "a sum behind a kernel");
  }
}

// A driver that fails in the middle, on one rank: all have an error, which says what it was.
struct Failure {
  const char* function;
  long calls;  // that succeed before
  CUresult result;
  const char* name;
};
constexpr Failure failures[] = {{"cuMemcpyAsync", 0, 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                {"cuMemcpyAsync", 3, 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                {"execution", 1, 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                {"cuEventRecord", 2, 2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                {"cuStreamWaitEvent", 0, 2, "CUDA_ERROR_OUT_OF_MEMORY"}};

void test_failure(bool posted, const Failure& failure) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // which Open MPI asks about generalized requests
  Numbers numbers(100'000, rank == 1);
  const auto sum = [&] {
    if (!posted) return MPI_Allreduce(MPI_IN_PLACE, numbers.address(), 100'000, MPI_INT, MPI_SUM, comm);
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Iallreduce(MPI_IN_PLACE, numbers.address(), 100'000, MPI_INT, MPI_SUM, comm, &request);
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
  };
  MPI_Barrier(comm);
  check(sum() == MPI_SUCCESS, "a sum before the failure");
  if (rank == 1) fake_cuda_fail(failure.function, failure.calls, failure.result);
  int error = MPI_SUCCESS;
  for (int call = 0; call < 3 && error == MPI_SUCCESS; ++call) error = sum();
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  check(error != MPI_SUCCESS && std::strstr(text.data(), failure.name) != nullptr,
        std::string("the error of a driver that fails in ") + failure.function + ": " + text.data());
  if (rank == 1) fake_cuda_fail(failure.function, -1, failure.result);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

void start_device() {
  CUcontext context = nullptr;
  check(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0, "the driver");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  start_device();
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1 && std::string(argv[1]) == "groups") {
    test_groups();
  } else {
    test_both_kinds(true);
    test_both_kinds(false);
    test_reshard();
    test_unpinned();
    test_late_kernel();
    for (const Failure& failure : failures)
      for (const bool posted : {false, true}) test_failure(posted, failure);
  }
  if (rank == 0) std::printf("device: right\n");
  MPI_Finalize();
  return 0;
}

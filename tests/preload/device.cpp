// What is special about memory of a device, beside what the differential test compares: data of one call in memory of
// both kinds, resharding, allreduces in groups, and a driver that fails. The driver is the tests' own, linked: device
// memory that the processor touches ends the process.
//
//   device [groups | direct | killed]
// groups: the allreduces of an overlap plan's step (PLAIT_OVERLAP), which the report is to show in groups.
// direct: collectives between the devices of the ranks (PLAIT_DEVICE_DIRECT), which map each other's memory; and fused
//         embeddings there.
// killed: such collectives and embeddings one after the other, in the midst of which rank 1 is killed.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plait/plait_mpi.h"
#include "plait/reshard.hpp"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/preload/device_fused.h"

#pragma weak plait_set_channels

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

void test_failure(bool posted, const Failure& failure, bool all_on_device = false) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // which Open MPI asks about generalized requests
  Numbers numbers(100'000, all_on_device || rank == 1);
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

// The same in a call that the host takes: that rank has the error, and no rank waits for ever.
void test_failure_on_host(bool posted) {
  constexpr int count = 100'000;  // of integers: the host's
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Numbers given(count, rank != 0), got(count, rank != 2);
  given.fill(rank);
  const auto scan = [&] {
    if (!posted) return MPI_Scan(given.address(), got.address(), count, MPI_INT, MPI_SUM, comm);
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Iscan(given.address(), got.address(), count, MPI_INT, MPI_SUM, comm, &request);
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
  };
  if (rank == 1) fake_cuda_fail("cuMemcpyAsync", 0, 700);
  const int error = scan();
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  check((error != MPI_SUCCESS) == (rank == 1), std::string("whose error it is: ") + text.data());
  check(rank != 1 || std::strstr(text.data(), "CUDA_ERROR_ILLEGAL_ADDRESS") != nullptr, text.data());
  if (rank == 1) fake_cuda_fail("cuMemcpyAsync", -1, 700);
  check(scan() == MPI_SUCCESS, "a scan after the failure");
  bool right = true;
  for (int i = 0; i < count; ++i) right &= got.data()[i] == (rank + 1) * i + rank * (rank + 1) / 2;
  check(right, "a scan by the host after the failure");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

// ---- Between devices ----

// Of any ranks of a communicator: a sum of numbers on the device, in place or not, and whether all is right.
void check_sum(MPI_Comm comm, int count, bool in_place, bool on_device, const char* what) {
  int self = 0, members = 0;
  MPI_Comm_rank(comm, &self);
  MPI_Comm_size(comm, &members);
  const auto length = static_cast<std::size_t>(count);
  Numbers given(length, on_device), got(length, on_device);
  given.fill(self);
  got.fill(self);
  MPI_Allreduce(in_place ? MPI_IN_PLACE : given.address(), got.address(), count, MPI_INT, MPI_SUM, comm);
  bool right = true;
  for (int i = 0; i < count; ++i) right &= got.data()[i] == members * i + members * (members - 1) / 2;
  check(right, what);
}

void expect_between_devices(bool expected, long kernels_before, const char* what) {
  check((fake_cuda_kernels() > kernels_before) == expected, std::string("whether a kernel ran: ") + what);
}

// What is mapped goes with the communicators that have used it.
void test_two_communicators() {
  const long before = fake_cuda_mapped();
  MPI_Comm comms[2];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int round = 0; round < 3; ++round)
    for (const MPI_Comm comm : comms) {
      const long kernels = fake_cuda_kernels();
      check_sum(comm, 30'000, round == 1, true, "a sum on one of two communicators");
      expect_between_devices(true, kernels, "all data on devices");
    }
  check(fake_cuda_mapped() > before, "memory of other ranks that is mapped");
  check(fake_cuda_mapped() - before <= 2 * 4 * (ranks - 1), "no more of it than two calls' buffers");
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  check(fake_cuda_mapped() <= before, "nothing mapped of a communicator that is freed");
}

// Each rank passes what it has: the sum is right, wherever it is made.
void test_mixed_kinds() {
  for (int round = 0; round < 12; ++round) {
    const bool here = rank != round % ranks || round % 4 == 3;
    check_sum(MPI_COMM_WORLD, 30'000, round % 2 == 0, here, "a sum of memory of both kinds");
  }
}

// Ranks whose driver maps nothing of others, or hands on nothing, take the other way for good, or this once.
void test_refused(const char* function, bool for_good) {
  constexpr int not_supported = 801;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (rank == 1) fake_cuda_fail(function, 0, not_supported);
  check_sum(comm, 40'000, false, true, "a sum where one rank's driver refuses");
  if (rank == 1) fake_cuda_fail(function, -1, not_supported);
  const long kernels = fake_cuda_kernels();
  check_sum(comm, 40'000, false, true, "a sum after one rank's driver has refused");
  expect_between_devices(!for_good, kernels, function);
  MPI_Comm_free(&comm);
}

// A job whose channels have no cuda.
void test_without_channel() {
  const long kernels = fake_cuda_kernels();
  check_sum(MPI_COMM_WORLD, 40'000, false, true, "a sum without the channel of devices");
  expect_between_devices(false, kernels, "a job without the channel");
}

// Types and operators, each by a kernel of its own, beside what the processor makes of them.
template <class T>
void check_operator(MPI_Datatype type, MPI_Op op, const char* what) {
  constexpr int count = 20'011;
  const auto bytes = count * sizeof(T);
  CUdeviceptr device = 0;
  check(cuMemAlloc_v2(&device, bytes) == 0, "an allocation of device memory");
  auto* there = reinterpret_cast<T*>(fake_cuda_data(reinterpret_cast<void*>(device)));
  std::vector<T> here(count);
  for (int i = 0; i < count; ++i) here[static_cast<std::size_t>(i)] = there[i] = static_cast<T>((i * 7 + rank * 3) % 5);
  MPI_Allreduce(MPI_IN_PLACE, reinterpret_cast<void*>(device), count, type, op, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, here.data(), count, type, op, MPI_COMM_SELF);  // changes nothing
  std::vector<T> all(static_cast<std::size_t>(ranks) * count), expected(here);
  MPI_Allgather(here.data(), count, type, all.data(), count, type, MPI_COMM_WORLD);
  expected.assign(all.begin(), all.begin() + count);
  for (int of = 1; of < ranks; ++of)
    MPI_Reduce_local(all.data() + static_cast<std::size_t>(of) * count, expected.data(), count, type, op);
  check(std::equal(expected.begin(), expected.end(), there), what);
  cuMemFree_v2(device);
}

void test_operators() {
  const MPI_Op of_all[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
  const MPI_Op of_integers[] = {MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
  for (const MPI_Op op : of_all) {
    check_operator<float>(MPI_FLOAT, op, "floats");
    check_operator<double>(MPI_DOUBLE, op, "doubles");
  }
  const auto integers = [&](const auto& ops) {
    for (const MPI_Op op : ops) {
      check_operator<std::int8_t>(MPI_INT8_T, op, "i8");
      check_operator<std::uint16_t>(MPI_UINT16_T, op, "u16");
      check_operator<std::int32_t>(MPI_INT32_T, op, "i32");
      check_operator<std::uint64_t>(MPI_UINT64_T, op, "u64");
    }
  };
  integers(of_all);
  integers(of_integers);
}

// Blocks that come and go: none is kept mapped for long, and none is taken for another.
void test_freed() {
  const long before = fake_cuda_mapped();
  for (int round = 0; round < 20; ++round)
    check_sum(MPI_COMM_WORLD, 20'000 + 997 * round, false, true, "a sum of new memory");
  check(fake_cuda_mapped() - before <= 4 * (ranks - 1), "what was freed is not mapped any more");
}

// As test_failure(), of calls between devices.
constexpr Failure direct_failures[] = {{"cuLaunchKernel", 0, 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                       {"execution", 1, 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                       {"cuEventRecord", 1, 2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                       {"cuEventQuery", 1, 700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};

void test_direct() {
  test_two_communicators();
  test_operators();
  test_mixed_kinds();
  test_freed();
  const std::string fused = test_fused_on_devices();
  check(fused.empty(), fused);
  test_refused("cuIpcOpenMemHandle_v2", true);
  test_refused("cuIpcGetMemHandle", false);
  test_late_kernel();
  for (const Failure& failure : direct_failures)
    for (const bool posted : {false, true}) test_failure(posted, failure, true);
}

// For half a minute, if nobody ends the job. A process of rank 1's kills it after a second.
void run_until_killed() {
  constexpr double longest_s = 30;
  if (rank == 1 && fork() == 0) {
    for (const int descriptor : {0, 1, 2}) close(descriptor);  // for which the launcher would wait
    sleep(1);
    kill(getppid(), SIGKILL);
    _exit(0);
  }
  const long kernels = fake_cuda_kernels();
  const double end = MPI_Wtime() + longest_s;
  DeviceEmbedding embedding;
  while (MPI_Wtime() < end) {
    check_sum(MPI_COMM_WORLD, 200'000, true, true, "a sum");
    for (int run = 0; run < 20; ++run) check(embedding.run() == MPI_SUCCESS && embedding.wrong().empty(), "a pooling");
    check(multiply_often(20).empty(), "a product");
  }
  expect_between_devices(true, kernels, "all data on devices");
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
  } else if (argc > 1 && std::string(argv[1]) == "without_channel") {
    test_without_channel();
  } else if (argc > 1 && std::string(argv[1]) == "direct") {
    test_direct();
  } else if (argc > 1 && std::string(argv[1]) == "killed") {
    run_until_killed();
  } else {
    test_both_kinds(true);
    test_both_kinds(false);
    test_reshard();
    test_unpinned();
    test_late_kernel();
    const std::string fused = test_fused_by_copies();
    check(fused.empty(), fused);
    for (const Failure& failure : failures)
      for (const bool posted : {false, true}) test_failure(posted, failure);
    for (const bool posted : {false, true}) test_failure_on_host(posted);
  }
  if (rank == 0) std::printf("device: right\n");
  MPI_Finalize();
  return 0;
}

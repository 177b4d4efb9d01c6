// Every collective with buffers on a device, on any driver: what comes out is known without another MPI. See README.md.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/device/cuda.h"
#include "tests/device/device_program.h"
#include "tests/persistent_form.h"

namespace plait::test {
namespace {

constexpr int exit_without_device = 77;

Cuda cuda;
long wrong = 0, calls = 0;
bool in_pieces = false;  // all that is on a device

// Where a rank's buffers are.
enum class Kind { host, device };
enum class Form { blocking, posted, persistent };

// Integers somewhere.
class Numbers {
 public:
  Numbers(std::size_t count, Kind kind) : here_(count, -1) {
    if (kind != Kind::device) return;
    if (in_pieces) there_ = static_cast<int*>(cuda.allocate_in_pieces(count * sizeof(int)));
    has_pieces_ = there_ != nullptr;
    if (there_ == nullptr) there_ = static_cast<int*>(cuda.allocate(count * sizeof(int)));
  }
  ~Numbers() {
    if (has_pieces_)
      cuda.release_pieces(there_, here_.size() * sizeof(int));
    else if (there_ != nullptr)
      cuda.release(there_);
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  int* address() { return there_ != nullptr ? there_ : here_.data(); }
  void put(const std::vector<int>& values) {
    here_ = values;
    if (there_ != nullptr) cuda.copy(there_, here_.data(), here_.size() * sizeof(int));
  }
  const std::vector<int>& get() {
    if (there_ != nullptr) cuda.copy(here_.data(), there_, here_.size() * sizeof(int));
    return here_;
  }

 private:
  std::vector<int> here_;
  int* there_ = nullptr;
  bool has_pieces_ = false;
};

// What rank `of` gives at place `i`.
int value(int of, std::size_t i) { return of * 1000 + static_cast<int>(i % 997); }

std::vector<int> values_of(int of, std::size_t count, std::size_t from = 0) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(of, from + i);
  return values;
}

std::vector<int> sum_of(int first, int end, std::size_t count, std::size_t from = 0) {
  std::vector<int> sum(count, 0);
  for (int of = first; of < end; ++of)
    for (std::size_t i = 0; i < count; ++i) sum[i] += value(of, from + i);
  return sum;
}

struct Case {
  std::size_t count;
  Kind send, receive;
  Form form;
  bool in_place;
};

std::string name_of(const Case& one) {
  const auto kind = [](Kind k) { return k == Kind::device ? "device" : "host"; };
  constexpr const char* forms[] = {"blocking", "posted", "persistent"};
  return std::to_string(one.count) + " integers from " + kind(one.send) + " to " + kind(one.receive) + ", " +
         forms[static_cast<int>(one.form)] + (one.in_place ? ", in place" : "");
}

void compare(const char* what, const Case& one, const std::vector<int>& got, const std::vector<int>& expected) {
  ++calls;
  if (got == expected) return;
  if (++wrong > 5) return;
  std::size_t at = 0;
  while (at < got.size() && got[at] == expected[at]) ++at;
  std::fprintf(stderr, "device_job: wrong: %s, %s, rank %d: %d instead of %d at %zu\n", what, name_of(one).c_str(),
               rank, at < got.size() ? got[at] : 0, at < expected.size() ? expected[at] : 0, at);
}

// Makes a call in its form.
#define PLAIT_MAKE(form, Name, name, ...)                                           \
  do {                                                                              \
    MPI_Request request = MPI_REQUEST_NULL;                                         \
    if ((form) == Form::blocking) {                                                 \
      MPI_##Name(__VA_ARGS__, MPI_COMM_WORLD);                                      \
    } else if ((form) == Form::posted) {                                            \
      MPI_I##name(__VA_ARGS__, MPI_COMM_WORLD, &request);                           \
      MPI_Wait(&request, MPI_STATUS_IGNORE);                                        \
    } else {                                                                        \
      PLAIT_PERSISTENT(Name)(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request); \
      MPI_Start(&request);                                                          \
      MPI_Wait(&request, MPI_STATUS_IGNORE);                                        \
      MPI_Request_free(&request);                                                   \
    }                                                                               \
  } while (0)

struct Buffers {
  Buffers(const Case& one, std::size_t sent, std::size_t received)
      : send(sent, one.send), receive(received, one.receive) {}
  Numbers send, receive;
};

void test_reductions(const Case& one) {
  const std::size_t n = one.count, all = n * static_cast<std::size_t>(ranks);
  const int count = static_cast<int>(n);
  {
    Buffers b(one, n, n);
    (one.in_place ? b.receive : b.send).put(values_of(rank, n));
    const void* from = one.in_place ? MPI_IN_PLACE : b.send.address();
    PLAIT_MAKE(one.form, Allreduce, allreduce, from, b.receive.address(), count, MPI_INT, MPI_SUM);
    compare("allreduce", one, b.receive.get(), sum_of(0, ranks, n));
  }
  {
    Buffers b(one, n, n);
    const bool shared = one.in_place && rank == 0;
    (shared ? b.receive : b.send).put(values_of(rank, n));
    const void* from = shared ? MPI_IN_PLACE : b.send.address();
    PLAIT_MAKE(one.form, Reduce, reduce, from, b.receive.address(), count, MPI_INT, MPI_SUM, 0);
    if (rank == 0) compare("reduce", one, b.receive.get(), sum_of(0, ranks, n));
  }
  if (!one.in_place) {
    Buffers b(one, all, n);
    b.send.put(values_of(rank, all));
    PLAIT_MAKE(one.form, Reduce_scatter_block, reduce_scatter_block, b.send.address(), b.receive.address(), count,
               MPI_INT, MPI_SUM);
    compare("reduce_scatter_block", one, b.receive.get(), sum_of(0, ranks, n, n * static_cast<std::size_t>(rank)));
    const std::vector<int> counts(static_cast<std::size_t>(ranks), count);
    PLAIT_MAKE(one.form, Reduce_scatter, reduce_scatter, b.send.address(), b.receive.address(), counts.data(), MPI_INT,
               MPI_SUM);
    compare("reduce_scatter", one, b.receive.get(), sum_of(0, ranks, n, n * static_cast<std::size_t>(rank)));
  }
  {
    Buffers b(one, n, n);
    (one.in_place ? b.receive : b.send).put(values_of(rank, n));
    const void* from = one.in_place ? MPI_IN_PLACE : b.send.address();
    PLAIT_MAKE(one.form, Scan, scan, from, b.receive.address(), count, MPI_INT, MPI_SUM);
    compare("scan", one, b.receive.get(), sum_of(0, rank + 1, n));
    (one.in_place ? b.receive : b.send).put(values_of(rank, n));
    PLAIT_MAKE(one.form, Exscan, exscan, from, b.receive.address(), count, MPI_INT, MPI_SUM);
    if (rank > 0) compare("exscan", one, b.receive.get(), sum_of(0, rank, n));
  }
}

std::vector<int> from_all(std::size_t n, std::size_t from = 0) {
  std::vector<int> all;
  for (int of = 0; of < ranks; ++of) {
    const std::vector<int> part = values_of(of, n, from);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void test_moves(const Case& one) {
  const std::size_t n = one.count, all = n * static_cast<std::size_t>(ranks), own = n * static_cast<std::size_t>(rank);
  const int count = static_cast<int>(n), root = ranks - 1;
  std::vector<int> counts(static_cast<std::size_t>(ranks), count), places(counts.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i) * count;
  {
    Numbers buffer(n, one.receive);
    buffer.put(values_of(rank, n));
    PLAIT_MAKE(one.form, Bcast, bcast, buffer.address(), count, MPI_INT, root);
    compare("bcast", one, buffer.get(), values_of(root, n));
  }
  {
    Buffers b(one, n, all);
    if (one.in_place) {
      std::vector<int> start(all, -1);
      const std::vector<int> mine = values_of(rank, n);
      std::copy(mine.begin(), mine.end(), start.begin() + static_cast<std::ptrdiff_t>(own));
      b.receive.put(start);
    } else {
      b.send.put(values_of(rank, n));
    }
    const void* from = one.in_place ? MPI_IN_PLACE : b.send.address();
    PLAIT_MAKE(one.form, Allgather, allgather, from, count, MPI_INT, b.receive.address(), count, MPI_INT);
    compare("allgather", one, b.receive.get(), from_all(n));
    PLAIT_MAKE(one.form, Allgatherv, allgatherv, from, count, MPI_INT, b.receive.address(), counts.data(),
               places.data(), MPI_INT);
    compare("allgatherv", one, b.receive.get(), from_all(n));
  }
  if (one.in_place) return;
  {
    Buffers b(one, n, all);
    b.send.put(values_of(rank, n));
    PLAIT_MAKE(one.form, Gather, gather, b.send.address(), count, MPI_INT, b.receive.address(), count, MPI_INT, root);
    if (rank == root) compare("gather", one, b.receive.get(), from_all(n));
    PLAIT_MAKE(one.form, Gatherv, gatherv, b.send.address(), count, MPI_INT, b.receive.address(), counts.data(),
               places.data(), MPI_INT, root);
    if (rank == root) compare("gatherv", one, b.receive.get(), from_all(n));
  }
  {
    Buffers b(one, all, n);
    b.send.put(values_of(rank, all));
    PLAIT_MAKE(one.form, Scatter, scatter, b.send.address(), count, MPI_INT, b.receive.address(), count, MPI_INT, root);
    compare("scatter", one, b.receive.get(), values_of(root, n, own));
    PLAIT_MAKE(one.form, Scatterv, scatterv, b.send.address(), counts.data(), places.data(), MPI_INT,
               b.receive.address(), count, MPI_INT, root);
    compare("scatterv", one, b.receive.get(), values_of(root, n, own));
  }
  {
    Buffers b(one, all, all);
    b.send.put(values_of(rank, all));
    PLAIT_MAKE(one.form, Alltoall, alltoall, b.send.address(), count, MPI_INT, b.receive.address(), count, MPI_INT);
    compare("alltoall", one, b.receive.get(), from_all(n, own));
    PLAIT_MAKE(one.form, Alltoallv, alltoallv, b.send.address(), counts.data(), places.data(), MPI_INT,
               b.receive.address(), counts.data(), places.data(), MPI_INT);
    compare("alltoallv", one, b.receive.get(), from_all(n, own));
    std::vector<int> bytes(places);
    for (int& place : bytes) place *= static_cast<int>(sizeof(int));
    const std::vector<MPI_Datatype> types(counts.size(), MPI_INT);
    PLAIT_MAKE(one.form, Alltoallw, alltoallw, b.send.address(), counts.data(), bytes.data(), types.data(),
               b.receive.address(), counts.data(), bytes.data(), types.data());
    compare("alltoallw", one, b.receive.get(), from_all(n, own));
  }
}

// A column of a matrix to all; what lies beside it stays as it is.
void test_derived(const Case& one) {
  constexpr int columns = 7, column = 3;
  const auto rows = one.count;
  for (const bool indexed : {false, true}) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::vector<int> lengths, places;
    for (std::size_t row = 0; row < rows; ++row) {
      lengths.push_back(indexed ? 1 + static_cast<int>(row % 3) : 1);
      places.push_back(static_cast<int>(row) * columns);
    }
    if (indexed)
      MPI_Type_indexed(static_cast<int>(rows), lengths.data(), places.data(), MPI_INT, &type);
    else
      MPI_Type_vector(static_cast<int>(rows), 1, columns, MPI_INT, &type);
    MPI_Type_commit(&type);
    Numbers matrix(rows * columns, one.receive);
    matrix.put(values_of(rank, rows * columns));
    PLAIT_MAKE(one.form, Bcast, bcast, matrix.address() + column, 1, type, 0);
    std::vector<int> expected = values_of(rank, rows * columns);
    for (std::size_t row = 0; row < rows; ++row)
      for (int i = 0; i < lengths[row]; ++i) {
        const std::size_t at = row * columns + column + static_cast<std::size_t>(i);
        expected[at] = value(0, at);
      }
    compare(indexed ? "bcast of runs" : "bcast of a column", one, matrix.get(), expected);
    MPI_Type_free(&type);
  }
}

void test_all(bool quick) {
  const std::vector<std::size_t> counts =
      quick ? std::vector<std::size_t>{1, 5000} : std::vector<std::size_t>{1, 17, 1000, 20'000, 300'000};
  for (const std::size_t count : counts)
    for (const Form form : {Form::blocking, Form::posted, Form::persistent})
      for (int kinds = 0; kinds < 4; ++kinds)
        for (const bool in_place : {false, true}) {
          const auto kind = [](bool device) { return device ? Kind::device : Kind::host; };
          // The last: other ranks, other kinds.
          Case one{count, kind(kinds % 2 == 0), kind(kinds < 2), form, in_place};
          if (kinds == 3) one = {count, kind(rank % 2 == 0), kind(rank % 3 != 1), form, in_place};
          test_reductions(one);
          test_moves(one);
          if (!in_place && count < 100'000) test_derived(one);
        }
}

int run(int argc, char** argv) {
  const char* driver = "libcuda.so.1";
  bool quick = false, several = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--driver") == 0 && i + 1 < argc) driver = argv[++i];
    quick |= std::strcmp(argv[i], "--short") == 0;
    several |= std::strcmp(argv[i], "--devices") == 0;
    in_pieces |= std::strcmp(argv[i], "--pieces") == 0;
  }
  const char* why = "";
  if (!cuda.open(driver, several ? rank : 0, why)) {
    if (rank == 0) std::printf("device_job: not run: %s\n", why);
    return exit_without_device;
  }
  test_all(quick);
  long all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf(all_wrong == 0 ? "device_job: right (%ld results a rank)\n" : "device_job: wrong: %ld\n",
                all_wrong == 0 ? calls : all_wrong);
  return all_wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace plait::test

int main(int argc, char** argv) { return plait::test::run_job(argc, argv, plait::test::run); }

// plait_allreduce_axes() against a computation from all ranks' inputs, and plait_set_plan(). The job has 1, 4, 6, 8 or
// 12 ranks, which says what grids are tried.
//
//   axes [late|disabled]     calls alone do not set a communicator up (PLAIT_SETUP_CALLS), or PLAIT_DISABLE is set
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "plait/plait_mpi.h"
#include "tests/preload/plan_used.h"

namespace {

int world_rank = 0, world_ranks = 1, failures = 0;
std::set<MPI_Comm> groups;  // what the library split and has not freed
int handled = 0;
bool late = false, disabled = false;

void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  std::printf("rank %d: wrong: %s\n", world_rank, what.c_str());
}

template <class Function>
Function next(const char* name, Function = nullptr) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

template <class Function>
Function plugin(const char* name, Function) {
  auto* found = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  if (found == nullptr) std::abort();
  return found;
}

}  // namespace

// The program's symbols come before the MPI library's: what the plugin splits and frees passes here.
extern "C" {
__attribute__((visibility("default"))) int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  const int error = next<decltype(&PMPI_Comm_split)>("PMPI_Comm_split")(comm, color, key, made);
  if (error == MPI_SUCCESS) groups.insert(*made);
  return error;
}
__attribute__((visibility("default"))) int PMPI_Comm_free(MPI_Comm* comm) {
  groups.erase(*comm);
  return next<decltype(&PMPI_Comm_free)>("PMPI_Comm_free")(comm);
}
}

namespace {

decltype(&plait_allreduce_axes) allreduce_axes;
decltype(&plait_set_plan) set_plan;

// ---- Reductions ----

// Two by two matrices modulo a prime: their product does not commute.
struct Matrix {
  std::array<std::int32_t, 4> at;
};
void multiply(void* in, void* in_out, int* count, MPI_Datatype*) {
  auto* a = static_cast<Matrix*>(in);
  auto* b = static_cast<Matrix*>(in_out);
  constexpr std::int64_t prime = 9973;
  const auto dot = [&](const Matrix& x, const Matrix& y, std::size_t row, std::size_t column) {
    return static_cast<std::int32_t>(
        (std::int64_t{x.at[2 * row]} * y.at[column] + std::int64_t{x.at[2 * row + 1]} * y.at[2 + column]) % prime);
  };
  for (int i = 0; i < *count; ++i) {
    const Matrix x = a[i], y = b[i];
    b[i] = {{dot(x, y, 0, 0), dot(x, y, 0, 1), dot(x, y, 1, 0), dot(x, y, 1, 1)}};
  }
}

struct Reduction {
  const char* name;
  MPI_Datatype type;
  MPI_Op op;
  int bytes;
};

// Small whole numbers, so that sums of doubles are exact in any order.
std::vector<std::byte> input_of(const Reduction& reduction, int rank, int count) {
  std::vector<std::byte> data(static_cast<std::size_t>(count) * static_cast<std::size_t>(reduction.bytes));
  const auto value = [&](int i) { return (rank * 31 + i * 7) % 101 + 1; };
  if (reduction.type == MPI_DOUBLE) {
    for (int i = 0; i < count; ++i) reinterpret_cast<double*>(data.data())[i] = value(i);
  } else {
    const int ints = count * reduction.bytes / 4;
    for (int i = 0; i < ints; ++i) reinterpret_cast<std::int32_t*>(data.data())[i] = value(i);
  }
  return data;
}

std::vector<int> coordinates(const std::vector<int>& dims, int rank) {
  std::vector<int> at(dims.size());
  for (std::size_t d = dims.size(); d-- > 0; rank /= dims[d]) at[d] = rank % dims[d];
  return at;
}

bool same_group(const std::vector<int>& dims, const std::vector<int>& axes, int a, int b) {
  const std::vector<int> left = coordinates(dims, a), right = coordinates(dims, b);
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (std::ranges::find(axes, static_cast<int>(d)) == axes.end() && left[d] != right[d]) return false;
  return true;
}

// Members in rank order, from the first to the last.
std::vector<std::byte> expected(const Reduction& reduction, const std::vector<int>& dims, const std::vector<int>& axes,
                                int rank, int count) {
  std::vector<std::byte> result;
  for (int other = world_ranks - 1; other >= 0; --other) {
    if (!same_group(dims, axes, rank, other)) continue;
    std::vector<std::byte> data = input_of(reduction, other, count);
    if (!result.empty()) MPI_Reduce_local(data.data(), result.data(), count, reduction.type, reduction.op);
    if (result.empty()) result = std::move(data);
  }
  return result;
}

struct Trial {
  MPI_Comm comm;
  const Reduction& reduction;
  const std::vector<int>&dims, &axes;
  int count;
  bool in_place;
};

void try_one(const Trial& trial) {
  int rank = 0;
  MPI_Comm_rank(trial.comm, &rank);
  const std::vector<std::byte> input = input_of(trial.reduction, rank, trial.count);
  std::vector<std::byte> output = input;
  if (!trial.in_place) std::ranges::fill(output, std::byte{0x5a});
  const int error =
      allreduce_axes(trial.in_place ? MPI_IN_PLACE : input.data(), output.data(), trial.count, trial.reduction.type,
                     trial.reduction.op, trial.comm, static_cast<int>(trial.dims.size()), trial.dims.data(),
                     static_cast<int>(trial.axes.size()), trial.axes.data());
  std::string what = std::string(trial.reduction.name) + " x " + std::to_string(trial.count) + " on";
  for (const int dim : trial.dims) what += " " + std::to_string(dim);
  what += trial.in_place ? ", in place, axes" : ", axes";
  int members = 1;
  for (const int axis : trial.axes) {
    what += " " + std::to_string(axis);
    members *= trial.dims[static_cast<std::size_t>(axis)];
  }
  expect(error == MPI_SUCCESS, what + ": error");
  if (trial.count == 0) return;
  expect(output == expected(trial.reduction, trial.dims, trial.axes, rank, trial.count), what);
  expect(members == 1 || accelerated() == !(late || disabled), what + ": " + plan_used());
}

// All subsets of the axes, each in some order.
void try_grid(MPI_Comm comm, const std::vector<int>& dims, const std::vector<Reduction>& reductions) {
  for (unsigned subset = 0; subset < 1u << dims.size(); ++subset) {
    std::vector<int> axes;
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis)
      if ((subset >> axis & 1) != 0) axes.insert(subset % 3 == 0 ? axes.begin() : axes.end(), axis);
    for (const Reduction& reduction : reductions)
      for (const int count : {0, 1, 7, 3000})
        for (const bool in_place : {false, true}) try_one({comm, reduction, dims, axes, count, in_place});
  }
}

std::vector<std::vector<int>> grids() {
  switch (world_ranks) {
    case 1:
      return {{1}, {1, 1}};
    case 4:
      return {{4}, {2, 2}, {1, 4}, {2, 1, 2}};
    case 6:
      return {{2, 3}, {3, 2}, {1, 6, 1}};
    case 8:
      return {{2, 2, 2}, {2, 4}, {4, 2}};
    case 12:
      return {{2, 3, 2}, {3, 4}};
    default:
      std::abort();
  }
}

void try_grids(MPI_Comm comm) {
  MPI_Datatype matrix;
  MPI_Op product;
  MPI_Type_contiguous(4, MPI_INT32_T, &matrix);
  MPI_Type_commit(&matrix);
  MPI_Op_create(multiply, 0, &product);
  const std::vector<Reduction> reductions = {{"int sum", MPI_INT32_T, MPI_SUM, 4},
                                             {"int xor", MPI_INT32_T, MPI_BXOR, 4},
                                             {"double sum", MPI_DOUBLE, MPI_SUM, 8},
                                             {"double max", MPI_DOUBLE, MPI_MAX, 8},
                                             {"matrix product", matrix, product, sizeof(Matrix)}};
  for (const std::vector<int>& dims : grids()) try_grid(comm, dims, reductions);
  MPI_Op_free(&product);
  MPI_Type_free(&matrix);
}

// ---- Wrong arguments ----

void count_handled(MPI_Comm*, int*, ...) { ++handled; }

void try_wrong(MPI_Comm comm, const char* what, int wanted, int ndims, const int* dims, int naxes, const int* axes,
               int count = 1) {
  int in = 1, out = 0, error_class = 0;
  handled = 0;
  MPI_Error_class(allreduce_axes(&in, &out, count, MPI_INT, MPI_SUM, comm, ndims, dims, naxes, axes), &error_class);
  expect(error_class == wanted, std::string(what) + ": class " + std::to_string(error_class));
  expect(handled == 1, std::string(what) + ": the handler was called " + std::to_string(handled) + " times");
}

void try_wrong_arguments(MPI_Comm comm) {
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_handled, &counting);
  MPI_Comm_set_errhandler(comm, counting);
  MPI_Errhandler_free(&counting);
  const std::array<int, 2> dims = {1, world_ranks}, larger = {2, world_ranks}, negative = {-1, -world_ranks};
  const std::array<int, 2> huge = {1 << 30, 1 << 30}, none = {0, world_ranks};
  const std::array<int, 2> axes = {0, 1}, twice = {1, 1}, outside = {0, 2}, below = {-1, 0};
  try_wrong(comm, "no dimension", MPI_ERR_DIMS, 0, dims.data(), 1, axes.data());
  try_wrong(comm, "negative number of dimensions", MPI_ERR_DIMS, -2, dims.data(), 1, axes.data());
  try_wrong(comm, "dims missing", MPI_ERR_ARG, 2, nullptr, 1, axes.data());
  try_wrong(comm, "too many ranks", MPI_ERR_DIMS, 2, larger.data(), 1, axes.data());
  if (world_ranks > 1) try_wrong(comm, "too few ranks", MPI_ERR_DIMS, 1, dims.data(), 1, axes.data());
  try_wrong(comm, "negative dims", MPI_ERR_DIMS, 2, negative.data(), 1, axes.data());
  try_wrong(comm, "huge dims", MPI_ERR_DIMS, 2, huge.data(), 1, axes.data());
  try_wrong(comm, "a dimension of 0", MPI_ERR_DIMS, 2, none.data(), 1, axes.data());
  try_wrong(comm, "axes missing", MPI_ERR_ARG, 2, dims.data(), 1, nullptr);
  try_wrong(comm, "negative number of axes", MPI_ERR_ARG, 2, dims.data(), -1, axes.data());
  try_wrong(comm, "an axis twice", MPI_ERR_ARG, 2, dims.data(), 2, twice.data());
  try_wrong(comm, "no such axis", MPI_ERR_ARG, 2, dims.data(), 2, outside.data());
  try_wrong(comm, "negative axis", MPI_ERR_ARG, 2, dims.data(), 2, below.data());
#ifndef MPICH_VERSION  // whose 4.0 does not look at a reduction's count, and crashes
  const std::vector<int> halves = grids().back();
  const int last = static_cast<int>(halves.size()) - 1;
  try_wrong(comm, "negative count", MPI_ERR_COUNT, last + 1, halves.data(), 1, &last, -1);
#endif
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int one = 1, sum = 0;
  const int no_comm = allreduce_axes(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL, 2, dims.data(), 1, axes.data());
  expect(no_comm != MPI_SUCCESS, "no communicator is an error");
}

// ---- Forced plans ----

// The plan of an allreduce, without the number of chunks.
std::string plan_of(MPI_Comm comm, int count) {
  std::vector<int> in(static_cast<std::size_t>(count), 1), out(in.size(), 0);
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  MPI_Allreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm);
  expect(std::ranges::all_of(out, [&](int value) { return value == ranks; }), "the sum by a forced plan");
  const std::string plan = plan_used();
  return plan.substr(0, plan.find(" x"));
}

constexpr int few = 2;

void try_plans() {
  MPI_Comm comm, other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (const MPI_Comm one : {comm, other}) expect(set_plan(one, nullptr) == MPI_SUCCESS, "nothing forced");
  const std::string chosen = plan_of(comm, few);
  const std::string named = set_plan(comm, "AR.12(ring)") == MPI_SUCCESS ? "AR.12(ring)" : "AR.1(ring)";
  expect(chosen != "host", "set_plan sets the communicator up");
  expect(chosen != named, "this test needs a plan that is not chosen, not '" + chosen + "'");
  expect(set_plan(comm, named.c_str()) == MPI_SUCCESS, "'" + named + "' can be forced");
  expect(plan_of(comm, few) == named, "a forced plan runs, not '" + std::string(plan_used()) + "'");
  expect(plan_of(other, few) == chosen, "on its communicator only");
  expect(set_plan(comm, "no such plan") == MPI_ERR_ARG, "an unknown plan");
  expect(plan_of(comm, few) == named, "what was refused changes nothing");
  expect(set_plan(comm, world_rank == 0 ? chosen.c_str() : named.c_str()) == MPI_ERR_ARG, "ranks that differ");
  expect(set_plan(comm, world_rank == 1 ? "no such plan" : chosen.c_str()) == MPI_ERR_ARG, "one rank that is wrong");
  expect(plan_of(comm, few) == named, "what was refused by some changes nothing");
  expect(set_plan(comm, "") == MPI_SUCCESS, "an empty name");
  expect(plan_of(comm, few) == chosen, "Plait chooses again");
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
}

void try_plans_while_disabled() {
  expect(set_plan(MPI_COMM_WORLD, "RS.1 AG.1") == MPI_ERR_ARG, "a plan while Plait is off");
  expect(set_plan(MPI_COMM_WORLD, nullptr) == MPI_SUCCESS, "nothing to force while Plait is off");
}

void try_plans_of_one_rank() {
  expect(set_plan(MPI_COMM_SELF, "RS.1 AG.1") == MPI_ERR_ARG, "no plan for one rank");
  expect(set_plan(MPI_COMM_SELF, nullptr) == MPI_SUCCESS, "nothing to force for one rank");
}

// ---- Lives of communicators ----

void try_freeing(const std::vector<int>& dims) {
  const std::vector<int> axis = {static_cast<int>(dims.size()) - 1};
  for (int round = 0; round < 30; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const std::size_t before = groups.size();
    const Reduction sum = {"int sum", MPI_INT32_T, MPI_SUM, 4};
    for (int call = 0; call < 3; ++call) try_one({comm, sum, dims, axis, 5, false});
    expect(groups.size() <= before + 1, "one communicator for all calls with the same axes");
    MPI_Comm_free(&comm);
    expect(groups.size() == before, "the group's communicator dies with its parent");
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  late = argc > 1 && std::string(argv[1]) == "late";
  disabled = argc > 1 && std::string(argv[1]) == "disabled";
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  allreduce_axes = plugin("plait_allreduce_axes", allreduce_axes);
  set_plan = plugin("plait_set_plan", set_plan);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  groups.clear();
  try_grids(MPI_COMM_WORLD);
  try_freeing(grids().back());
  MPI_Comm duplicate;
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  try_wrong_arguments(duplicate);
  MPI_Comm_free(&duplicate);
  try_plans_of_one_rank();
  if (disabled)
    try_plans_while_disabled();
  else if (world_ranks > 1)
    try_plans();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const bool made_some = !groups.empty();
  MPI_Finalize();
  expect(groups.empty(), "MPI_Finalize frees the groups that are left");
  expect(made_some || world_ranks == 1, "this test sees the groups that are made");
  if (world_rank == 0) std::printf("axes: %d wrong\n", failures);
  return failures != 0;
}

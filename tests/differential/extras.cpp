#include "tests/differential/extras.h"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "tests/differential/binding.h"
#include "tests/differential/memory.h"
#include "tests/differential/random.h"

namespace plait::test {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

std::vector<double> random_doubles(std::size_t count, Random& random) {
  std::vector<double> values(count);
  // Of very different magnitudes, so that every grouping rounds differently.
  for (double& value : values)
    value = std::ldexp(static_cast<double>(random.next() >> 11) - 0x1p52, random.between(-30, 30));
  return values;
}

std::vector<double> sum_of(const std::vector<double>& values, MPI_Comm comm, bool plait) {
  std::vector<double> sums(values.size());
  enable_plait(plait);
  MPI_Allreduce(values.data(), sums.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, comm);
  enable_plait(false);
  return sums;
}

std::uint64_t bits_of(const std::vector<double>& values) { return checksum(std::as_bytes(std::span(values))); }

bool same_on_all_ranks(std::uint64_t value) {
  std::uint64_t first = value;
  MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return first == value;
}

bool is_set(const char* name, std::initializer_list<const char*> values) {
  const char* found = std::getenv(name);
  return found != nullptr && (values.size() == 0 || std::ranges::any_of(values, [&](const char* value) {
                                return std::strcmp(found, value) == 0;
                              }));
}

// In a trial the calls of a class go different ways, which may round differently; which calls depends on the time.
bool goes_one_way() {
  return !plait_present() || is_set("PLAIT_TRIAL", {"0", "exact"}) || is_set("PLAIT_HOST", {"0"}) ||
         is_set("PLAIT_PLAN", {});
}

// Rounding is bounded by the sum of the magnitudes.
bool close(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& magnitudes) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= magnitudes[i] * 0x1p-48)) return false;
  return true;
}

}  // namespace

std::string check_same_answer(std::uint64_t seed, std::uint64_t& bits) {
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  Random random(derive(seed, 5, static_cast<std::uint64_t>(world_rank())));
  std::string wrong;
  bits = 0;
  for (const std::size_t count : {1u, 8u, 500u, 1500u, 9000u, 40000u, 200000u}) {
    const std::vector<double> values = random_doubles(count, random);
    std::vector<double> magnitudes(values);
    for (double& value : magnitudes) value = std::abs(value);
    magnitudes = sum_of(magnitudes, MPI_COMM_WORLD, false);
    const std::vector<double> host = sum_of(values, MPI_COMM_WORLD, false);
    const std::vector<double> sums = sum_of(values, MPI_COMM_WORLD, true);
    const std::string what = "allreduce of " + std::to_string(count) + " random doubles: ";
    // The host's bcast meets all ranks, whatever they find.
    const bool same = same_on_all_ranks(bits_of(sums));
    if (!same) wrong += what + "not the same bits on all ranks; ";
    if (!close(host, sums, magnitudes)) wrong += what + "far from the host's result; ";
    // A duplicate becomes accelerated after its first calls only, and until then the host rounds in its own way.
    sum_of(values, other, true);
    sum_of(values, other, true);
    for (const MPI_Comm comm : {MPI_COMM_WORLD, other})
      if (bits_of(sum_of(values, comm, true)) != bits_of(sums) && goes_one_way())
        wrong += what + "not the same bits again; ";
    bits = derive(bits, bits_of(sums));
  }
  MPI_Comm_free(&other);
  return wrong;
}

std::string check_inter_communicator() {
  const int rank = world_rank(), ranks = world_ranks();
  if (ranks < 2) return {};
  const bool lower = rank < ranks / 2;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, lower ? 0 : 1, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, lower ? ranks / 2 : 0, 7, &inter);
  std::string wrong;
  enable_plait(true);
  for (int round = 0; round < 5; ++round) {
    const int lower_ranks = ranks / 2, remote = lower ? ranks - lower_ranks : lower_ranks;
    int one = 1, sum = 0, sent = lower ? 41 + round : 0;
    MPI_Barrier(inter);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    if (sum != remote) wrong = "allreduce on an inter-communicator";
    MPI_Bcast(&sent, 1, MPI_INT, !lower ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    if (sent != 41 + round) wrong = "bcast on an inter-communicator";
    std::vector<int> gathered(static_cast<std::size_t>(remote), -1);
    MPI_Allgather(&rank, 1, MPI_INT, gathered.data(), 1, MPI_INT, inter);
    for (int i = 0; i < remote; ++i)
      if (gathered[static_cast<std::size_t>(i)] != (lower ? lower_ranks : 0) + i)
        wrong = "allgather on an inter-communicator";
    if (plait_present() && std::strcmp(last_plan(), "host") != 0)
      wrong = "an inter-communicator's call was not the host's";
  }
  enable_plait(false);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  return wrong;
}

std::string check_many_communicators() {
  std::string wrong;
  for (int round = 0; round < 40; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() % (1 + round % 3), round % 2 == 0 ? 0 : -world_rank(), &comm);
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    enable_plait(true);
    for (int call = 0; call < 5; ++call) {
      long value = round + call, sum = 0;
      MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, comm);
      if (sum != value * ranks) wrong = "allreduce on the " + std::to_string(round) + "th communicator";
    }
    enable_plait(false);
    MPI_Comm_free(&comm);
  }
  return wrong;
}

}  // namespace plait::test

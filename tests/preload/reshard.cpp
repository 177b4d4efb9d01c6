// plait_reshard_* on real ranks: random meshes, specs and shapes of up to six dimensions against what each element must
// be, blocking and not; two plans at once, started in another order by every other rank; a plan used again; wrong
// arguments.
//
//   reshard [cases] [seed] [options]
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "plait/reshard.hpp"

namespace {

int world_rank = 0, world_ranks = 1, failures = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  if (failures < 10) std::printf("rank %d: wrong: %s\n", world_rank, what.c_str());
}

struct Case {
  plait::ReshardSide source, destination;
  std::vector<std::int64_t> shape;
  MPI_Datatype element = MPI_BYTE;
  std::size_t element_bytes = 1;
  std::string options, name;
};

using Random = std::mt19937;
int draw(Random& random, int from, int to) {
  return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
}

std::vector<int> some_mesh(Random& random) {
  std::vector<int> mesh;
  int places = 1;
  const int dimensions = draw(random, 1, 3);
  for (int d = 0; d < dimensions; ++d) {
    mesh.push_back(draw(random, 1, std::max(1, std::min(4, world_ranks / places))));
    places *= mesh.back();
  }
  return mesh;
}

std::string some_spec(Random& random, std::size_t dimensions, std::size_t mesh_dimensions) {
  std::vector<std::string> entries(dimensions);
  std::vector<int> axes(mesh_dimensions);
  std::iota(axes.begin(), axes.end(), 0);
  std::ranges::shuffle(axes, random);
  for (const int axis : axes)
    if (draw(random, 0, 3) > 0) entries[random() % dimensions] += std::to_string(axis);
  std::string spec;
  for (const std::string& entry : entries) spec += entry.empty() ? "R" : "S" + entry;
  return spec;
}

plait::ReshardSide some_side(Random& random, std::size_t dimensions, bool from_the_end) {
  plait::ReshardSide side{some_mesh(random), "", {}};
  side.spec = some_spec(random, dimensions, side.mesh.size());
  int places = 1;
  for (const int dim : side.mesh) places *= dim;
  std::vector<int> all(static_cast<std::size_t>(world_ranks));
  std::iota(all.begin(), all.end(), 0);
  if (from_the_end) std::ranges::reverse(all);
  if (draw(random, 0, 2) == 0) std::ranges::shuffle(all, random);
  side.ranks.assign(all.begin(), all.begin() + places);
  return side;
}

Case some_case(Random& random, const std::string& options) {
  constexpr const char* strategies[] = {"broadcast", "send-recv", "local-allgather", "global-allgather"};
  constexpr const char* schedulers[] = {"search", "naive", "load-balance"};
  Case made;
  const int dimensions = draw(random, 1, 6);
  for (int d = 0; d < dimensions; ++d) made.shape.push_back(draw(random, 1, dimensions > 4 ? 5 : 13));
  if (draw(random, 0, 4) == 0) made.shape.front() = draw(random, 1000, 9000);  // long columns of few bytes
  made.source = some_side(random, made.shape.size(), false);
  made.destination = some_side(random, made.shape.size(), true);
  const int type = draw(random, 0, 2);
  made.element = type == 0 ? MPI_BYTE : type == 1 ? MPI_FLOAT : MPI_DOUBLE;
  made.element_bytes = type == 0 ? 1 : type == 1 ? 4 : 8;
  made.options = options;
  if (options.empty())
    made.options = std::string("strategy=") + strategies[draw(random, 0, 3)] +
                   " scheduler=" + schedulers[draw(random, 0, 2)] + " chunks=" + std::to_string(draw(random, 0, 5));
  made.name = made.source.spec + " to " + made.destination.spec + " " + made.options;
  return made;
}

// What a byte of an element of the tensor is, by the element's number.
std::byte value_of(std::int64_t number, std::size_t byte, int round) {
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(number) * 8 + byte + static_cast<std::uint64_t>(round) * 7919u) * 0x9E3779B97F4A7C15u;
  return static_cast<std::byte>(mixed >> 56);
}

// This rank's part as it must be.
std::vector<std::byte> part(const Case& one, plait_reshard plan, int side, int round) {
  std::vector<std::int64_t> offset(one.shape.size()), length(one.shape.size());
  expect(plait_reshard_local(plan, side, offset.data(), length.data()) == MPI_SUCCESS, "local");
  std::int64_t elements = 1;
  for (const std::int64_t one_length : length) elements *= one_length;
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t rest = i, number = 0, stride = 1;
    for (std::size_t d = length.size(); d-- > 0;) {
      number += (offset[d] + rest % length[d]) * stride;
      rest /= length[d];
      stride *= one.shape[d];
    }
    for (std::size_t byte = 0; byte < one.element_bytes; ++byte) bytes.push_back(value_of(number, byte, round));
  }
  return bytes;
}

struct Run {
  std::vector<std::byte> source, destination, expected;
};

Run prepare(const Case& one, plait_reshard plan, int round) {
  Run run{part(one, plan, PLAIT_RESHARD_SOURCE, round), {}, part(one, plan, PLAIT_RESHARD_DESTINATION, round)};
  run.destination.assign(run.expected.size(), std::byte{0xA5});
  return run;
}

void check(const Run& run, const Case& one, const char* how) {
  expect(run.destination == run.expected, one.name + ", " + how);
}

void try_pair(Random& random, const std::string& options) {
  const Case first = some_case(random, options), second = some_case(random, options);
  plait::Reshard one(MPI_COMM_WORLD, first.source, first.destination, first.shape, first.element, first.options);
  plait::Reshard other(MPI_COMM_WORLD, second.source, second.destination, second.shape, second.element, second.options);
  for (int round = 0; round < 2; ++round) {
    Run run = prepare(first, one.handle(), round);
    one.execute(run.source.data(), run.destination.data());
    check(run, first, "blocking");
  }
  Run a = prepare(first, one.handle(), 2), b = prepare(second, other.handle(), 3), c = prepare(first, one.handle(), 4);
  MPI_Request requests[3];
  const bool swapped = world_rank % 2 == 1;
  if (swapped) requests[1] = other.start(b.source.data(), b.destination.data());
  requests[0] = one.start(a.source.data(), a.destination.data());
  requests[2] = one.start(c.source.data(), c.destination.data());
  if (!swapped) requests[1] = other.start(b.source.data(), b.destination.data());
  if (swapped)
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  else
    for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(a, first, "non-blocking");
  check(b, second, "non-blocking, beside another");
  check(c, first, "non-blocking, behind another");
}

// ---- Wrong arguments

struct Arguments {
  std::vector<int> src_dims = {1}, src_ranks = {0}, dst_dims = {1}, dst_ranks = {0};
  const char *src_spec = "SR", *dst_spec = "RR", *options = nullptr;
  std::vector<std::int64_t> shape = {4, 4};
  MPI_Datatype element = MPI_INT;
  bool has_plan = true;
};

std::string refusal(const Arguments& given, MPI_Comm comm) {
  plait_reshard plan = reinterpret_cast<plait_reshard>(&failures);
  const int code =
      plait_reshard_create(comm, static_cast<int>(given.src_dims.size()), given.src_dims.data(), given.src_ranks.data(),
                           given.src_spec, static_cast<int>(given.dst_dims.size()), given.dst_dims.data(),
                           given.dst_ranks.data(), given.dst_spec, static_cast<int>(given.shape.size()),
                           given.shape.data(), given.element, given.options, given.has_plan ? &plan : nullptr);
  expect(!given.has_plan || plan == PLAIT_RESHARD_NULL, "no plan after an error");
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (code == MPI_SUCCESS) return "success";
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  return text;
}

void try_wrong(MPI_Comm comm) {
  const auto names = [&](const char* argument, const Arguments& given) {
    const std::string text = refusal(given, comm);
    expect(text.find(std::string(argument) + ":") != std::string::npos, std::string(argument) + " is named in " + text);
  };
  names("src_spec", {.src_spec = "SR"});
  names("src_spec", {.src_spec = "S0S0"});
  names("src_spec", {.src_spec = "S00R"});
  names("src_spec", {.src_spec = "S1R"});
  names("src_spec", {.src_spec = "S0"});
  names("src_spec", {.src_spec = "S0RR"});
  names("src_spec", {.src_spec = "X"});
  names("src_spec", {.src_spec = nullptr});
  names("dst_spec", {.src_spec = "RR", .dst_spec = ""});
  names("dst_mesh", {.dst_ranks = {world_ranks}, .src_spec = "RR"});
  names("src_mesh", {.src_ranks = {-1}, .src_spec = "RR"});
  names("src_mesh", {.src_dims = {2}, .src_ranks = {0, 0}, .src_spec = "RR"});
  names("src_mesh", {.src_dims = {0}, .src_spec = "RR"});
  names("src_mesh", {.src_dims = {1 << 20, 1 << 20}, .src_spec = "RR"});
  names("shape", {.src_spec = "RR", .shape = {4, 0}});
  names("shape", {.src_spec = "RR", .shape = {}});
  names("shape", {.src_spec = "RR", .shape = {std::int64_t{1} << 40, std::int64_t{1} << 40}});
  names("element", {.src_spec = "RR", .element = MPI_DATATYPE_NULL});
  names("options", {.src_spec = "RR", .options = "strategy=magic"});
  names("options", {.src_spec = "RR", .options = "chunks=-1"});
  if (world_ranks == 1) return;
  // One rank's mistake, told on all: what the first and what the last one gives wrong.
  for (const int wrong : {0, world_ranks - 1}) {
    const Arguments right{.src_spec = "RR"};
    const auto told = [&](const char* argument, const Arguments& given) {
      const std::string text = refusal(world_rank == wrong ? given : right, comm);
      const bool named = text.find(std::string(argument) + ":") != std::string::npos;
      const bool where = world_rank == wrong || text.find("on rank " + std::to_string(wrong)) != std::string::npos;
      expect(named && where, "rank " + std::to_string(wrong) + "'s mistake in " + argument + ": " + text);
    };
    told("src_spec", {.src_spec = "R"});
    told("src_spec", {.src_spec = "S0S0"});
    told("src_spec", {.src_spec = "S00R"});
    told("dst_mesh", {.dst_ranks = {world_ranks}, .src_spec = "RR"});
    told("shape", {.src_spec = "RR", .shape = {std::int64_t{1} << 40, std::int64_t{1} << 40}});
    told("element", {.src_spec = "RR", .element = MPI_DATATYPE_NULL});
    told("options", {.src_spec = "RR", .options = "scheduler=magic"});
    told("plan", {.src_spec = "RR", .has_plan = false});
    const auto differs = [&](const char* argument, const Arguments& given) {
      const std::string text = refusal(world_rank == wrong ? given : right, comm);
      expect(text.find(std::string(argument) + ": the ranks do not give the same") != std::string::npos,
             std::string(argument) + " differs: " + text);
    };
    differs("src_mesh", {.src_ranks = {1}, .src_spec = "RR"});
    differs("src_spec", {.src_spec = "S0R"});
    differs("dst_mesh", {.dst_dims = {1, 1}, .src_spec = "RR"});
    differs("dst_spec", {.src_spec = "RR", .dst_spec = "RS0"});
    differs("shape", {.src_spec = "RR", .shape = {4, 5}});
    differs("element", {.src_spec = "RR", .element = MPI_DOUBLE});
    differs("options", {.src_spec = "RR", .options = "seed=2"});
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  const int cases = argc > 1 ? std::atoi(argv[1]) : 20;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  const std::string options = argc > 3 ? argv[3] : "";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Random random(seed);
  try_wrong(MPI_COMM_WORLD);
  for (int i = 0; i < cases; ++i) try_pair(random, options);
  // MPI_Finalize frees it; its owner ends later.
  const plait::Reshard outlives(MPI_COMM_WORLD, {.mesh = {1}, .spec = "R", .ranks = {0}},
                                {.mesh = {1}, .spec = "R", .ranks = {world_ranks - 1}}, {64}, MPI_INT);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) std::printf("reshard: seed %u, %s\n", seed, failures == 0 ? "right" : "wrong");
  MPI_Finalize();
  return failures != 0;
}

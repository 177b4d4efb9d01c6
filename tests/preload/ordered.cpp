// PLAIT_REPRODUCIBLE=order: whatever the placement, the plan, the number of ranks, the form, the size and the offset of
// a call, its results have the bits that the operands alone give, as core combines them.
//
//   ordered [PLAN]...   on communicators of some of the ranks in several orders, each by Plait's own choice and by each
//                       of these plans where it applies; prints how many combinations there were, and a digest that is
//                       the same for any number of ranks and any of the plans
#include <mpi.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/reproducible/ordered_reduction.h"
#include "plait/plait_mpi.h"
#include "tests/persistent_form.h"

namespace {

using plait::Element;
using plait::Op;

// Operands that matter: those of further ranks are zeros, or ones for a product.
constexpr int operands = 4;

struct Type {
  const char* name;
  MPI_Datatype type;
  Element element;
  std::size_t bytes, reals;
};

std::vector<Type> types() {
  return {{"double", MPI_DOUBLE, Element::f64, 8, 1},
          {"float", MPI_FLOAT, Element::f32, 4, 1},
          {"double complex", MPI_C_DOUBLE_COMPLEX, Element::c64, 16, 2},
          {"long double", MPI_LONG_DOUBLE, Element::f80, 16, 1}};
}

using Bytes = std::vector<std::byte>;

// One real, of exponents far apart; never a zero, and near 1 for a product.
double real_of(int operand, std::size_t element, std::size_t part, Op op) {
  std::mt19937_64 random(static_cast<std::uint64_t>(operand) * 1000003 + element * 4 + part);
  random.discard(2);
  const auto fraction = static_cast<double>(random() >> 12) * 0x1p-52;
  const int exponent = op == Op::prod ? static_cast<int>(random() % 3) - 1 : static_cast<int>(random() % 40) - 20;
  return (random() % 2 == 0 ? 1 : -1) * std::ldexp(1 + fraction, exponent);
}

void put(const Type& type, std::byte* at, std::size_t part, double value) {
  if (type.element == Element::f32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(at + part * 4, &narrow, 4);
  } else if (type.element == Element::f80) {
    const auto wide = static_cast<long double>(value) * (1 + 0x1p-60L);
    std::memcpy(at, &wide, 10);
  } else {
    std::memcpy(at + part * 8, &value, 8);
  }
}

// What a rank contributes: `operand` below 0: what changes nothing.
Bytes contribution(const Type& type, Op op, int operand, std::size_t count) {
  Bytes data(count * type.bytes);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t part = 0; part < type.reals; ++part) {
      const double neutral = op == Op::prod && part == 0 ? 1 : 0;
      put(type, data.data() + i * type.bytes, part, operand < 0 ? neutral : real_of(operand, i, part, op));
    }
  return data;
}

// By core, of all operands at once.
Bytes expected(const Type& type, Op op, const std::vector<int>& of_ranks, std::size_t count) {
  std::vector<Bytes> data;
  std::vector<const std::byte*> sources;
  for (const int operand : of_ranks) data.push_back(contribution(type, op, operand, count));
  for (const Bytes& one : data) sources.push_back(one.data());
  Bytes result(count * type.bytes);
  if (sources.size() == 1) return data[0];
  std::byte* to = result.data();
  plait::ordered_reduction(op, type.element)
      ->at_once.many({.results = &to,
                      .result_count = 1,
                      .sources = sources.data(),
                      .source_count = sources.size(),
                      .elements = count,
                      .streaming = false});
  return result;
}

bool same(const Type& type, const std::byte* a, const std::byte* b, std::size_t count) {
  const std::size_t value = type.element == Element::f80 ? 10 : type.bytes;
  for (std::size_t i = 0; i < count; ++i)
    if (std::memcmp(a + i * type.bytes, b + i * type.bytes, value) != 0) return false;
  return true;
}

enum class Form { blocking, nonblocking, persistent };

struct Case {
  MPI_Comm comm;
  int rank, ranks;
  Form form;
  const Type& type;
  Op op;
  std::size_t count;
  bool in_place;
  std::vector<int> operand_of;  // by rank
};

int failures = 0;
std::uint64_t digest = 0;

void check(const Case& c, const char* what, const std::byte* got, const Bytes& wanted, std::size_t count) {
  if (same(c.type, got, wanted.data(), count)) return;
  if (failures++ < 10)
    std::printf("rank %d of %d: %s of %zu %s, %s, form %d%s: other bits (%s)\n", c.rank, c.ranks, what, c.count,
                c.type.name, c.op == Op::sum ? "sum" : "product", static_cast<int>(c.form),
                c.in_place ? ", in place" : "", plait_last_plan());
}

void finish(const Case& c, MPI_Request* request) {
  if (c.form == Form::persistent) MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  if (c.form != Form::persistent) return;
  MPI_Start(request);  // of inputs that were not overwritten the same once more
  MPI_Wait(request, MPI_STATUS_IGNORE);
  MPI_Request_free(request);
}

// Call(blocking), Icall(request), Call_init(request)
template <class Blocking, class Posted, class Made>
void run(const Case& c, Blocking&& blocking, Posted&& posted, Made&& made) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (c.form == Form::blocking) {
    blocking();
    return;
  }
  if (c.form == Form::nonblocking)
    posted(&request);
  else
    made(&request);
  finish(c, &request);
}

MPI_Op operator_of(Op op) { return op == Op::sum ? MPI_SUM : MPI_PROD; }

// Not from the beginning of a line of cache, so that vectors begin anywhere.
struct Buffer {
  Buffer(const Bytes& data, std::size_t offset) : memory(data.size() + 64 + offset), begin(offset) {
    std::memcpy(memory.data() + begin, data.data(), data.size());
  }
  std::byte* at() { return memory.data() + begin; }
  Bytes memory;
  std::size_t begin;
};

void run_case(const Case& c) {
  const Bytes mine = contribution(c.type, c.op, c.operand_of[static_cast<std::size_t>(c.rank)], c.count);
  const Bytes all = expected(c.type, c.op, c.operand_of, c.count);
  const int count = static_cast<int>(c.count);
  const MPI_Op op = operator_of(c.op);
  const bool in_place = c.in_place && c.form != Form::persistent;
  const std::size_t offset = c.count % 3 * c.type.bytes;
  const auto input = [&](Buffer& send) -> const void* { return in_place ? MPI_IN_PLACE : send.at(); };

  {
    Buffer send(mine, offset), receive(in_place ? mine : Bytes(mine.size()), offset);
    const void* from = input(send);
    run(
        c, [&] { MPI_Allreduce(from, receive.at(), count, c.type.type, op, c.comm); },
        [&](MPI_Request* r) { MPI_Iallreduce(from, receive.at(), count, c.type.type, op, c.comm, r); },
        [&](MPI_Request* r) {
          PLAIT_PERSISTENT(Allreduce)(from, receive.at(), count, c.type.type, op, c.comm, MPI_INFO_NULL, r);
        });
    check(c, "allreduce", receive.at(), all, c.count);
    if (c.op == Op::sum && c.type.element == Element::f64)
      for (std::size_t i = 0; i < std::min<std::size_t>(c.count, 5); ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, receive.at() + i * 8, 8);
        digest = std::max(digest, bits * 0x9E3779B97F4A7C15u);
      }
  }
  {
    const int root = c.ranks / 2;
    const bool at_root = c.rank == root;
    Buffer send(mine, offset), receive(in_place ? mine : Bytes(mine.size()), offset);
    const void* from = at_root ? input(send) : send.at();
    run(
        c, [&] { MPI_Reduce(from, receive.at(), count, c.type.type, op, root, c.comm); },
        [&](MPI_Request* r) { MPI_Ireduce(from, receive.at(), count, c.type.type, op, root, c.comm, r); },
        [&](MPI_Request* r) {
          PLAIT_PERSISTENT(Reduce)(from, receive.at(), count, c.type.type, op, root, c.comm, MPI_INFO_NULL, r);
        });
    if (at_root) check(c, "reduce", receive.at(), all, c.count);
  }
  {
    const std::size_t share = c.count / static_cast<std::size_t>(c.ranks);
    Buffer send(mine, offset), receive(in_place ? mine : Bytes(mine.size()), offset);
    const void* from = input(send);
    const int own = static_cast<int>(share);
    if (share > 0) {
      run(
          c, [&] { MPI_Reduce_scatter_block(from, receive.at(), own, c.type.type, op, c.comm); },
          [&](MPI_Request* r) { MPI_Ireduce_scatter_block(from, receive.at(), own, c.type.type, op, c.comm, r); },
          [&](MPI_Request* r) {
            PLAIT_PERSISTENT(Reduce_scatter_block)
            (from, receive.at(), own, c.type.type, op, c.comm, MPI_INFO_NULL, r);
          });
      const Bytes part(
          all.begin() + static_cast<std::ptrdiff_t>(share * c.type.bytes * static_cast<std::size_t>(c.rank)),
          all.end());
      check(c, "reduce_scatter_block", receive.at(), part, share);
    }
  }
  {
    // The last rank gets what is left, the one before nothing.
    std::vector<int> counts(static_cast<std::size_t>(c.ranks), count / c.ranks);
    counts[counts.size() - 2] = 0;
    counts.back() = 0;
    counts.back() = count - std::accumulate(counts.begin(), counts.end(), 0);
    Buffer send(mine, offset), receive(in_place ? mine : Bytes(mine.size()), offset);
    const void* from = input(send);
    run(
        c, [&] { MPI_Reduce_scatter(from, receive.at(), counts.data(), c.type.type, op, c.comm); },
        [&](MPI_Request* r) { MPI_Ireduce_scatter(from, receive.at(), counts.data(), c.type.type, op, c.comm, r); },
        [&](MPI_Request* r) {
          PLAIT_PERSISTENT(Reduce_scatter)
          (from, receive.at(), counts.data(), c.type.type, op, c.comm, MPI_INFO_NULL, r);
        });
    const int before = std::accumulate(counts.begin(), counts.begin() + c.rank, 0);
    const Bytes part(all.begin() + static_cast<std::ptrdiff_t>(c.type.bytes) * before, all.end());
    check(c, "reduce_scatter", receive.at(), part, static_cast<std::size_t>(counts[static_cast<std::size_t>(c.rank)]));
  }
  for (const bool exclusive : {false, true}) {
    Buffer send(mine, offset), receive(in_place ? mine : Bytes(mine.size()), offset);
    const void* from = input(send);
    std::vector<int> before(c.operand_of.begin(), c.operand_of.begin() + c.rank + (exclusive ? 0 : 1));
    run(
        c,
        [&] {
          exclusive ? MPI_Exscan(from, receive.at(), count, c.type.type, op, c.comm)
                    : MPI_Scan(from, receive.at(), count, c.type.type, op, c.comm);
        },
        [&](MPI_Request* r) {
          exclusive ? MPI_Iexscan(from, receive.at(), count, c.type.type, op, c.comm, r)
                    : MPI_Iscan(from, receive.at(), count, c.type.type, op, c.comm, r);
        },
        [&](MPI_Request* r) {
          exclusive ? PLAIT_PERSISTENT(Exscan)(from, receive.at(), count, c.type.type, op, c.comm, MPI_INFO_NULL, r)
                    : PLAIT_PERSISTENT(Scan)(from, receive.at(), count, c.type.type, op, c.comm, MPI_INFO_NULL, r);
        });
    if (!before.empty())
      check(c, exclusive ? "exscan" : "scan", receive.at(), expected(c.type, c.op, before, c.count), c.count);
  }
}

// Communicators of `size` ranks, in an order of their own.
MPI_Comm some_ranks(int size, int order) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> places(static_cast<std::size_t>(ranks));
  std::iota(places.begin(), places.end(), 0);
  std::mt19937_64 random(static_cast<std::uint64_t>(order) * 7919 + 1);
  if (order > 0)
    for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random() % i]);
  const int place = static_cast<int>(std::ranges::find(places, rank) - places.begin());
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, place < size ? 0 : MPI_UNDEFINED, place, &made);
  return made;
}

void run_on(MPI_Comm comm, int order) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  std::vector<int> operand_of(static_cast<std::size_t>(ranks), -1);
  std::vector<std::size_t> places(operand_of.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::mt19937_64 random(static_cast<std::uint64_t>(order) + 5);
  for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random() % i]);
  for (int i = 0; i < std::min(operands, ranks); ++i) operand_of[places[static_cast<std::size_t>(i)]] = i;
  const std::vector<Type> all_types = types();
  int number = order;
  for (const std::size_t count : {std::size_t{1}, std::size_t{13}, std::size_t{500}, std::size_t{6007}})
    for (const Op op : {Op::sum, Op::prod})
      for (const Type& type : all_types) {
        if (count > 13 && op == Op::prod && (type.element != Element::f64 || count > 500)) continue;
        const auto form = static_cast<Form>(number % 3);
        run_case({comm, rank, ranks, form, type, op, count, ++number / 3 % 2 == 1, operand_of});
      }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int world = 0, ranks = 1, combinations = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int size = operands; size <= ranks; ++size)
    for (int order = 0; order < 3; ++order) {
      MPI_Comm comm = some_ranks(size, order);
      for (int plan = 0; plan < argc; ++plan) {
        int fits = 1;
        if (comm != MPI_COMM_NULL) {
          fits = plan == 0 || plait_set_plan(comm, argv[plan]) == MPI_SUCCESS ? 1 : 0;
          if (fits == 1) run_on(comm, order + plan);
          if (fits == 1 && plan > 0) plait_set_plan(comm, "");
        }
        MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        combinations += fits;
      }
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &digest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  if (world == 0)
    std::printf("combinations %d digest %016llx failures %d\n", combinations, static_cast<unsigned long long>(digest),
                failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}

#include "tests/differential/cases.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

namespace plait::test {
namespace {

constexpr std::array movers = {Collective::bcast,  Collective::allgather, Collective::allgatherv,
                               Collective::gather, Collective::scatter,   Collective::alltoall};
constexpr std::array reductions = {Collective::reduce, Collective::allreduce, Collective::reduce_scatter_block,
                                   Collective::reduce_scatter};
constexpr std::array rooted_ones = {Collective::bcast, Collective::reduce, Collective::gather, Collective::scatter};

constexpr std::size_t kib = 1024;
// Where transports and plans change: the size of an inline message, of slots, pieces and thresholds.
constexpr std::array<std::size_t, 12> borders = {56,       64,       4 * kib,  8 * kib,   16 * kib,  32 * kib,
                                                 60 * kib, 64 * kib, 96 * kib, 128 * kib, 256 * kib, 512 * kib};

bool user_defined(const Basic& basic) {
  return !basic.operators.empty() && basic.operators.front().family == Family::user;
}

// MPICH 4.0 reads from MPI_IN_PLACE in reductions, and crashes. On the host's road the test makes a copy instead; where
// Plait may hand calls on, a program cannot make them.
bool host_copes(const Case& test) {
#ifdef MPICH_VERSION
  if (test.op != nullptr && test.in_place) return false;
#endif
  return Trial::host_copes(test);
}

const Operator& operator_named(const Basic& basic, const char* name) {
  return *std::find_if(basic.operators.begin(), basic.operators.end(),
                       [&](const Operator& op) { return op.name == name; });
}

}  // namespace

Cases::Cases(const std::vector<Basic>& basics, const std::vector<Party>& parties, Scope scope, std::uint64_t seed)
    : basics_(basics), parties_(parties), scope_(std::move(scope)), seed_(seed) {
  for (std::size_t i = 0; i < basics_.size(); ++i) {
    if (!user_defined(basics_[i])) movable_.push_back(i);
    const bool copes = !scope_.for_host || basics_[i].dense == MPI_DATATYPE_NULL;
    if (!basics_[i].operators.empty() && copes) reducible_.push_back(i);
  }
  // A limit on sizes must come out alike on all ranks, also on those outside of a communicator.
  for (std::size_t i = 0; i < parties_.size(); ++i) party_ranks_.push_back(static_cast<std::size_t>(parties_[0].ranks));
  add_types_and_operators();
  add_moved_types();
  add_sizes();
  add_roots();
  add_layouts();
  add_user_operators();
  add_parties();
  Random random(derive(seed, 3));
  for (std::size_t i = list_.size(); i > 1; --i) std::swap(list_[i - 1], list_[random.below(i)]);
}

Case Cases::at(std::size_t number) const {
  const std::uint64_t seed = derive(seed_, 4, number);
  Random random(seed);
  Case test = scope_.scenes           ? in_scene(number, random)
              : number < list_.size() ? list_[number]
                                      : fitted(random_case(random));
  test.number = number;
  test.seed = seed;
  return test;
}

// ---- The enumerated ones ----

void Cases::add(Case test) {
  if (wanted(test.collective) && (!scope_.for_host || host_copes(test))) list_.push_back(fitted(test));
}

void Cases::add_at_sizes(Case test, const std::vector<std::size_t>& counts) {
  for (const std::size_t count : counts) {
    test.count = count;
    test.in_place = false;
    add(test);
    test.in_place = may_be_in_place(test.collective);
    if (test.in_place) add(test);
  }
}

void Cases::add_types_and_operators() {
  // One element and several: one of them in place.
  for (const std::size_t index : reducible_)
    for (const Operator& op : basics_[index].operators)
      for (const Collective collective : reductions) {
        Case test{.collective = collective, .basic = &basics_[index], .op = &op, .root = static_cast<int>(index)};
        bool in_place = derive(seed_, index, list_.size()) % 2 == 0;
        for (const std::size_t count : {1, 37}) {
          test.count = count;
          test.in_place = in_place;
          add(test);
          in_place = !in_place;
        }
      }
}

void Cases::add_moved_types() {
  for (const std::size_t index : movable_)
    for (const Collective collective : movers)
      add_at_sizes({.collective = collective, .basic = &basics_[index], .root = static_cast<int>(index)}, {3, 501});
}

std::vector<std::size_t> Cases::counts_around_borders(const Basic& basic) const {
  const std::size_t ranks = party_ranks_[0];
  std::vector<std::size_t> counts = {0, 1, 2, 3, 5, 7, 13, 31, 97, 1009, ranks - 1, ranks, ranks + 1, 8 * ranks + 1};
  for (const std::size_t border : borders)
    for (const int by : {-1, 0, 1}) counts.push_back(border / basic.extent + static_cast<std::size_t>(by));
  const std::size_t mib = kib * kib;
  counts.push_back(mib / basic.extent);
  counts.push_back((mib + 4099) / basic.extent);
  if (scope_.large)
    for (const std::size_t size : {4 * mib, 9 * mib, 24 * mib}) counts.push_back(size / basic.extent + 1);
  return counts;
}

void Cases::add_sizes() {
  const Basic &bytes = basic("MPI_BYTE"), &doubles = basic("MPI_DOUBLE"), &ints = basic("MPI_INT");
  add({.collective = Collective::barrier});
  int root = 0;
  for (const Collective collective : movers)
    for (const Basic* moved : {&bytes, &doubles})
      add_at_sizes({.collective = collective, .basic = moved, .root = ++root}, counts_around_borders(*moved));
  for (const Collective collective : reductions)
    for (const Basic* reduced : {&ints, &doubles})
      add_at_sizes(
          {.collective = collective, .basic = reduced, .op = &operator_named(*reduced, "MPI_SUM"), .root = ++root},
          counts_around_borders(*reduced));
}

void Cases::add_roots() {
  const Basic &ints = basic("MPI_INT"), &matrices = basic("matrix");
  const std::vector<std::size_t> counts = {1, 1250, 17501};
  for (int root = 0; root < parties_[0].ranks; ++root)
    for (const Collective collective : rooted_ones) {
      if (!reduces(collective)) {
        add_at_sizes({.collective = collective, .basic = &ints, .root = root}, counts);
        continue;
      }
      add_at_sizes({.collective = collective, .basic = &ints, .op = &operator_named(ints, "MPI_SUM"), .root = root},
                   counts);
      add_at_sizes({.collective = collective,
                    .basic = &matrices,
                    .op = &operator_named(matrices, "matrix product"),
                    .root = root},
                   counts);
    }
}

void Cases::add_layouts() {
  const std::array<const Basic*, 4> of = {&basic("MPI_INT"), &basic("MPI_DOUBLE"), &basic("MPI_BYTE"),
                                          &basic("MPI_SHORT_INT")};
  int root = 0;
  for (const Collective collective : movers)
    for (const Shape shape : {Shape::derived, Shape::mixed})
      for (const Basic* basic : of)
        add_at_sizes({.collective = collective, .basic = basic, .root = ++root, .shape = shape},
                     {12, 24, 60, 480, 1200, 4800, 12000, 60000});
}

void Cases::add_user_operators() {
  for (const std::size_t index : reducible_)
    if (user_defined(basics_[index]))
      for (const Operator& op : basics_[index].operators)
        for (const Collective collective : reductions)
          for (int root = 0; root < 2; ++root)
            add_at_sizes({.collective = collective, .basic = &basics_[index], .op = &op, .root = root},
                         {1, 2, 3, 4, 5, 100, 255, 257, 1000, 4097, 20000});
}

void Cases::add_parties() {
  const Basic &ints = basic("MPI_INT"), &matrices = basic("matrix with gaps");
  for (std::size_t party = 0; party < parties_.size(); ++party) {
    for (int i = 0; i < 4; ++i) add({.collective = Collective::barrier, .party = party});
    for (const Collective collective : movers)
      for (const Shape shape : {Shape::plain, Shape::derived})
        add_at_sizes({.collective = collective, .party = party, .basic = &ints, .root = 1, .shape = shape},
                     {12, 1200, 24000});
    for (const Collective collective : reductions)
      for (const Basic* reduced : {&ints, &matrices})
        add_at_sizes(
            {.collective = collective, .party = party, .basic = reduced, .op = &reduced->operators.front(), .root = 1},
            {12, 1200, 24000});
  }
}

// ---- The random ones ----

// Half of them at random on a logarithmic scale, the others at a border.
std::size_t Cases::random_count(const Basic& basic, Random& random) const {
  if (random.one_in(2)) {
    const double power = static_cast<double>(random.below(scope_.large ? 24000 : 17500)) / 1000;
    return static_cast<std::size_t>(std::exp2(power)) / basic.extent + random.below(3);
  }
  const std::vector<std::size_t> counts = counts_around_borders(basic);
  // Large ones take the time of many small ones.
  const std::size_t count = counts[random.below(counts.size())];
  return count * basic.extent > 64 * kib && !random.one_in(4) ? count % 1009 : count;
}

void Cases::choose_elements(Case& test, Random& random) const {
  if (reduces(test.collective)) {
    test.basic = &basics_[reducible_[random.below(reducible_.size())]];
    test.op = &test.basic->operators[random.below(test.basic->operators.size())];
    return;
  }
  test.shape = Shape::plain;
  test.basic = &basics_[movable_[random.below(movable_.size())]];
  if (random.one_in(2)) test.shape = random.one_in(3) ? Shape::mixed : Shape::derived;
}

void Cases::choose_root_and_place(Case& test, Random& random) const {
  test.root = static_cast<int>(random.below(static_cast<std::size_t>(parties_[0].ranks)));
  test.in_place = may_be_in_place(test.collective) && random.one_in(3);
  if (scope_.for_host && !host_copes(test)) test.in_place = false;
}

Case Cases::random_case(Random& random) const {
  Case test;
  test.collective = scope_.collectives[random.below(scope_.collectives.size())];
  test.party = random.one_in(3) ? random.below(parties_.size()) : 0;
  if (test.collective == Collective::barrier) return test;
  do choose_elements(test, random);
  while (scope_.for_host && !host_copes(test));
  test.count = random_count(*test.basic, random);
  choose_root_and_place(test, random);
  return test;
}

// ---- Scenes ----

namespace {

std::size_t element_bytes(const Case& test) { return test.shape == Shape::mixed ? MixedTypes::size : test.basic->size; }
std::size_t payload_of(const Case& test) { return test.count * element_bytes(test); }

// As many calls in a row as make a sample of a trial, so that a visit to a class is one.
int times_of(const Case& test) {
  const std::size_t bytes = test.basic == nullptr ? 0 : payload_of(test);
  if (bytes < 4 * kib) return rooted(test.collective) ? 32 : 8;
  if (bytes < 64 * kib) return rooted(test.collective) ? 4 : 2;
  return 1;
}

}  // namespace

Case Cases::class_of_scene(std::size_t scene, std::size_t index) const {
  const std::size_t of = scene % 3 == 2 ? scene - 1 : scene;
  Random random(derive(seed_, 11, of * scene_classes + index));
  Case test = random_case(random);
  // The world, or any other but that of one rank, on which nothing is tried.
  test.party = random.one_in(2) ? 0 : 2 + random.below(parties_.size() - 2);
  // So many calls of a long class take long.
  if (test.basic != nullptr && payload_of(test) > 64 * kib && !random.one_in(4)) test.count %= 1009;
  return test;
}

// Of other types, lengths and roots, where that leaves it in its class. Whether user-defined operators commute differs.
Case Cases::another_of_class(const Case& model, Random& random) const {
  if (model.basic == nullptr) return model;
  Case test = model;
  const bool of_user = model.op != nullptr && user_defined(*model.basic);
  if (!of_user && random.one_in(2)) do
      choose_elements(test, random);
    while ((test.op != nullptr && user_defined(*test.basic)) || (scope_.for_host && !host_copes(test)));
  const std::size_t bytes = payload_of(model), beyond = std::bit_ceil(bytes + 1);
  test.count = (beyond / 2 + random.below(beyond - beyond / 2)) / element_bytes(test);
  test = fitted(test);
  if (std::bit_width(payload_of(test)) != std::bit_width(bytes)) test = fitted(model);
  choose_root_and_place(test, random);
  return test;
}

Case Cases::in_scene(std::size_t number, Random& random) const {
  const std::size_t scene = number / scene_length, turn = derive(seed_, 12, number / scene_classes);
  Case test = another_of_class(class_of_scene(scene, (number + turn) % scene_classes), random);
  test.times = times_of(test);
  return test;
}

// ---- ----

const Basic& Cases::basic(const char* name) const {
  return *std::find_if(basics_.begin(), basics_.end(), [&](const Basic& basic) { return basic.name == name; });
}

bool Cases::wanted(Collective collective) const {
  return std::find(scope_.collectives.begin(), scope_.collectives.end(), collective) != scope_.collectives.end();
}

// Within the limit on memory, and with a count that all layouts divide.
namespace {

// MPICH leaves anything in the padding of a long double that it moves by a derived type: nothing can be compared.
bool leaves_padding(const Case& test) {
#ifdef MPICH_VERSION
  return test.op == nullptr && test.shape == Shape::derived && !test.basic->value_bytes.empty();
#else
  static_cast<void>(test);
  return false;
#endif
}

}  // namespace

Case Cases::fitted(Case test) const {
  if (test.basic == nullptr) return test;
  if (leaves_padding(test)) test.shape = Shape::plain;
  const bool single = test.collective == Collective::bcast || test.collective == Collective::reduce ||
                      test.collective == Collective::allreduce;
  const std::size_t parts = single ? 1 : party_ranks_[test.party];
  const std::size_t element = test.shape == Shape::mixed ? 2 * MixedTypes::size : test.basic->extent;
  const std::size_t most = scope_.max_bytes / (parts * element);
  // Keep an odd size odd.
  if (test.count > most) test.count = most - (most + test.count) % 2;
  if (test.shape != Shape::plain) test.count = (test.count + layout_multiple - 1) / layout_multiple * layout_multiple;
  return test;
}

}  // namespace plait::test

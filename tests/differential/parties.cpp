#include "tests/differential/parties.h"

#include <numeric>
#include <utility>

#include "tests/differential/random.h"

namespace plait::test {
namespace {

Party party_of(const char* name, MPI_Comm comm) {
  Party party{.name = name, .comm = comm};
  if (comm == MPI_COMM_NULL) return party;
  MPI_Comm_rank(comm, &party.rank);
  MPI_Comm_size(comm, &party.ranks);
  return party;
}

MPI_Comm split(int colour, int key) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, colour, key, &comm);
  return comm;
}

// The first rank of each node.
MPI_Comm node_leaders(int world_rank) {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return split(rank == 0 ? 0 : MPI_UNDEFINED, world_rank);
}

// Positions of the ranks in an order that has nothing to do with where they are.
std::vector<int> shuffled(int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  Random random(0x5EED);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace

std::vector<Party> make_parties() {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  return {party_of("world", MPI_COMM_WORLD),
          party_of("self", MPI_COMM_SELF),
          party_of("duplicate", duplicate),
          party_of("reversed", split(0, ranks - rank)),
          party_of("shuffled", split(0, shuffled(ranks)[static_cast<std::size_t>(rank)])),
          party_of("odd or even", split(rank % 2, rank)),
          party_of("lower or upper half", split(rank < ranks / 2 ? 0 : 1, -rank)),
          party_of("all but rank 0", split(rank > 0 ? 0 : MPI_UNDEFINED, rank)),
          party_of("node leaders", node_leaders(rank))};
}

void deal_out(std::vector<Party>& parties, int threads) {
  for (std::size_t i = 0; i < parties.size(); ++i) {
    const std::size_t first = thread_of(i, threads);  // of this thread's parties
    if (i == first) MPI_Comm_dup(MPI_COMM_SELF, &parties[i].own);
    parties[i].own = parties[first].own;
  }
}

void free_parties(std::vector<Party>& parties) {
  for (std::size_t i = 0; i < parties.size(); ++i) {
    MPI_Comm own = parties[i].own;
    if (own == MPI_COMM_SELF) continue;
    for (Party& party : parties)
      if (party.own == own) party.own = MPI_COMM_SELF;
    MPI_Comm_free(&own);
  }
  for (Party& party : parties)
    if (party.comm != MPI_COMM_NULL && party.comm != MPI_COMM_WORLD && party.comm != MPI_COMM_SELF)
      MPI_Comm_free(&party.comm);
  parties.clear();
}

}  // namespace plait::test

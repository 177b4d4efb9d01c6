// The textbook algorithms within one group of ranks. Each works on segments of the collective's data, chunk by chunk:
// all chunks of one stage are listed before the next stage, so that the messages of different chunks overlap.
//
// `group` lists the members in order. `Segments` are indices of segments (see Semantics); `pieces[i]` are those that
// belong to group[i]. Costs are given for g members and S bytes of all pieces together.
#pragma once

#include <span>
#include <vector>

#include "plan/model/builder.h"

namespace plait::plan {

using Group = std::span<const int>;
using Segments = std::vector<int>;
using Pieces = std::span<const Segments>;

// The blocks of one chunk of these segments, ascending.
std::vector<BlockId> blocks_of(const Semantics& semantics, const Segments& segments, int chunk);

// Ring (Patarasuk and Yuan, JPDC 69(2), 2009): g-1 stages, each member sends (g-1)/g S. Piece i ends, reduced, at
// member i.
void ring_reduce_scatter(Builder& builder, Group group, Pieces pieces);
// g-1 stages, each member sends (g-1)/g S. Piece i starts at member i; all members end with all pieces.
void ring_allgather(Builder& builder, Group group, Pieces pieces);

// Every member sends each other member that one's piece: one stage of latency, (g-1)/g S, messages in the order of
// distance.
void direct_reduce_scatter(Builder& builder, Group group, Pieces pieces);
void direct_allgather(Builder& builder, Group group, Pieces pieces);

// Recursive halving and doubling (Thakur et al., IJHPCA 19(1), 2005), for powers of two: log2 g stages, each member
// sends (g-1)/g S. Halving begins between neighbours and doubling ends there, so that the longest messages are the
// nearest.
void recursive_halving_reduce_scatter(Builder& builder, Group group, Pieces pieces);
void recursive_doubling_allgather(Builder& builder, Group group, Pieces pieces);

// Dissemination (Bruck et al., IEEE TPDS 8(11), 1997): ceil(log2 g) stages, each member sends (g-1)/g S.
void dissemination_allgather(Builder& builder, Group group, Pieces pieces);

// ceil(log2 g) stages, each member sends and receives S in each; when g is no power of two, the surplus members first
// fold into a neighbour and are told the result at the end. Keeps the order of operands (Thakur et al., IJHPCA 19(1),
// 2005).
void recursive_doubling_allreduce(Builder& builder, Group group, const Segments& segments);

// Double binary tree (Sanders et al., Parallel Computing 35(12), 2009) between the first members of `groups`: each of
// two trees carries half of the segments, and inner nodes of one are leaves of the other. Chains within each group.
// Each member sends and receives at most 2 S.
void double_tree_allreduce(Builder& builder, std::span<const std::vector<int>> groups, const Segments& segments);

// To and from group[0]. Binomial: ceil(log2 g) stages; k-nomial: ceil(log_k g), each of up to k-1 messages. Chain: g-1
// hops, a pipeline over the chunks. Flat: all with the root. The reductions keep the order of operands.
enum class Tree { binomial, knomial4, knomial8, chain, flat };
void tree_reduce(Builder& builder, Group group, const Segments& segments, Tree tree);
void tree_broadcast(Builder& builder, Group group, const Segments& segments, Tree tree);

// group[0] collects every member's piece, or hands the pieces out: one message a member.
void direct_gather(Builder& builder, Group group, Pieces pieces);
void direct_scatter(Builder& builder, Group group, Pieces pieces);
// The same along a binomial tree: ceil(log2 g) stages; inner members forward what they collected.
void binomial_gather(Builder& builder, Group group, Pieces pieces);
void binomial_scatter(Builder& builder, Group group, Pieces pieces);

// Every rank sends its block for each other rank directly, nearest in `order` first: N-1 messages a rank.
void pairwise_alltoall(Builder& builder, Group order, std::span<const std::vector<int>> nodes);
// Leaders (the first of each node) collect what leaves their node, exchange one message a pair of nodes, and hand out
// what arrives; members of a node exchange directly. For small messages: (n-1) network messages a node instead of
// r*r*(n-1).
void leader_alltoall(Builder& builder, std::span<const std::vector<int>> nodes);

}  // namespace plait::plan

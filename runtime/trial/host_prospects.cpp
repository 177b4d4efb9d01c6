#include "runtime/trial/host_prospects.h"

#include <cstdint>
#include <limits>

#include "plan/choose/host_rows.h"

namespace plait::runtime {
namespace {

struct Row {
  enum class Where : std::uint8_t { within_node, between_nodes };
  CollectiveSet collectives;
  Where where;
  int from, to;  // size classes, inclusive
  Prospect prospect;
};

constexpr int any_size = std::numeric_limits<int>::max();
constexpr CollectiveSet rooted_pieces = set_of(Collective::gather) | set_of(Collective::scatter);
constexpr CollectiveSet gathering = set_of(Collective::allgather) | set_of(Collective::allgatherv);

// The first row that holds.
constexpr Row rows[] = {
    // The host streams short pieces to or from a root, no rank waiting for another.
    {rooted_pieces, Row::Where::within_node, 0, 9, {1.0, 0.4}},
    {rooted_pieces, Row::Where::between_nodes, 0, 17, {1.0, 0.5}},
    // Long copies are bound by the memory, whoever makes them.
    {set_of(Collective::alltoall), Row::Where::within_node, 17, any_size, {1.0, 0.25}},
    {gathering, Row::Where::within_node, 19, any_size, {1.0, 0.4}},
};
constexpr Prospect elsewhere = {1.6, 0.7};

}  // namespace

Prospect usual_host_prospect(Collective collective, int size_class, bool between_nodes) {
  const Row::Where where = between_nodes ? Row::Where::between_nodes : Row::Where::within_node;
  for (const Row& row : rows)
    if (has(row.collectives, collective) && row.where == where && row.from <= size_class && size_class <= row.to)
      return row.prospect;
  return elsewhere;
}

}  // namespace plait::runtime

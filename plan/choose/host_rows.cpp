#include "plan/choose/host_rows.h"

#include <algorithm>

namespace plait::plan {
namespace {

using Of = HostRow::Of;
using Where = HostRow::Where;

constexpr std::size_t kib = 1024;
constexpr CollectiveSet all_collectives = ~CollectiveSet{0};
constexpr CollectiveSet scans = set_of(Collective::scan) | set_of(Collective::exscan);
constexpr CollectiveSet reduce_scatters = set_of(Collective::reduce_scatter) | set_of(Collective::reduce_scatter_block);
constexpr CollectiveSet among_neighbors =
    set_of(Collective::neighbor_allgather) | set_of(Collective::neighbor_allgatherv) |
    set_of(Collective::neighbor_alltoall) | set_of(Collective::neighbor_alltoallv) |
    set_of(Collective::neighbor_alltoallw);
constexpr CollectiveSet exchanges = set_of(Collective::alltoallv) | set_of(Collective::alltoallw);

// All measured on a machine of two cores, whose nodes are emulated.
constexpr HostRow usual[] = {
    // Its version ends in messages that nobody waits for, so that calls overlap: `perf/spine`, docs/performance.md,
    // "Where Plait is not ahead, and why".
    // UCC's layers have no such version: docs/ucc.md, "Between nodes".
    {.collectives = reduce_scatters, .where = Where::between_nodes, .of = Of::all_ranks, .to = 513, .of_layers = false},

    // The host's chain of ranks lets the first ones run ahead: it is left behind within a node only, and by vectors
    // that
    // are neither tiny nor long. docs/performance.md, "Lengths of their own, and scans":
    // `plait bench --collectives scan --sizes 8,256,1K,4K,16K`, 16 ranks of a node: 1.62 times as fast here at 1 KiB,
    // 1.45 at 4 KiB; 4 nodes of 2 ranks, 8 B to 64 KiB: 0.14 to 0.25.
    {.collectives = scans,
     .of = Of::all_ranks,
     .from = 64 * kib + 1,  // each rank gets all vectors
     .reason = reasons::long_prefix,
     .always = true},
    {.collectives = scans, .where = Where::between_nodes},
    {.collectives = scans, .where = Where::within_node, .to = 512},
    {.collectives = scans, .where = Where::within_node, .from = 8 * kib + 1},

    // Calls run ahead of the root. There, `--collectives gatherv`: 0.42 to 0.55 up to 8 KiB between nodes. Within one
    // 1.9 to 7.6 times as fast from 512 B to 4 KiB, slower below. Many ranks have little room for long messages: from
    // 16 KiB on 0.31 to 0.99 with 16 ranks, from 64 KiB on 0.91 and 0.98 with 8. What does not block learns of no
    // lengths.
    {.collectives = set_of(Collective::gatherv), .where = Where::between_nodes},
    {.collectives = set_of(Collective::gatherv),
     .forms = set_of(Form::nonblocking) | set_of(Form::persistent),
     .where = Where::within_node},
    {.collectives = set_of(Collective::gatherv),
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .of = Of::message,
     .to = 512,
     .reason = reasons::host_has_lengths},
    {.collectives = set_of(Collective::gatherv),
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .least_ranks = 5,
     .of = Of::message,
     .from = 64 * kib,
     .reason = reasons::host_has_lengths},
    {.collectives = set_of(Collective::gatherv),
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .least_ranks = 9,
     .of = Of::message,
     .from = 16 * kib,
     .reason = reasons::host_has_lengths},

    // A message of its own between two ranks of a node passes through the segment, where the host copies once by the
    // kernel; tiny ones of two ranks are one message either way. There, `--collectives alltoallv`: 0.96 at 4 KiB with
    // 16
    // ranks, 0.3 to 0.9 below 512 B with two. Between nodes 0.97 to 3.15 at all sizes.
    {.collectives = exchanges,
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .most_ranks = 2,
     .of = Of::message,
     .to = 512,
     .reason = reasons::host_has_lengths},
    {.collectives = exchanges,
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .most_ranks = 2,
     .of = Of::message,
     .from = 16 * kib,
     .reason = reasons::host_has_lengths},
    {.collectives = exchanges,
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .least_ranks = 3,
     .of = Of::message,
     .from = 4 * kib,
     .reason = reasons::host_has_lengths},
    // There, `--collectives scatterv`: 17.4 at 1 KiB with 16 ranks of a node, behind the host below 512 B and, with few
    // ranks, from 16 KiB on; 1.06 to 2.43 between nodes.
    {.collectives = set_of(Collective::scatterv),
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .of = Of::message,
     .to = 512,
     .reason = reasons::host_has_lengths},
    {.collectives = set_of(Collective::scatterv),
     .forms = set_of(Form::blocking),
     .where = Where::within_node,
     .of = Of::message,
     .from = 16 * kib,
     .reason = reasons::host_has_lengths},

    // What ranks pass on for others waits for their turns. docs/neighbors.md: `perf/halo_calls.c posted` and
    // `persistent`, 4 nodes of 2 ranks, 0.62 to 0.80 below 4 KiB an edge, as fast as the host from there on. How long
    // edges are the ranks do not know of each other.
    {.collectives = among_neighbors,
     .forms = set_of(Form::nonblocking) | set_of(Form::persistent),
     .where = Where::between_nodes},

    // The host needs no agreement on the order of starts. `perf/form_calls`, docs/nonblocking.md, two nodes of one
    // rank,
    // no limit on the rate: 8 B 27.7 us here and 22.9 there, 32 KiB 62 and 60.
    {.collectives = all_collectives & ~among_neighbors,
     .forms = set_of(Form::persistent),
     .where = Where::between_nodes,
     .to = 32 * kib,
     .reason = reasons::too_short_to_order},
};

bool holds_on(const HostRow& row, HostSizes::Ranks ranks) {
  const bool place = row.where == Where::anywhere || (row.where == Where::between_nodes) == ranks.between_nodes;
  if (ranks.host == HostKind::layers && !row.of_layers) return false;
  return place && row.least_ranks <= ranks.ranks && ranks.ranks <= row.most_ranks;
}

bool has_entry(const HostEntries& entries, Collective collective) {
  return std::ranges::find(entries, collective, &HostEntry::collective) != entries.end();
}

bool holds(const HostRow& row, CallSize size) {
  return row.of != Of::message && row.holds(row.of == Of::call ? size.call : size.all_ranks);
}

}  // namespace

std::span<const HostRow> usual_host_rows() { return usual; }

std::vector<HostRow> host_rows(const HostEntries& entries) {
  CollectiveSet own = 0;
  for (const HostEntry& entry : entries) own |= set_of(entry.collective);
  std::vector<HostRow> rows;
  for (HostRow row : usual) {
    row.collectives &= ~own;
    if (row.collectives != 0) rows.push_back(row);
  }
  for (const HostEntry& entry : entries) rows.insert(rows.end(), entry.rows.begin(), entry.rows.end());
  return rows;
}

CallSize call_size(const Call& call, int ranks) {
  const std::size_t bytes = payload_bytes(call, ranks);
  std::size_t all = bytes;
  if (counts_parts(call.collective) && __builtin_mul_overflow(bytes, static_cast<std::size_t>(ranks), &all))
    all = HostRow::no_limit;
  return {.call = bytes, .all_ranks = all};
}

const HostRow* always_hosts(const HostEntries& entries, Form form, Collective collective, CallSize size) {
  for (const HostRow& row : usual)
    if (row.always && has(row.collectives, collective) && has(row.forms, form) && holds(row, size))
      return has_entry(entries, collective) ? nullptr : &row;
  return nullptr;
}

HostSizes::HostSizes(const HostEntries& entries, Ranks ranks, bool host_when_faster) {
  for (const HostRow& row : host_rows(entries)) {
    if (!holds_on(row, ranks) || (!host_when_faster && !row.always)) continue;
    rows_.push_back(row);
    if (row.of == Of::message) continue;
    const CollectiveSet planners = row.forms == every_form ? (CollectiveSet{1} << planned_collectives) - 1 : 0;
    for (int form = 0; form < form_count; ++form)
      if (has(row.forms, static_cast<Form>(form)))
        asked_[static_cast<std::size_t>(form)] |= row.collectives & ~planners;
  }
}

const HostRow* HostSizes::row(Form form, Collective collective, CallSize size) const {
  for (const HostRow& row : rows_) {
    if (!has(row.collectives, collective) || !has(row.forms, form) || !holds(row, size)) continue;
    if (row.forms != every_form || !planned(collective)) return &row;
  }
  return nullptr;
}

const HostRow* HostSizes::row_of_planned(Collective collective, CallSize size) const {
  for (const HostRow& row : rows_)
    if (has(row.collectives, collective) && row.forms == every_form && holds(row, size)) return &row;
  return nullptr;
}

bool HostSizes::asks_ranks(Collective collective) const {
  return std::ranges::any_of(
      rows_, [&](const HostRow& row) { return row.of == Of::message && has(row.collectives, collective); });
}

bool HostSizes::wished(Collective collective, std::size_t mean_bytes) const {
  return std::ranges::any_of(rows_, [&](const HostRow& row) {
    return row.of == Of::message && has(row.collectives, collective) && row.holds(mean_bytes);
  });
}

}  // namespace plait::plan

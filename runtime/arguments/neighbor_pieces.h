// The arguments of collectives among neighbours, as the pieces of data that lie at a rank's edges, in the order of
// plan/neighbor.
#pragma once

#include "runtime/arguments/pieces.h"
#include "runtime/arguments/side.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "runtime/team/neighbor_cells.h"

namespace plait::runtime {

// `neighbors` is nullptr where the communicator is not set up yet, so that nobody runs the call here. Places are those
// of the topology's lists.

// Its own data for all of its neighbours: what each of them has lies apart, or in a row.
const char* prepare_neighbor_allgather(const Neighbors* neighbors, Request& request, const Elements& send,
                                       const Elements& receive_each);
const char* prepare_neighbor_allgatherv(const Neighbors* neighbors, Request& request, const Elements& send,
                                        const Pieces& receive);
// Other data for each of them.
const char* prepare_neighbor_alltoall(const Neighbors* neighbors, Request& request, const Elements& send_each,
                                      const Elements& receive_each);
const char* prepare_neighbor_alltoallv(const Neighbors* neighbors, Request& request, const Pieces& send,
                                       const Pieces& receive);

}  // namespace plait::runtime

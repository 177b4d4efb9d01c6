// The arguments of collectives that move data, in blocks whose lengths all ranks know. As side.h says.
#pragma once

#include "runtime/arguments/side.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/number_list.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Elements that are not significant on this rank are not looked at. Of a side that has a block for each rank, or from
// each, they are one of these.

// The elements one by one: as one argument they would go through memory.
const char* prepare_bcast(const Communicator& communicator, Request& request, const void* address, std::ptrdiff_t count,
                          const Layout* layout, int root);
const char* prepare_allgather(const Communicator& communicator, Request& request, const Elements& send,
                              const Elements& receive);
const char* prepare_gather(const Communicator& communicator, Request& request, const Elements& send,
                           const Elements& receive, int root);
const char* prepare_scatter(const Communicator& communicator, Request& request, const Elements& send,
                            const Elements& receive, int root);
const char* prepare_alltoall(const Communicator& communicator, Request& request, const Elements& send,
                             const Elements& receive);

// By rank; the lists stay where they are until the call is over.
struct Segments {
  const void* address = nullptr;
  NumberList counts{};
  NumberList displacements{};  // in extents
  const Layout* layout = nullptr;
};
const char* prepare_allgatherv(const Communicator& communicator, Request& request, const Elements& send,
                               const Segments& receive);

}  // namespace plait::runtime

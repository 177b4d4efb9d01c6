#include "plugin/mpi/types/mpi_caller.h"

#include <mpi.h>

#include <cstddef>

#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/types/contiguity.h"
#include "plugin/mpi/types/datatype.h"
#include "plugin/mpi/types/layout.h"
#include "plugin/mpi/types/predefined_types.h"

namespace plait::plugin {
namespace {

// Every layout of a call that came through MPI is a datatype's.
const Datatype& datatype_of(const Layout& layout) { return static_cast<const Datatype&>(layout); }

constexpr Caller by_mpi = {
    .pack = [](const std::byte* from, std::size_t count, const Layout& layout,
               std::byte* packed) { return pack_some(from, count, datatype_of(layout), packed); },
    .unpack = [](std::byte* to, std::size_t count, const Layout& layout,
                 const std::byte* packed) { return unpack_some(to, count, datatype_of(layout), packed); },
    .most_bytes = most_bytes_at_once,
    .combine =
        [](OperatorHandle op, const void* from, void* into, std::size_t count, const Layout& layout) {
          return PMPI_Reduce_local(from, into, static_cast<int>(count), datatype_of(layout).handle, operator_of(op));
        },
    .runs = [](const Layout& layout) { return runs_of(datatype_of(layout)); },
    .code_of = [](const Status& failure) { return error_code(failure); },
    .status_of = [](int code) { return plugin::status_of(code); },
    .truncated = MPI_ERR_TRUNCATE,
};

}  // namespace

const Caller& mpi_caller() { return by_mpi; }

}  // namespace plait::plugin

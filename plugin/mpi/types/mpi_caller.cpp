#include "plugin/mpi/types/mpi_caller.h"

#include <mpi.h>

#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/types/contiguity.h"
#include "plugin/mpi/types/datatype.h"
#include "plugin/mpi/types/layout.h"

namespace plait::plugin {
namespace {

// Every layout of a call that came through MPI is a datatype's.
const Datatype& type_of(const Layout& layout) { return static_cast<const Datatype&>(layout); }

constexpr Caller by_mpi = {
    .pack = [](const std::byte* from, std::size_t count, const Layout& layout,
               std::byte* packed) { return pack_elements(from, count, type_of(layout), packed); },
    .unpack = [](std::byte* to, std::size_t count, const Layout& layout,
                 const std::byte* packed) { return unpack_elements(to, count, type_of(layout), packed); },
    .runs = [](const Layout& layout) { return runs_of(type_of(layout)); },
    .code_of = [](const Status& failure) { return error_code(failure); },
    .status_of = [](int code) { return plugin::status_of(code); },
    .truncated = MPI_ERR_TRUNCATE,
};

}  // namespace

const Caller& mpi_caller() { return by_mpi; }

}  // namespace plait::plugin

// Where the data of MPI's datatypes lie, as runtime/types finds it.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

#include "plugin/layer.h"
#include "plugin/mpi/types/datatype.h"

namespace plait::plugin {

// As the functions of these names there. All ask the host, and throw std::bad_alloc.
bool is_contiguous(MPI_Datatype type);
std::optional<ByteRun> run_of(const Datatype& measured);
std::vector<ByteRun> runs_of(const Datatype& measured);

}  // namespace plait::plugin

#include "plugin/mpi/types/contiguity.h"

#include "plugin/mpi/types/type_reader.h"
#include "runtime/types/contiguity.h"
#include "runtime/types/runs.h"

namespace plait::plugin {

bool is_contiguous(MPI_Datatype type) {
  const Datatype facts = facts_of(type);
  return facts.contiguous || runtime::is_contiguous(facts, handle_of(type), mpi_types());
}

std::optional<ByteRun> run_of(const Datatype& measured) {
  return runtime::run_of(measured, handle_of(measured.handle), mpi_types());
}

std::vector<ByteRun> runs_of(const Datatype& measured) {
  return runtime::runs_of(measured, handle_of(measured.handle), mpi_types());
}

}  // namespace plait::plugin

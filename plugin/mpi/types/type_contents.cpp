#include "plugin/mpi/types/type_contents.h"

#include <algorithm>

#include "plugin/mpi/types/datatype.h"
#include "plugin/mpi/types/predefined_types.h"

namespace plait::plugin {

#if MPI_VERSION >= 4

// A type that was made with large counts has none that the older functions could tell: they raise an error.
TypeContents::TypeContents(MPI_Datatype type) {
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner_);
  if (combiner_ == MPI_COMBINER_NAMED) return;
  large_ = counts > 0;
  FewValues<int> integer;
  FewValues<MPI_Aint> address;
  FewValues<MPI_Count> count;
  PMPI_Type_get_contents_c(type, integers, addresses, counts, types, integer.make(static_cast<std::size_t>(integers)),
                           address.make(static_cast<std::size_t>(addresses)),
                           count.make(static_cast<std::size_t>(counts)), types_.make(static_cast<std::size_t>(types)));
  std::int64_t* next = values_.make(static_cast<std::size_t>(integers + addresses + counts));
  next = std::ranges::copy(integer.values(), next).out;
  next = std::ranges::copy(address.values(), next).out;
  std::ranges::copy(count.values(), next);
}

#else

TypeContents::TypeContents(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner_);
  if (combiner_ == MPI_COMBINER_NAMED) return;
  FewValues<int> integer;
  FewValues<MPI_Aint> address;
  PMPI_Type_get_contents(type, integers, addresses, types, integer.make(static_cast<std::size_t>(integers)),
                         address.make(static_cast<std::size_t>(addresses)),
                         types_.make(static_cast<std::size_t>(types)));
  std::int64_t* next = values_.make(static_cast<std::size_t>(integers + addresses));
  next = std::ranges::copy(integer.values(), next).out;
  std::ranges::copy(address.values(), next);
}

#endif

// MPI hands out derived types as new handles, predefined ones (which may have parameters) as they are.
TypeContents::~TypeContents() {
  for (MPI_Datatype type : types_.values())
    if (find_predefined(type) == nullptr && !TypeContents(type).predefined()) PMPI_Type_free(&type);
}

bool TypeContents::predefined() const {
  return combiner_ == MPI_COMBINER_NAMED || combiner_ == MPI_COMBINER_F90_INTEGER ||
         combiner_ == MPI_COMBINER_F90_REAL || combiner_ == MPI_COMBINER_F90_COMPLEX;
}

}  // namespace plait::plugin

#include "plugin/mpi/types/types.h"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "plugin/mpi/host/handle_hash.h"
#include "plugin/mpi/types/contiguity.h"
#include "plugin/mpi/types/layout.h"
#include "plugin/mpi/types/predefined_types.h"

namespace plait::plugin {
namespace {

constinit int keyval = MPI_KEYVAL_INVALID;

int forget_datatype(MPI_Datatype, int, void* value, void*) {
  delete static_cast<Datatype*>(value);
  return MPI_SUCCESS;
}

// Packing nothing moves nothing, but the host looks whether the type is committed. Other errors say nothing of the
// type: a rank that took them for it would leave the call to the host by itself.
bool committed(MPI_Datatype type) {
  char source = 0, packed = 0;
  int position = 0;
  const int code = PMPI_Pack(&source, 0, type, &packed, 1, &position, quiet_communicator());
  if (code == MPI_SUCCESS) return true;
  int error_class = MPI_ERR_TYPE;
  PMPI_Error_class(code, &error_class);
  return error_class != MPI_ERR_TYPE;
}

// False where it is not committed.
bool learn(MPI_Datatype handle, Datatype& type) {
  if (!committed(handle)) return false;
  type = {};
  type.handle = handle;
  measure(type);
  try {
    type.gapless = run_of(type).has_value();
    type.contiguous = type.gapless && fills_its_extent(type);
    type.by_message = !type.gapless && loses_bytes_packed(type.handle);
  } catch (const std::bad_alloc&) {  // what is right for all types
    type.gapless = type.contiguous = false;
    type.by_message = true;
  }
  return true;
}

// nullptr only for what the host must report: a rank that left a call to the host for want of memory would be alone.
const Datatype* make_datatype(MPI_Datatype handle) {
  auto type = std::make_unique<Datatype>();
  if (!learn(handle, *type)) return nullptr;
  if (PMPI_Type_set_attr(handle, keyval, type.get()) != MPI_SUCCESS) throw std::bad_alloc();
  return type.release();
}

// Two threads may meet a type for the first time at once; setting the attribute twice would free the first's facts.
const Datatype* find_attached(MPI_Datatype handle) {
  static constinit std::mutex making;
  void* value = nullptr;
  int found = 0;
  if (PMPI_Type_get_attr(handle, keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  if (found != 0) return static_cast<const Datatype*>(value);
  const std::scoped_lock lock(making);
  if (PMPI_Type_get_attr(handle, keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  return found != 0 ? static_cast<const Datatype*>(value) : make_datatype(handle);
}

// Whether a handle without an attribute was asked about often: then another one behind the same handle was rare.
bool comes_again(MPI_Datatype handle) {
  constexpr std::uint8_t often = 16;
  thread_local constinit std::array<std::uint8_t, 64> asked __attribute__((tls_model("initial-exec"))){};
  return ++asked[hash_handle(handle) % asked.size()] % often == 0;
}

}  // namespace

void start_types() {
  start_predefined_types(packing_loses_reals());
  if (keyval == MPI_KEYVAL_INVALID) PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget_datatype, &keyval, nullptr);
}

void stop_types() {
  if (keyval != MPI_KEYVAL_INVALID) PMPI_Type_free_keyval(&keyval);
}

const Datatype* detail::find_derived(MPI_Datatype handle) {
  return handle == MPI_DATATYPE_NULL ? nullptr : find_attached(handle);
}

const Datatype* detail::find_derived(MPI_Datatype handle, Datatype& room) {
  if (handle == MPI_DATATYPE_NULL) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (PMPI_Type_get_attr(handle, keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  if (found != 0) return static_cast<const Datatype*>(value);
  if (comes_again(handle)) return find_attached(handle);
  return learn(handle, room) ? &room : nullptr;
}

}  // namespace plait::plugin

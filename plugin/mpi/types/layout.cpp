#include "plugin/mpi/types/layout.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/types/predefined_types.h"
#include "plugin/mpi/types/type_reader.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace plait::plugin {
namespace {

MPI_Comm quiet = MPI_COMM_NULL;
bool packing_keeps_reals = true;  // of 16 bytes

// ---- One element too long for MPI_Pack ----

MPI_Datatype bytes_type(std::size_t bytes) {
  MPI_Datatype block = MPI_DATATYPE_NULL, blocks = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(static_cast<int>(most_bytes_at_once), MPI_BYTE, &block);
  PMPI_Type_contiguous(static_cast<int>(bytes / most_bytes_at_once), block, &blocks);
  const int lengths[] = {1, static_cast<int>(bytes % most_bytes_at_once)};
  const MPI_Aint displacements[] = {0, static_cast<MPI_Aint>(bytes / most_bytes_at_once * most_bytes_at_once)};
  const MPI_Datatype types[] = {blocks, MPI_BYTE};
  PMPI_Type_create_struct(2, lengths, displacements, types, &type);
  PMPI_Type_commit(&type);
  PMPI_Type_free(&block);
  PMPI_Type_free(&blocks);
  return type;
}

// A message to ourselves converts between layouts of any length.
struct Endpoint {
  void* address;
  MPI_Datatype type;
  int count = 1;
};
int convert(Endpoint from, Endpoint to) {
  // Threads that convert at the same time must not get each other's data.
  constexpr int tags = 32767;  // MPI promises so many
  static std::atomic<int> threads{0};
  thread_local const int tag = threads.fetch_add(1, std::memory_order_relaxed) % tags;
  return PMPI_Sendrecv(from.address, from.count, from.type, 0, tag, to.address, to.count, to.type, 0, tag, quiet,
                       MPI_STATUS_IGNORE);
}

int convert_long(std::byte* address, const Datatype& type, std::byte* packed, bool packing) {
  MPI_Datatype bytes = bytes_type(type.size);
  const Endpoint user{address, type.handle}, plain{packed, bytes};
  const int error = packing ? convert(user, plain) : convert(plain, user);
  PMPI_Type_free(&bytes);
  return error;
}

// A piece of at most most_bytes_at_once. MPICH's MPI_Pack and MPI_Unpack refuse a null address, which is MPI_BOTTOM.

int pack_piece(std::byte* address, std::size_t count, const Datatype& type, std::byte* packed) {
  const int bytes = static_cast<int>(count * type.size), elements = static_cast<int>(count);
  if (address == nullptr || type.by_message)
    return convert({address, type.handle, elements}, {packed, MPI_BYTE, bytes});
  int position = 0;
  return PMPI_Pack(address, elements, type.handle, packed, bytes, &position, quiet);
}

int unpack_piece(std::byte* address, std::size_t count, const Datatype& type, std::byte* packed) {
  const int bytes = static_cast<int>(count * type.size), elements = static_cast<int>(count);
  if (address == nullptr || type.by_message)
    return convert({packed, MPI_BYTE, bytes}, {address, type.handle, elements});
  int position = 0;
  return PMPI_Unpack(packed, bytes, &position, address, elements, type.handle, quiet);
}

// Two long doubles, the first byte of whose padding has a value.
bool keeps_packed_reals() {
  constexpr std::size_t real = sizeof(long double), value = 10;
  if (real <= value) return true;
  std::array<std::byte, 4 * real> source{}, packed{};
  source[value] = source[2 * real + value] = std::byte{0x5A};
  MPI_Datatype apart = MPI_DATATYPE_NULL;
  PMPI_Type_vector(2, 1, 2, MPI_LONG_DOUBLE, &apart);
  PMPI_Type_commit(&apart);
  int position = 0;
  const int error =
      PMPI_Pack(source.data(), 1, apart, packed.data(), static_cast<int>(packed.size()), &position, quiet);
  PMPI_Type_free(&apart);
  if (error != MPI_SUCCESS) return true;
  return packed[value] == std::byte{0x5A} && packed[real + value] == std::byte{0x5A};
}

}  // namespace

bool packing_loses_reals() { return !packing_keeps_reals; }

bool loses_bytes_packed(MPI_Datatype type) {
  if (packing_keeps_reals) return false;
  if (const Datatype* known = find_predefined(type)) return known->long_reals;
  const ReadConstruction made(handle_of(type), mpi_types());
  return made.combiner() == Combiner::named ||
         std::ranges::any_of(made.parts(), [](TypeHandle part) { return loses_bytes_packed(type_of(part)); });
}

int pack_some(const std::byte* address, std::size_t count, const Datatype& type, std::byte* packed) {
  auto* from = const_cast<std::byte*>(address);
  return type.size > most_bytes_at_once ? convert_long(from, type, packed, true)
                                        : pack_piece(from, count, type, packed);
}

int unpack_some(std::byte* address, std::size_t count, const Datatype& type, const std::byte* packed) {
  auto* from = const_cast<std::byte*>(packed);
  return type.size > most_bytes_at_once ? convert_long(address, type, from, false)
                                        : unpack_piece(address, count, type, from);
}

MPI_Comm quiet_communicator() { return quiet; }

void start_layout() {
  if (quiet != MPI_COMM_NULL) return;
  MPI_Group self = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_SELF, &self);
  host().comm_create(MPI_COMM_SELF, self, &quiet);
  PMPI_Group_free(&self);
  PMPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
  packing_keeps_reals = keeps_packed_reals();
}

void stop_layout() {
  if (quiet != MPI_COMM_NULL) PMPI_Comm_free(&quiet);
  quiet = MPI_COMM_NULL;
}

}  // namespace plait::plugin

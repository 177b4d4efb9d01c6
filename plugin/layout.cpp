#include "plugin/layout.h"
#include "core/work_team.h"
#include "plugin/host.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

namespace plait::plugin {
namespace {

MPI_Comm quiet = MPI_COMM_NULL;
bool packing_keeps_reals = true;  // of 16 bytes

// MPI_Pack counts bytes in an int, so that longer data is packed in pieces.
constexpr std::size_t max_piece_bytes = std::size_t{1} << 30;

// ---- Contiguity, from how the type was made ----

// A list that seldom has more than a few values: those take no allocation.
template <class T>
class FewValues {
 public:
  T* make(int count) {
    size_ = static_cast<std::size_t>(count);
    if (size_ > few_.size()) many_.resize(size_);
    return data();
  }
  T* data() { return size_ > few_.size() ? many_.data() : few_.data(); }
  const T* data() const { return size_ > few_.size() ? many_.data() : few_.data(); }
  std::span<const T> values() const { return {data(), size_}; }

 private:
  std::size_t size_ = 0;
  std::array<T, 4> few_;
  std::vector<T> many_;
};

struct Contents {
  FewValues<int> integers;
  FewValues<MPI_Aint> addresses;
  FewValues<MPI_Datatype> types;
  int combiner = MPI_COMBINER_NAMED;

  explicit Contents(MPI_Datatype type) {
    int integer_count = 0, address_count = 0, type_count = 0;
    PMPI_Type_get_envelope(type, &integer_count, &address_count, &type_count, &combiner);
    if (combiner == MPI_COMBINER_NAMED) return;
    PMPI_Type_get_contents(type, integer_count, address_count, type_count, integers.make(integer_count),
                           addresses.make(address_count), types.make(type_count));
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  // MPI hands out derived types as new handles, predefined ones (which may have parameters) as they are.
  ~Contents() {
    for (MPI_Datatype type : types.values())
      if (find_predefined(type) == nullptr && !Contents(type).predefined()) PMPI_Type_free(&type);
  }

  bool predefined() const {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_INTEGER ||
           combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX;
  }
};

// Displacements of the parts, in whatever unit; parts of no elements count for nothing.
template <class Displacement>
bool ascending(const int* lengths, const Displacement* displacements, int parts) {
  const Displacement* before = nullptr;
  for (int part = 0; part < parts; ++part) {
    if (lengths != nullptr && lengths[part] == 0) continue;
    if (before != nullptr && displacements[part] <= *before) return false;
    before = &displacements[part];
  }
  return true;
}

// Given that the type fills its extent and that its parts are contiguous: whether they come in the order of memory.
bool parts_in_order(const Contents& contents) {
  const int* integers = contents.integers.data();
  const MPI_Aint* addresses = contents.addresses.data();
  if (contents.predefined()) return true;
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_RESIZED:
    case MPI_COMBINER_SUBARRAY:  // a whole array: in either order of its dimensions, memory is visited upwards
    case MPI_COMBINER_VECTOR:    // equal strides that leave no gap and start at the lower bound only go upwards
    case MPI_COMBINER_HVECTOR:
      return true;
    case MPI_COMBINER_INDEXED:
      return ascending(integers + 1, integers + 1 + integers[0], integers[0]);
    case MPI_COMBINER_INDEXED_BLOCK:
      return ascending<int>(nullptr, integers + 2, integers[0]);
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
      return ascending(integers + 1, addresses, integers[0]);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return ascending<MPI_Aint>(nullptr, addresses, integers[0]);
    default:
      return false;
  }
}

// ---- One element too long for MPI_Pack ----

MPI_Datatype bytes_type(std::size_t bytes) {
  MPI_Datatype block = MPI_DATATYPE_NULL, blocks = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(static_cast<int>(max_piece_bytes), MPI_BYTE, &block);
  PMPI_Type_contiguous(static_cast<int>(bytes / max_piece_bytes), block, &blocks);
  const int lengths[] = {1, static_cast<int>(bytes % max_piece_bytes)};
  const MPI_Aint displacements[] = {0, static_cast<MPI_Aint>(bytes / max_piece_bytes * max_piece_bytes)};
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

// A piece of at most max_piece_bytes. MPICH's MPI_Pack and MPI_Unpack refuse a null address, which is MPI_BOTTOM.

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

// ---- Segments ----

template <class Move>
int for_each_segment(const Region& region, Move&& move) {
  if (region.segment_displacements == nullptr) return move(region.address, region.count, std::size_t{0});
  const std::size_t element = region.count > 0 ? region.bytes / region.count : 0;
  std::size_t offset = 0;
  for (int segment = 0; segment < region.segments; ++segment) {
    const auto count = static_cast<std::size_t>(region.segment_counts[segment]);
    std::byte* address = region.address + region.type->extent * region.segment_displacements[segment];
    if (count > 0)
      if (const int error = move(address, count, offset); error != MPI_SUCCESS) return error;
    offset += count * element;
  }
  return MPI_SUCCESS;
}

}  // namespace

bool fills_its_extent(const Datatype& measured) {
  return measured.lower_bound == 0 && measured.true_lower_bound == 0 &&
         measured.extent == static_cast<std::ptrdiff_t>(measured.true_extent) && measured.size == measured.true_extent;
}

bool is_contiguous(MPI_Datatype type) {
  if (const Datatype* known = find_predefined(type)) return known->contiguous;
  Datatype measured{.handle = type};
  measure(measured);
  return is_contiguous(measured);
}

bool is_contiguous(const Datatype& measured) {
  if (!fills_its_extent(measured)) return false;
  const Contents contents(measured.handle);
  if (!parts_in_order(contents)) return false;
  return std::ranges::all_of(contents.types.values(), [](MPI_Datatype part) { return is_contiguous(part); });
}

bool loses_bytes_packed(MPI_Datatype type) {
  if (packing_keeps_reals) return false;
  if (const Datatype* known = find_predefined(type)) return known->long_reals;
  const Contents contents(type);
  return contents.predefined() ||
         std::ranges::any_of(contents.types.values(), [](MPI_Datatype part) { return loses_bytes_packed(part); });
}

int pack_elements(const std::byte* address, std::size_t count, const Datatype& type, std::byte* packed) {
  if (type.size == 0) return MPI_SUCCESS;
  const std::size_t most = max_piece_bytes / type.size;
  for (std::size_t done = 0; done < count;) {
    auto* source = const_cast<std::byte*>(address) + static_cast<std::ptrdiff_t>(done) * type.extent;
    const std::size_t now = std::clamp<std::size_t>(count - done, 1, std::max<std::size_t>(most, 1));
    const int error = most == 0 ? convert_long(source, type, packed, true) : pack_piece(source, now, type, packed);
    if (error != MPI_SUCCESS) return error;
    packed += now * type.size;
    done += now;
  }
  return MPI_SUCCESS;
}

int unpack_elements(std::byte* address, std::size_t count, const Datatype& type, const std::byte* packed) {
  if (type.size == 0) return MPI_SUCCESS;
  const std::size_t most = max_piece_bytes / type.size;
  for (std::size_t done = 0; done < count;) {
    std::byte* target = address + static_cast<std::ptrdiff_t>(done) * type.extent;
    const std::size_t now = std::clamp<std::size_t>(count - done, 1, std::max<std::size_t>(most, 1));
    auto* source = const_cast<std::byte*>(packed);
    const int error = most == 0 ? convert_long(target, type, source, false) : unpack_piece(target, now, type, source);
    if (error != MPI_SUCCESS) return error;
    packed += now * type.size;
    done += now;
  }
  return MPI_SUCCESS;
}

int pack(const Region& region, std::byte* packed) {
  const std::size_t element = region.count > 0 ? region.bytes / region.count : 0;
  return for_each_segment(region, [&](std::byte* address, std::size_t count, std::size_t offset) {
    if (!region.direct) return pack_elements(address, count, *region.type, packed + offset);
    shared_copy(packed + offset, address, count * element);
    return MPI_SUCCESS;
  });
}

int unpack(const Region& region, const std::byte* packed) {
  const std::size_t element = region.count > 0 ? region.bytes / region.count : 0;
  return for_each_segment(region, [&](std::byte* address, std::size_t count, std::size_t offset) {
    if (!region.direct) return unpack_elements(address, count, *region.type, packed + offset);
    shared_copy(address, packed + offset, count * element);
    return MPI_SUCCESS;
  });
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

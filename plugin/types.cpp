#include "plugin/types.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "plugin/contiguity.h"
#include "plugin/layout.h"

namespace plait::plugin {
namespace {

// ---- Predefined types ----

// How the bytes of a predefined type are to be understood; together with its size this gives the Element.
enum class Kind : std::uint8_t {
  opaque,  // moved, not reduced
  signed_integer,
  unsigned_integer,
  real,
  long_real,
  complex,
  long_complex,
  boolean,
  logical,
  byte,
  pair_float_int,
  pair_double_int,
  pair_long_int,
  pair_two_int,
  pair_short_int,
  pair_long_double_int,
  pair_two_real,
  pair_two_double,
};

struct Named {
  MPI_Datatype handle;
  Kind kind;
};

constexpr std::size_t max_named = 96;

// Handles are addresses that the dynamic linker settles, so that this cannot be a constant.
struct NamedTypes {
  std::array<Named, max_named> entries;
  std::size_t count = 0;
  void add(Kind kind, std::initializer_list<MPI_Datatype> handles) {
    for (MPI_Datatype handle : handles)
      if (handle != MPI_DATATYPE_NULL && count < max_named) entries[count++] = {handle, kind};
  }
};

void add_c_types(NamedTypes& named) {
  named.add(Kind::signed_integer, {MPI_CHAR, MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T,
                                   MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT});
  named.add(Kind::unsigned_integer, {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
                                     MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T});
  named.add(Kind::real, {MPI_FLOAT, MPI_DOUBLE});
  named.add(Kind::long_real, {MPI_LONG_DOUBLE});
  named.add(Kind::complex, {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX});
  named.add(Kind::long_complex, {MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX});
  named.add(Kind::boolean, {MPI_C_BOOL, MPI_CXX_BOOL});
  named.add(Kind::byte, {MPI_BYTE});
  named.add(Kind::opaque, {MPI_PACKED, MPI_WCHAR});
  named.add(Kind::pair_float_int, {MPI_FLOAT_INT});
  named.add(Kind::pair_double_int, {MPI_DOUBLE_INT});
  named.add(Kind::pair_long_int, {MPI_LONG_INT});
  named.add(Kind::pair_two_int, {MPI_2INT});
  named.add(Kind::pair_short_int, {MPI_SHORT_INT});
  named.add(Kind::pair_long_double_int, {MPI_LONG_DOUBLE_INT});
}

// mpi.h has the sized types only where the host's Fortran compiler has them.
void add_fortran_types(NamedTypes& named) {
  named.add(Kind::opaque, {MPI_CHARACTER});
#ifdef MPI_2COMPLEX  // Open MPI's
  named.add(Kind::opaque, {MPI_2COMPLEX, MPI_2DOUBLE_COMPLEX});
#endif
  named.add(Kind::signed_integer, {MPI_INTEGER});
  named.add(Kind::real, {MPI_REAL, MPI_DOUBLE_PRECISION});
  named.add(Kind::complex, {MPI_COMPLEX, MPI_DOUBLE_COMPLEX});
  named.add(Kind::logical, {MPI_LOGICAL});
  named.add(Kind::pair_two_int, {MPI_2INTEGER});
  named.add(Kind::pair_two_real, {MPI_2REAL});
  named.add(Kind::pair_two_double, {MPI_2DOUBLE_PRECISION});
#ifdef MPI_INTEGER1
  named.add(Kind::signed_integer, {MPI_INTEGER1});
#endif
#ifdef MPI_INTEGER2
  named.add(Kind::signed_integer, {MPI_INTEGER2});
#endif
#ifdef MPI_INTEGER4
  named.add(Kind::signed_integer, {MPI_INTEGER4});
#endif
#ifdef MPI_INTEGER8
  named.add(Kind::signed_integer, {MPI_INTEGER8});
#endif
#ifdef MPI_INTEGER16
  named.add(Kind::opaque, {MPI_INTEGER16});
#endif
#ifdef MPI_REAL2
  named.add(Kind::opaque, {MPI_REAL2});
#endif
#ifdef MPI_REAL4
  named.add(Kind::real, {MPI_REAL4});
#endif
#ifdef MPI_REAL8
  named.add(Kind::real, {MPI_REAL8});
#endif
#ifdef MPI_REAL16
  named.add(Kind::real, {MPI_REAL16});
#endif
#ifdef MPI_COMPLEX8
  named.add(Kind::complex, {MPI_COMPLEX8});
#endif
#ifdef MPI_COMPLEX16
  named.add(Kind::complex, {MPI_COMPLEX16});
#endif
#ifdef MPI_COMPLEX32
  named.add(Kind::complex, {MPI_COMPLEX32});
#endif
#ifdef MPI_LOGICAL1
  named.add(Kind::logical, {MPI_LOGICAL1});
#endif
#ifdef MPI_LOGICAL2
  named.add(Kind::logical, {MPI_LOGICAL2});
#endif
#ifdef MPI_LOGICAL4
  named.add(Kind::logical, {MPI_LOGICAL4});
#endif
#ifdef MPI_LOGICAL8
  named.add(Kind::logical, {MPI_LOGICAL8});
#endif
}

// The candidate whose size is `bytes`.
struct Sized {
  std::size_t bytes;
  Element element;
};
std::optional<Element> pick(std::size_t bytes, std::initializer_list<Sized> candidates) {
  for (const Sized& candidate : candidates)
    if (candidate.bytes == bytes) return candidate.element;
  return std::nullopt;
}

std::optional<Element> scalar_element(Kind kind, std::size_t bytes) {
  switch (kind) {
    case Kind::signed_integer:
      return pick(bytes, {{1, Element::i8}, {2, Element::i16}, {4, Element::i32}, {8, Element::i64}});
    case Kind::unsigned_integer:
      return pick(bytes, {{1, Element::u8}, {2, Element::u16}, {4, Element::u32}, {8, Element::u64}});
    case Kind::real:
      return pick(bytes, {{4, Element::f32}, {8, Element::f64}, {16, Element::f128}});
    case Kind::complex:
      return pick(bytes, {{8, Element::c32}, {16, Element::c64}, {32, Element::c128}});
    case Kind::logical:
      return pick(bytes,
                  {{1, Element::logical8}, {2, Element::logical16}, {4, Element::logical32}, {8, Element::logical64}});
    case Kind::long_real:
      return Element::f80;
    case Kind::long_complex:
      return Element::c80;
    case Kind::boolean:
      return Element::bool8;
    case Kind::byte:
      return Element::byte8;
    default:
      return std::nullopt;
  }
}

std::optional<Element> element_of(Kind kind, std::size_t bytes) {
  switch (kind) {
    case Kind::pair_float_int:
      return Element::pair_f32_i32;
    case Kind::pair_double_int:
      return Element::pair_f64_i32;
    case Kind::pair_long_int:
      return sizeof(long) == 8 ? Element::pair_i64_i32 : Element::pair_i32_i32;
    case Kind::pair_two_int:
      return Element::pair_i32_i32;
    case Kind::pair_short_int:
      return Element::pair_i16_i32;
    case Kind::pair_long_double_int:
      return Element::pair_f80_i32;
    case Kind::pair_two_real:
      return Element::pair_f32_f32;
    case Kind::pair_two_double:
      return Element::pair_f64_f64;
    default:
      return scalar_element(kind, bytes);
  }
}

// ---- Predefined operators ----

struct NamedOp {
  MPI_Op handle;
  Op op;
};

std::array<NamedOp, op_count> named_ops() {
  return {{{MPI_SUM, Op::sum},
           {MPI_MAX, Op::max},
           {MPI_MIN, Op::min},
           {MPI_PROD, Op::prod},
           {MPI_LAND, Op::land},
           {MPI_LOR, Op::lor},
           {MPI_LXOR, Op::lxor},
           {MPI_BAND, Op::band},
           {MPI_BOR, Op::bor},
           {MPI_BXOR, Op::bxor},
           {MPI_MAXLOC, Op::maxloc},
           {MPI_MINLOC, Op::minloc}}};
}

// The host's own verdict on a combination: no elements are combined, but the arguments are checked.
bool host_accepts(MPI_Datatype type, MPI_Op op) {
  std::array<char, 64> left{}, right{};
  return PMPI_Reduce_local(left.data(), right.data(), 0, type, op) == MPI_SUCCESS;
}

// ---- The table ----

constexpr std::size_t slots = 256;  // a power of two well above max_named, so that probes are short

struct Tables {
  std::array<const Datatype*, slots> by_handle{};
  std::array<Datatype, max_named> named;
  std::array<std::array<Reducer, op_count>, max_named> reducers;  // of each of them
  std::array<NamedOp, op_count> ops;
  int keyval = MPI_KEYVAL_INVALID;
};
constinit Tables* tables = nullptr;  // never destroyed: calls may come until the process ends

std::size_t slot_of(MPI_Datatype handle) {
  const auto bits = (std::uint64_t)(std::uintptr_t)handle;  // a pointer or an integer, by MPI
  return static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15u) >> 56) % slots;
}

void insert(const Datatype& type) {
  std::size_t slot = slot_of(type.handle);
  while (tables->by_handle[slot] != nullptr) {
    if (tables->by_handle[slot]->handle == type.handle) return;  // two names of one handle
    slot = (slot + 1) % slots;
  }
  tables->by_handle[slot] = &type;
}

void fill_reducers(Datatype& type, Kind kind, std::array<Reducer, op_count>& reducers) {
  type.reducers = reducers.data();
  const std::optional<Element> element = element_of(kind, type.size);
  if (!element || extent(*element) != static_cast<std::size_t>(type.extent)) return;
  for (const NamedOp& named : tables->ops) {
    if (reduce_kernel(named.op, *element) == nullptr || !host_accepts(type.handle, named.handle)) continue;
    reducers[static_cast<std::size_t>(named.op)] = make_reducer(named.op, *element);
  }
}

int forget_datatype(MPI_Datatype, int, void* value, void*) {
  delete static_cast<Datatype*>(value);
  return MPI_SUCCESS;
}

// The error handler of MPI_COMM_WORLD while the host is asked: it raises what concerns no communicator there.
class QuietWorld {
 public:
  QuietWorld() {
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &before_);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~QuietWorld() {
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, before_);
    PMPI_Errhandler_free(&before_);
  }

 private:
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

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
  type = {.handle = handle};
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
  if (PMPI_Type_set_attr(handle, tables->keyval, type.get()) != MPI_SUCCESS) throw std::bad_alloc();
  return type.release();
}

// Two threads may meet a type for the first time at once; setting the attribute twice would free the first's facts.
const Datatype* find_derived(MPI_Datatype handle) {
  static constinit std::mutex making;
  void* value = nullptr;
  int found = 0;
  if (PMPI_Type_get_attr(handle, tables->keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  if (found != 0) return static_cast<const Datatype*>(value);
  const std::scoped_lock lock(making);
  if (PMPI_Type_get_attr(handle, tables->keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  return found != 0 ? static_cast<const Datatype*>(value) : make_datatype(handle);
}

// Whether a handle without an attribute was asked about often: then another one behind the same handle was rare.
bool comes_again(MPI_Datatype handle) {
  constexpr std::uint8_t often = 16;
  thread_local constinit std::array<std::uint8_t, 64> asked __attribute__((tls_model("initial-exec"))){};
  return ++asked[slot_of(handle) % asked.size()] % often == 0;
}

}  // namespace

void measure(Datatype& type) {
  MPI_Count size = 0;
  MPI_Aint lower_bound = 0, extent = 0, true_extent = 0, true_lower_bound = 0;
  PMPI_Type_size_x(type.handle, &size);
  PMPI_Type_get_extent(type.handle, &lower_bound, &extent);
  PMPI_Type_get_true_extent(type.handle, &true_lower_bound, &true_extent);
  type.size = size > 0 ? static_cast<std::size_t>(size) : 0;
  type.extent = extent;
  type.lower_bound = lower_bound;
  type.true_lower_bound = true_lower_bound;
  type.true_extent = true_extent > 0 ? static_cast<std::size_t>(true_extent) : 0;
}

bool has_long_reals(Kind kind, std::size_t bytes) {
  constexpr std::size_t real_bytes = 16;
  const bool made_of_them = kind == Kind::long_real || kind == Kind::long_complex || kind == Kind::pair_long_double_int;
  return made_of_them || (kind == Kind::real && bytes == real_bytes) ||
         (kind == Kind::complex && bytes == 2 * real_bytes);
}

void start_types() {
  if (tables != nullptr) return;
  auto* made = new Tables;
  made->ops = named_ops();
  tables = made;
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget_datatype, &made->keyval, nullptr);
  NamedTypes named;
  add_c_types(named);
  add_fortran_types(named);
  const QuietWorld quiet;
  for (std::size_t i = 0; i < named.count; ++i) {
    Datatype& type = made->named[i];
    type.handle = named.entries[i].handle;
    type.predefined = true;
    measure(type);
    type.gapless = run_of(type).has_value();
    type.contiguous = type.gapless && fills_its_extent(type);
    fill_reducers(type, named.entries[i].kind, made->reducers[i]);
    type.long_reals = has_long_reals(named.entries[i].kind, type.size);
    if (type.size > 0) insert(type);
    type.by_message = !type.gapless && loses_bytes_packed(type.handle);
  }
}

void stop_types() {
  if (tables != nullptr && tables->keyval != MPI_KEYVAL_INVALID) PMPI_Type_free_keyval(&tables->keyval);
}

const Datatype* find_predefined(MPI_Datatype handle) {
  std::size_t slot = slot_of(handle);
  while (const Datatype* type = tables->by_handle[slot]) {
    if (type->handle == handle) return type;
    slot = (slot + 1) % slots;
  }
  return nullptr;
}

const Datatype* find_datatype(MPI_Datatype handle) {
  if (const Datatype* predefined = find_predefined(handle)) return predefined;
  return handle == MPI_DATATYPE_NULL ? nullptr : find_derived(handle);
}

const Datatype* find_datatype(MPI_Datatype handle, Datatype& room) {
  if (const Datatype* predefined = find_predefined(handle)) return predefined;
  if (handle == MPI_DATATYPE_NULL) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (PMPI_Type_get_attr(handle, tables->keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  if (found != 0) return static_cast<const Datatype*>(value);
  if (comes_again(handle)) return find_derived(handle);
  return learn(handle, room) ? &room : nullptr;
}

std::optional<Op> predefined_op(MPI_Op op) {
  for (const NamedOp& named : tables->ops)
    if (named.handle == op) return named.op;
  return std::nullopt;
}

bool usable_in_reductions(MPI_Op op) { return op != MPI_OP_NULL && op != MPI_REPLACE && op != MPI_NO_OP; }

}  // namespace plait::plugin

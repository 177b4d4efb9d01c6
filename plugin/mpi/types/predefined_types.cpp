#include "plugin/mpi/types/predefined_types.h"

#include <array>
#include <cstdint>
#include <initializer_list>

#include "plugin/mpi/host/handle_hash.h"
#include "runtime/types/element_kind.h"

namespace plait::plugin {
namespace {

// ---- Predefined types ----

struct Named {
  MPI_Datatype handle;
  ElementKind kind;
};

constexpr std::size_t max_named = 96;

// Handles are addresses that the dynamic linker settles, so that this cannot be a constant.
struct NamedTypes {
  std::array<Named, max_named> entries;
  std::size_t count = 0;
  void add(ElementKind kind, std::initializer_list<MPI_Datatype> handles) {
    for (MPI_Datatype handle : handles)
      if (handle != MPI_DATATYPE_NULL && count < max_named) entries[count++] = {handle, kind};
  }
};

void add_c_types(NamedTypes& named) {
  named.add(ElementKind::signed_integer,
            {MPI_CHAR, MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
             MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT});
  named.add(ElementKind::unsigned_integer,
            {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG,
             MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T});
  named.add(ElementKind::real, {MPI_FLOAT, MPI_DOUBLE});
  named.add(ElementKind::long_real, {MPI_LONG_DOUBLE});
  named.add(ElementKind::complex,
            {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX});
  named.add(ElementKind::long_complex, {MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX});
  named.add(ElementKind::boolean, {MPI_C_BOOL, MPI_CXX_BOOL});
  named.add(ElementKind::byte, {MPI_BYTE});
  named.add(ElementKind::opaque, {MPI_PACKED, MPI_WCHAR});
  named.add(ElementKind::pair_float_int, {MPI_FLOAT_INT});
  named.add(ElementKind::pair_double_int, {MPI_DOUBLE_INT});
  named.add(ElementKind::pair_long_int, {MPI_LONG_INT});
  named.add(ElementKind::pair_two_int, {MPI_2INT});
  named.add(ElementKind::pair_short_int, {MPI_SHORT_INT});
  named.add(ElementKind::pair_long_double_int, {MPI_LONG_DOUBLE_INT});
}

// mpi.h has the sized types only where the host's Fortran compiler has them.
void add_fortran_types(NamedTypes& named) {
  named.add(ElementKind::opaque, {MPI_CHARACTER});
#ifdef MPI_2COMPLEX  // Open MPI's
  named.add(ElementKind::opaque, {MPI_2COMPLEX, MPI_2DOUBLE_COMPLEX});
#endif
  named.add(ElementKind::signed_integer, {MPI_INTEGER});
  named.add(ElementKind::real, {MPI_REAL, MPI_DOUBLE_PRECISION});
  named.add(ElementKind::complex, {MPI_COMPLEX, MPI_DOUBLE_COMPLEX});
  named.add(ElementKind::logical, {MPI_LOGICAL});
  named.add(ElementKind::pair_two_int, {MPI_2INTEGER});
  named.add(ElementKind::pair_two_real, {MPI_2REAL});
  named.add(ElementKind::pair_two_double, {MPI_2DOUBLE_PRECISION});
#ifdef MPI_INTEGER1
  named.add(ElementKind::signed_integer, {MPI_INTEGER1});
#endif
#ifdef MPI_INTEGER2
  named.add(ElementKind::signed_integer, {MPI_INTEGER2});
#endif
#ifdef MPI_INTEGER4
  named.add(ElementKind::signed_integer, {MPI_INTEGER4});
#endif
#ifdef MPI_INTEGER8
  named.add(ElementKind::signed_integer, {MPI_INTEGER8});
#endif
#ifdef MPI_INTEGER16
  named.add(ElementKind::opaque, {MPI_INTEGER16});
#endif
#ifdef MPI_REAL2
  named.add(ElementKind::opaque, {MPI_REAL2});
#endif
#ifdef MPI_REAL4
  named.add(ElementKind::real, {MPI_REAL4});
#endif
#ifdef MPI_REAL8
  named.add(ElementKind::real, {MPI_REAL8});
#endif
#ifdef MPI_REAL16
  named.add(ElementKind::real, {MPI_REAL16});
#endif
#ifdef MPI_COMPLEX8
  named.add(ElementKind::complex, {MPI_COMPLEX8});
#endif
#ifdef MPI_COMPLEX16
  named.add(ElementKind::complex, {MPI_COMPLEX16});
#endif
#ifdef MPI_COMPLEX32
  named.add(ElementKind::complex, {MPI_COMPLEX32});
#endif
#ifdef MPI_LOGICAL1
  named.add(ElementKind::logical, {MPI_LOGICAL1});
#endif
#ifdef MPI_LOGICAL2
  named.add(ElementKind::logical, {MPI_LOGICAL2});
#endif
#ifdef MPI_LOGICAL4
  named.add(ElementKind::logical, {MPI_LOGICAL4});
#endif
#ifdef MPI_LOGICAL8
  named.add(ElementKind::logical, {MPI_LOGICAL8});
#endif
}

// ---- Predefined operators ----

struct NamedOp {
  MPI_Op handle;
  Operator op;
};

std::array<NamedOp, op_count> named_ops() {
  return {{{MPI_SUM, {Op::sum}},
           {MPI_MAX, {Op::max}},
           {MPI_MIN, {Op::min}},
           {MPI_PROD, {Op::prod}},
           {MPI_LAND, {Op::land}},
           {MPI_LOR, {Op::lor}},
           {MPI_LXOR, {Op::lxor}},
           {MPI_BAND, {Op::band}},
           {MPI_BOR, {Op::bor}},
           {MPI_BXOR, {Op::bxor}},
           {MPI_MAXLOC, {Op::maxloc}},
           {MPI_MINLOC, {Op::minloc}}}};
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
};
constinit Tables* tables = nullptr;  // never destroyed: calls may come until the process ends

std::size_t slot_of(MPI_Datatype handle) { return hash_handle(handle) % slots; }

void insert(const Datatype& type) {
  std::size_t slot = slot_of(type.handle);
  while (tables->by_handle[slot] != nullptr) {
    if (tables->by_handle[slot]->handle == type.handle) return;  // two names of one handle
    slot = (slot + 1) % slots;
  }
  tables->by_handle[slot] = &type;
}

void fill_reducers(Datatype& type, ElementKind kind, std::array<Reducer, op_count>& reducers) {
  type.reducers = reducers.data();
  const std::optional<Element> element = element_of(kind, type);
  if (!element) return;
  for (const NamedOp& named : tables->ops) {
    const Op op = named.op.op;
    if (reduce_kernel(op, *element) == nullptr || !host_accepts(type.handle, named.handle)) continue;
    reducers[static_cast<std::size_t>(op)] = make_reducer(op, *element);
  }
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

}  // namespace

void start_predefined_types(bool pack_loses_reals) {
  if (tables != nullptr) return;
  auto* made = new Tables;
  made->ops = named_ops();
  tables = made;
  NamedTypes named;
  add_c_types(named);
  add_fortran_types(named);
  const QuietWorld quiet;
  for (std::size_t i = 0; i < named.count; ++i) {
    Datatype& type = made->named[i];
    type.handle = named.entries[i].handle;
    type.predefined = true;
    measure(type);
    type.gapless = type.size == 0 || type.size == type.true_extent;
    type.contiguous = type.gapless && fills_its_extent(type);
    fill_reducers(type, named.entries[i].kind, made->reducers[i]);
    type.long_reals = has_long_reals(named.entries[i].kind, type.size);
    type.by_message = !type.gapless && type.long_reals && pack_loses_reals;
    if (type.size > 0) insert(type);
  }
}

const Datatype* find_predefined(MPI_Datatype handle) {
  std::size_t slot = slot_of(handle);
  while (const Datatype* type = tables->by_handle[slot]) {
    if (type->handle == handle) return type;
    slot = (slot + 1) % slots;
  }
  return nullptr;
}

const Operator* find_operator(MPI_Op op, Operator& room) {
  for (const NamedOp& named : tables->ops)
    if (named.handle == op) return &named.op;
  int commutative = 0;
  if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP) return nullptr;
  if (PMPI_Op_commutative(op, &commutative) != MPI_SUCCESS) return nullptr;
  room = {.own = static_cast<OperatorHandle>((std::uintptr_t)op), .commutative = commutative != 0};
  return &room;
}

MPI_Op operator_of(OperatorHandle handle) { return (MPI_Op) static_cast<std::uintptr_t>(handle); }

}  // namespace plait::plugin

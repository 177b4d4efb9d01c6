#include "plugin/ompi/module.h"

#include "plugin/ompi/bridge.h"
#include "plugin/ompi/caller.h"

/* A call that the thread makes while it is within one of ours is the host's own, or made for the set-up of a
 * communicator: it passes to the component below. Collectives block, so that all ranks of a communicator are within the
 * same one. */
static _Thread_local bool within __attribute__((tls_model("initial-exec")));

/* ---- The functions that Open MPI calls ---- */

/* A communicator that is still being made knows no attributes yet. */
#define PLAIT_OFFER(Name, name, parameters, arguments)                              \
  static int offer_##name(PLAIT_LIST parameters, mca_coll_base_module_t* base) {    \
    plait_ompi_module_t* module = (plait_ompi_module_t*)base;                       \
    if (within || OMPI_COMM_IS_INVALID(comm))                                       \
      return module->below.name(PLAIT_LIST arguments, module->below.name##_module); \
    within = true;                                                                  \
    const int code = plait_ompi_binding_##name(PLAIT_LIST arguments, &module->state);  \
    within = false;                                                                 \
    return code;                                                                    \
  }
PLAIT_COLLECTIVES(PLAIT_OFFER)
#undef PLAIT_OFFER

/* Those that MPI's own function for them makes, for the program. Open MPI itself makes others from within its progress
 * (MPI_Comm_idup), at any place among the communicator's calls; Plait's plans need the same order on all ranks. */
#define PLAIT_OFFER_FORM(Name, name, parameters, arguments)                                                   \
  static int offer_i##name(PLAIT_LIST parameters, MPI_Request* request, mca_coll_base_module_t* base) {       \
    static struct plait_ompi_caller program = {.function = "MPI_I" #name};                                    \
    const plait_ompi_module_t* module = (const plait_ompi_module_t*)base;                                     \
    if (within || OMPI_COMM_IS_INVALID(comm) || !plait_ompi_called_by(&program, __builtin_return_address(0))) \
      return module->below.i##name(PLAIT_LIST arguments, request, module->below.i##name##_module);            \
    return plait_ompi_binding_i##name(PLAIT_LIST arguments, request);                                            \
  }
PLAIT_COLLECTIVES(PLAIT_OFFER_FORM)
#undef PLAIT_OFFER_FORM

/* A persistent one is made as a blocking call is. */
#define PLAIT_OFFER_INIT(Name, name, parameters, arguments)                                                    \
  static int offer_##name##_init(PLAIT_LIST parameters, MPI_Info info, MPI_Request* request,                   \
                                 mca_coll_base_module_t* base) {                                               \
    const plait_ompi_module_t* module = (const plait_ompi_module_t*)base;                                      \
    if (within || OMPI_COMM_IS_INVALID(comm))                                                                  \
      return module->below.name##_init(PLAIT_LIST arguments, info, request, module->below.name##_init_module); \
    within = true;                                                                                             \
    const int code = plait_ompi_binding_##name##_init(PLAIT_LIST arguments, info, request);                       \
    within = false;                                                                                            \
    return code;                                                                                               \
  }
PLAIT_COLLECTIVES(PLAIT_OFFER_INIT)
#undef PLAIT_OFFER_INIT

/* ---- The functions of the host ---- */

/* Where another component has the function, it is called like any other. */
#define PLAIT_HOST(name, parameters, ...)                                                                        \
  int plait_ompi_host_##name parameters {                                                                        \
    const mca_coll_base_comm_coll_t* table = comm->c_coll;                                                       \
    if (table->coll_##name != offer_##name) return table->coll_##name(__VA_ARGS__, table->coll_##name##_module); \
    const plait_ompi_module_t* module = (const plait_ompi_module_t*)table->coll_##name##_module;                 \
    return module->below.name(__VA_ARGS__, module->below.name##_module);                                         \
  }
#define PLAIT_HOST_FORMS(Name, name, parameters, arguments)                                                          \
  PLAIT_HOST(name, parameters, PLAIT_LIST arguments)                                                                 \
  PLAIT_HOST(i##name, (PLAIT_LIST parameters, MPI_Request * request), PLAIT_LIST arguments, request)                 \
  PLAIT_HOST(name##_init, (PLAIT_LIST parameters, MPI_Info info, MPI_Request * request), PLAIT_LIST arguments, info, \
             request)
PLAIT_COLLECTIVES(PLAIT_HOST_FORMS)
#undef PLAIT_HOST_FORMS
#undef PLAIT_HOST

/* ---- The module's life ---- */

/* Modules are enabled from the lowest priority to the highest: what the communicator has now is what is below. */
static int enable(mca_coll_base_module_t* base, struct ompi_communicator_t* comm) {
  plait_ompi_module_t* module = (plait_ompi_module_t*)base;
#define PLAIT_SAVE(name)                                              \
  if (comm->c_coll->coll_##name != NULL) {                            \
    module->below.name = comm->c_coll->coll_##name;                   \
    module->below.name##_module = comm->c_coll->coll_##name##_module; \
    OBJ_RETAIN(module->below.name##_module);                          \
    base->coll_##name = offer_##name;                                 \
  }
#define PLAIT_SAVE_FORMS(Name, name, parameters, arguments) PLAIT_SAVE(name) PLAIT_SAVE(i##name) PLAIT_SAVE(name##_init)
  PLAIT_COLLECTIVES(PLAIT_SAVE_FORMS)
#undef PLAIT_SAVE_FORMS
#undef PLAIT_SAVE
  return OMPI_SUCCESS;
}

static void construct(plait_ompi_module_t* module) {
  module->super.coll_module_enable = enable;
  memset(&module->state, 0, sizeof module->state);
  memset(&module->below, 0, sizeof module->below);
}

static void destruct(plait_ompi_module_t* module) {
#define PLAIT_RELEASE(Name, name, parameters, arguments)                                   \
  if (module->below.name##_module != NULL) OBJ_RELEASE(module->below.name##_module);       \
  if (module->below.i##name##_module != NULL) OBJ_RELEASE(module->below.i##name##_module); \
  if (module->below.name##_init_module != NULL) OBJ_RELEASE(module->below.name##_init_module);
  PLAIT_COLLECTIVES(PLAIT_RELEASE)
#undef PLAIT_RELEASE
}

static OBJ_CLASS_INSTANCE(plait_ompi_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_base_module_t* plait_ompi_make_module(void) {
  plait_ompi_module_t* module = OBJ_NEW(plait_ompi_module_t);
  return module == NULL ? NULL : &module->super;
}

bool plait_ompi_takes_calls(const struct ompi_communicator_t* comm) {
  return comm->c_coll->coll_allreduce == offer_allreduce;
}

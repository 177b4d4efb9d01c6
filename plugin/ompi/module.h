/* The component's module: one for each communicator, with what stood there before it. */
#ifndef PLAIT_PLUGIN_OMPI_MODULE_H
#define PLAIT_PLUGIN_OMPI_MODULE_H

#include "plugin/lists/collective_functions.h"
#include "plugin/ompi/bridge.h"
#include "plugin/ompi/interface.h"

/* The functions of the components below, each with its module, which is retained. NULL: none offered it. */
#define PLAIT_OMPI_FUNCTION(name) __typeof__(((mca_coll_base_comm_coll_t*)0)->coll_##name)
struct plait_ompi_below {
#define PLAIT_OMPI_SAVED(Name, name, parameters, arguments) \
  PLAIT_OMPI_FUNCTION(name) name;                           \
  mca_coll_base_module_t* name##_module;                    \
  PLAIT_OMPI_FUNCTION(i##name) i##name;                     \
  mca_coll_base_module_t* i##name##_module;                 \
  PLAIT_OMPI_FUNCTION(name##_init) name##_init;             \
  mca_coll_base_module_t* name##_init_module;
  PLAIT_COLLECTIVES(PLAIT_OMPI_SAVED)
#undef PLAIT_OMPI_SAVED
};

typedef struct plait_ompi_module {
  mca_coll_base_module_t super;
  struct plait_ompi_state state;
  struct plait_ompi_below below;
} plait_ompi_module_t;

/* A module that offers all of PLAIT_COLLECTIVES, and their non-blocking and persistent forms, once it is enabled. NULL:
 * no memory. The caller owns it. */
mca_coll_base_module_t* plait_ompi_make_module(void);

/* Whether the communicator's calls come to such a module, and not to a component above it. */
bool plait_ompi_takes_calls(const struct ompi_communicator_t* comm);

#endif

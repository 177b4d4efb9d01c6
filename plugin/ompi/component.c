/* mca_coll_plait.so, the component of Open MPI's coll framework: its parameters, and when it is used.
 *
 * The order of a process's life: parameters registered, component opened, modex, component queried, MPI_COMM_WORLD gets
 * its module, the end of MPI_Init (where the settings are agreed on), the program, the beginning of MPI_Finalize (where
 * the report is written). Both ends are Open MPI's hooks, within which all of MPI works. */
#include <stdlib.h>
#include <string.h>

#include "plugin/ompi/bridge.h"
#include "plugin/ompi/modex.h"
#include "plugin/ompi/module.h"

/* The one symbol that Open MPI looks for. */
extern __attribute__((visibility("default"))) const mca_coll_base_component_t mca_coll_plait_component;

static int priority = 0;
static char** values = NULL; /* of the variables, in their order; Open MPI owns the texts */
static size_t registered = 0;
static bool active = false;

/* ---- Parameters ---- */

static int register_priority(void) {
  return mca_base_component_var_register(&mca_coll_plait_component.collm_version, "priority",
                                         "Priority of Plait among the coll components: above the others' (90) it takes "
                                         "the collectives that it accelerates, and "
                                         "those components remain its host; 0 leaves it out",
                                         MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_1,
                                         MCA_BASE_VAR_SCOPE_READONLY, &priority);
}

static int register_variable(size_t index) {
  const struct plait_ompi_variable variable = plait_ompi_variable_at(index);
  values[index] = (char*)variable.initial; /* copied by Open MPI */
  return mca_base_component_var_register(&mca_coll_plait_component.collm_version, variable.name, variable.help,
                                         MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3,
                                         MCA_BASE_VAR_SCOPE_READONLY, &values[index]);
}

static int register_parameters(void) {
  const size_t count = plait_ompi_variable_count();
  if (values == NULL) values = calloc(count, sizeof *values); /* for the life of the process */
  if (values == NULL) return OMPI_ERR_OUT_OF_RESOURCE;
  int error = register_priority();
  for (registered = 0; error >= 0 && registered < count; ++registered) error = register_variable(registered);
  return error < 0 ? error : OMPI_SUCCESS;
}

/* ---- Presence on all ranks ---- */

/* Each process says in the modex that it will use the component, so that a rank without it (not installed on its node,
 * another priority) keeps it out of use on all ranks instead of waiting for each other for ever. */
static const char presence_key[] = "plait.coll";
static const uint32_t present = 1;

/* Where libplait.so takes the calls the component does not: it is not present then. */
static int open_component(void) {
  if (priority > 0 && !plait_ompi_preloaded()) plait_ompi_tell_all(presence_key, present); /* or else it is absent */
  return OMPI_SUCCESS;
}

/* Precondition: plait_ompi_may_ask(). */
static bool present_on_all(struct ompi_communicator_t* world) {
  for (int rank = 0; rank < ompi_comm_size(world); ++rank)
    if (!plait_ompi_rank_told(rank, presence_key, present)) return false;
  return true;
}

/* ---- The frame of MPI's life ---- */

static void at_end_of_init(int argc, char** argv, int requested, int* provided) {
  (void)argc, (void)argv, (void)requested, (void)provided;
  if (!active) return;
  struct ompi_communicator_t* world = &ompi_mpi_comm_world.comm;
  if (!plait_ompi_takes_calls(world) && ompi_comm_rank(world) == 0)
    plait_ompi_warn("coll_plait_priority is below that of another coll component, which takes the calls");
  plait_ompi_open();
}

static void at_begin_of_finalize(void) {
  if (active) plait_ompi_finish();
}

static ompi_hook_base_component_t hooks = {
    .hookm_version = {OMPI_HOOK_BASE_VERSION_1_0_0, .mca_component_name = "plait"},
    .hookm_mpi_init_bottom = at_end_of_init,
    .hookm_mpi_finalize_top = at_begin_of_finalize,
};

/* ---- Use ---- */

/* Asked by the binding of UCC's where it finds this library in the process (plugin/ucc/other_door): the calls of MPI are
 * taken here first. */
__attribute__((visibility("default"))) bool plait_ompi_used(void) { return priority > 0; }

static int init_query(bool progress_threads, bool mpi_threads) {
  (void)progress_threads, (void)mpi_threads;
  return priority > 0 ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/* Decides on MPI_COMM_WORLD, which comes first, for the whole process; the same on all its ranks. */
static bool decide(struct ompi_communicator_t* world) {
  const char* reason = NULL;
  if (plait_ompi_preloaded())
    reason = "libplait.so was preloaded and takes the calls; the component coll/plait steps aside";
  else if (plait_ompi_may_ask() && !present_on_all(world))
    reason = "some ranks lack the component coll/plait, or its priority; every call goes to the host MPI";
  else if (ompi_hook_base_register_callbacks(&hooks) != OMPI_SUCCESS)
    return false;
  if (reason != NULL && ompi_comm_rank(world) == 0) plait_ompi_warn(reason);
  if (reason != NULL) return false;
  plait_ompi_begin((const char* const*)values, registered);
  return true;
}

static mca_coll_base_module_t* query(struct ompi_communicator_t* comm, int* answer) {
  *answer = -1;
  if (comm == &ompi_mpi_comm_world.comm) active = decide(comm);
  mca_coll_base_module_t* module = active ? plait_ompi_make_module() : NULL;
  if (module != NULL) *answer = priority;
  return module;
}

const mca_coll_base_component_t mca_coll_plait_component = {
    .collm_version = {PLAIT_COLL_INTERFACE, .mca_component_name = "plait",
                      MCA_BASE_MAKE_VERSION(component, PLAIT_VERSION_MAJOR, PLAIT_VERSION_MINOR, PLAIT_VERSION_PATCH),
                      .mca_open_component = open_component, .mca_register_component_params = register_parameters},
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init_query,
    .collm_comm_query = query,
};

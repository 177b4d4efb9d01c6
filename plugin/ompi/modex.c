#include "plugin/ompi/modex.h"

#include "plugin/ompi/interface.h"

bool plait_ompi_tell_all(const char* key, uint32_t value) {
  int error = OMPI_ERROR;
  if (PLAIT_MODEX_STARTED) OPAL_MODEX_SEND_VALUE(error, PLAIT_MODEX_SCOPE, (char*)key, &value, PLAIT_MODEX_TYPE);
  return error == OMPI_SUCCESS;
}

bool plait_ompi_may_ask(void) { return opal_pmix_collect_all_data && !opal_pmix_base_async_modex; }

bool plait_ompi_rank_told(int world_rank, const char* key, uint32_t value) {
  uint32_t told = 0, *answer = &told;
  opal_process_name_t name = ompi_group_get_proc_name(ompi_mpi_comm_world.comm.c_local_group, world_rank);
  int error = OMPI_SUCCESS;
  OPAL_MODEX_RECV_VALUE_IMMEDIATE(error, key, &name, &answer, PLAIT_MODEX_TYPE);
  return error == OMPI_SUCCESS && told == value;
}

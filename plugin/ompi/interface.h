/* Open MPI's interface for components, as its developer headers give it, and all that differs between its series. C
 * only: those headers are no C++. */
#ifndef PLAIT_PLUGIN_OMPI_INTERFACE_H
#define PLAIT_PLUGIN_OMPI_INTERFACE_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "ompi/request/request.h"
#include "opal/mca/base/mca_base_var.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION >= 1

#include "opal/mca/pmix/base/base.h"
#include "opal/mca/pmix/pmix.h"
#define PLAIT_COLL_INTERFACE MCA_COLL_BASE_VERSION_2_0_0
#define PLAIT_MODEX_SCOPE OPAL_PMIX_GLOBAL
#define PLAIT_MODEX_TYPE OPAL_UINT32
#define PLAIT_MODEX_STARTED (opal_pmix.put != NULL)

#elif OMPI_MAJOR_VERSION == 5

#include "opal/mca/pmix/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#define PLAIT_COLL_INTERFACE MCA_COLL_BASE_VERSION_2_4_0
#define PLAIT_MODEX_SCOPE PMIX_GLOBAL
#define PLAIT_MODEX_TYPE PMIX_UINT32
#define PLAIT_MODEX_STARTED true

#else
#error "the component is written for Open MPI 4.1 and 5"
#endif

#endif

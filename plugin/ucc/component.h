/* What the parts of the component, in C, have together: objects of UCC's with ours behind them. */
#pragma once

#include <pthread.h>

#include "plugin/ucc/bridge.h"
/* UCC's, from its source package */
#include "components/tl/ucc_tl.h"
#include "schedule/ucc_schedule.h"

struct plait_lib_config {
  ucc_tl_lib_config_t super;
  char* values[]; /* of the variables, in their order */
};

struct plait_lib {
  ucc_tl_lib_t super;
  char** values; /* copies */
};

struct plait_context {
  ucc_tl_context_t super;
  plait_ucc_context* context;
  int concurrent; /* several threads may be in here */
};

struct plait_task {
  ucc_coll_task_t super;
  plait_ucc_operation* operation;
  struct plait_task* next; /* of those that nobody uses */
};

struct plait_team {
  ucc_tl_team_t super;
  plait_ucc_team* team;
  int concurrent;          /* several threads may be in here */
  pthread_mutex_t guard;   /* of what follows, then */
  struct plait_task* idle; /* linked by `next` */
};

/* What it takes: all but fan-in and fan-out. */
#define PLAIT_UCC_COLLECTIVES                                                                                    \
  (UCC_COLL_TYPE_ALLGATHER | UCC_COLL_TYPE_ALLGATHERV | UCC_COLL_TYPE_ALLREDUCE | UCC_COLL_TYPE_ALLTOALL |       \
   UCC_COLL_TYPE_ALLTOALLV | UCC_COLL_TYPE_BARRIER | UCC_COLL_TYPE_BCAST | UCC_COLL_TYPE_GATHER |                \
   UCC_COLL_TYPE_GATHERV | UCC_COLL_TYPE_REDUCE | UCC_COLL_TYPE_REDUCE_SCATTER | UCC_COLL_TYPE_REDUCE_SCATTERV | \
   UCC_COLL_TYPE_SCATTER | UCC_COLL_TYPE_SCATTERV)

/* Of what the tuning table or a row of plan/choose leaves to the next one, which then is asked first. */
enum { plait_ucc_host_score = 1 };

/* Among UCC's transport layers: above those that work on host memory (ucp has 10), below those of one kind of hardware
 * that are meant to go first where they are. UCC_TL_PLAIT_TUNE changes it by collective, size and kind of memory. */
enum { plait_ucc_score = 55, plait_ucc_fewest_ranks = 1 };

ucc_status_t plait_team_create_post(ucc_base_context_t* context, const ucc_base_team_params_t* params,
                                    ucc_base_team_t** made);
ucc_status_t plait_team_create_test(ucc_base_team_t* team);
ucc_status_t plait_team_destroy(ucc_base_team_t* team);
ucc_status_t plait_team_get_scores(ucc_base_team_t* team, ucc_coll_score_t** scores);

ucc_status_t plait_collective_init(ucc_base_coll_args_t* args, ucc_base_team_t* team, ucc_coll_task_t** made);
/* Before the team goes. */
void plait_free_tasks(struct plait_team* team);

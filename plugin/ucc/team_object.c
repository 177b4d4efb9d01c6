/* UCC's team objects of ours, and the scores by which UCC chooses among its transport layers. */
#include <stdlib.h>
#include <string.h>

#include "coll_score/ucc_coll_score.h"
#include "plugin/ucc/component.h"

/* Whether collectives are posted in one order on all ranks, as the program says; what it does not say is so. */
static bool ordered(const ucc_team_params_t* params) {
  return (params->mask & UCC_TEAM_PARAM_FIELD_ORDERING) == 0 || params->ordering == UCC_COLLECTIVE_POST_ORDERED ||
         params->ordering == UCC_COLLECTIVE_INIT_AND_POST_ORDERED;
}

/* Whose collectives come in one order: of the collective layers cl/basic alone hands on the program's. cl/hier posts the
 * parts of several at once when those before them are over, which is at other times on each rank, and has a TL tell them
 * apart by the order in which it had them made. */
static bool of_one_order(const ucc_base_team_params_t* params) {
  enum { cl_basic = 0 }; /* ucc_cl_type_t */
  return params->scope == cl_basic && ordered(&params->params);
}

/* The parameters are the same on all ranks but for the rank. */
ucc_status_t plait_team_create_post(ucc_base_context_t* base, const ucc_base_team_params_t* params,
                                    ucc_base_team_t** made) {
  struct plait_context* context = (struct plait_context*)base;
  const bool has_oob = (params->params.mask & UCC_TEAM_PARAM_FIELD_OOB) != 0;
  if ((!has_oob && params->size > 1) || !of_one_order(params) || params->size < base->lib->min_team_size)
    return UCC_ERR_NOT_SUPPORTED;
  struct plait_team* team = calloc(1, sizeof *team);
  if (team == NULL) return UCC_ERR_NO_MEMORY;
  team->super.super.context = base;
  team->super.super.params = *params;
  team->team = plait_ucc_make_team(context->context, &params->params.oob, (int)params->rank, (int)params->size);
  if (team->team == NULL) {
    free(team);
    return UCC_ERR_NOT_SUPPORTED;
  }
  team->concurrent = context->concurrent;
  pthread_mutex_init(&team->guard, NULL);
  *made = &team->super.super;
  return UCC_OK;
}

ucc_status_t plait_team_create_test(ucc_base_team_t* base) {
  return plait_ucc_connect(((struct plait_team*)base)->team);
}

/* UCC comes again until it is done: a set-up that is under way goes to its end first, as the other ranks are in it. */
ucc_status_t plait_team_destroy(ucc_base_team_t* base) {
  struct plait_team* team = (struct plait_team*)base;
  if (plait_ucc_connect(team->team) == UCC_INPROGRESS) return UCC_INPROGRESS;
  plait_free_tasks(team);
  plait_ucc_destroy_team(team->team);
  pthread_mutex_destroy(&team->guard);
  free(team);
  return UCC_OK;
}

/* What it does not understand leaves the scores as they are. */
static ucc_status_t update(ucc_base_team_t* team, const char* text, ucc_memory_type_t* memory,
                           ucc_coll_score_t* scores) {
  if (text == NULL || *text == '\0') return UCC_OK;
  const ucc_coll_score_team_info_t info = {.default_score = plait_ucc_score,
                                           .size = team->params.size,
                                           .supported_colls = PLAIT_UCC_COLLECTIVES,
                                           .supported_mem_types = memory,
                                           .num_mem_types = 1,
                                           .init = plait_collective_init,
                                           .alg_fn = NULL};
  const ucc_status_t status = ucc_coll_score_update_from_str(text, &info, team, scores);
  const bool ours_to_ignore = status == UCC_ERR_INVALID_PARAM || status == UCC_ERR_NOT_SUPPORTED;
  return status < 0 && !ours_to_ignore ? status : UCC_OK;
}

/* What the user says goes last. */
static ucc_status_t tune(ucc_base_team_t* team, ucc_memory_type_t* memory, ucc_coll_score_t* scores) {
  char* others = plait_ucc_scores(((struct plait_team*)team)->team, plait_ucc_host_score);
  const ucc_status_t status = update(team, others, memory, scores);
  free(others);
  return status == UCC_OK ? update(team, team->context->score_str, memory, scores) : status;
}

ucc_status_t plait_team_get_scores(ucc_base_team_t* team, ucc_coll_score_t** made) {
  ucc_memory_type_t memory[] = {UCC_MEMORY_TYPE_HOST};
  ucc_coll_score_t* scores = NULL;
  ucc_status_t status = ucc_coll_score_build_default(team, plait_ucc_score, plait_collective_init,
                                                     PLAIT_UCC_COLLECTIVES, memory, 1, &scores);
  if (status != UCC_OK) return status;
  status = tune(team, memory, scores);
  if (status != UCC_OK) {
    ucc_coll_score_free(scores);
    return status;
  }
  *made = scores;
  return UCC_OK;
}

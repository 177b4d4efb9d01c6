/* Collectives as UCC's progress queue has them. */
#include <stdlib.h>

#include "core/ucc_context.h"
#include "core/ucc_progress_queue.h"
#include "plugin/ucc/component.h"

static void progress(ucc_coll_task_t* base) {
  base->status = plait_ucc_progress(((struct plait_task*)base)->operation);
}

static ucc_status_t post(ucc_coll_task_t* base) {
  base->status = UCC_INPROGRESS;
  plait_ucc_post(((struct plait_task*)base)->operation);
  return ucc_progress_queue_enqueue(base->team->context->ucc_context->pq, base);
}

/* Locked instructions make up a good part of a small call's time: they are for when there are several threads. */
static void lock(struct plait_team* team) {
  if (team->concurrent) pthread_mutex_lock(&team->guard);
}
static void unlock(struct plait_team* team) {
  if (team->concurrent) pthread_mutex_unlock(&team->guard);
}

static struct plait_task* take_idle(struct plait_team* team) {
  lock(team);
  struct plait_task* task = team->idle;
  if (task != NULL) team->idle = task->next;
  unlock(team);
  return task;
}

static void give_back(struct plait_team* team, struct plait_task* task) {
  if (!plait_ucc_clear(task->operation)) return; /* UCC gave it up when its time was over */
  lock(team);
  task->next = team->idle;
  team->idle = task;
  unlock(team);
}

static struct plait_task* make_task(struct plait_team* team) {
  struct plait_task* task = calloc(1, sizeof *task);
  if (task == NULL) return NULL;
  task->operation = plait_ucc_make_operation(team->team);
  if (task->operation == NULL) {
    free(task);
    return NULL;
  }
  ucc_coll_task_construct(&task->super);
  return task;
}

void plait_free_tasks(struct plait_team* team) {
  for (struct plait_task* task = team->idle; task != NULL;) {
    struct plait_task* next = task->next;
    ucc_coll_task_destruct(&task->super);
    plait_ucc_free_operation(task->operation);
    free(task);
    task = next;
  }
  team->idle = NULL;
}

static ucc_status_t finalize(ucc_coll_task_t* base) {
  give_back((struct plait_team*)base->team, (struct plait_task*)base);
  return UCC_OK;
}

ucc_status_t plait_collective_init(ucc_base_coll_args_t* args, ucc_base_team_t* base, ucc_coll_task_t** made) {
  struct plait_team* team = (struct plait_team*)base;
  struct plait_task* task = take_idle(team);
  if (task == NULL) task = make_task(team);
  if (task == NULL) return UCC_ERR_NO_MEMORY;
  ucc_coll_task_init(&task->super, args, base);
  const ucc_status_t status = plait_ucc_prepare(task->operation, &args->args);
  if (status != UCC_OK) {
    give_back(team, task);
    return status;
  }
  task->super.post = post;
  task->super.progress = progress;
  task->super.finalize = finalize;
  *made = &task->super;
  return UCC_OK;
}

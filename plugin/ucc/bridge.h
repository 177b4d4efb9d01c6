/* What the component, in C for the sake of UCC's headers, asks of the rest of Plait. Nothing here throws; NULL is a
 * lack of memory where nothing else is said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <ucc/api/ucc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When the component is loaded, before UCC loads others: from then on it is seen where libraries are counted, so that
 * a call need not look for drivers of GPUs. */
void plait_ucc_loaded(void);

/* ---- The variables, from the one table of core/config ---- */

struct plait_ucc_variable {
  const char* name; /* "REPORT" of PLAIT_REPORT */
  const char* help;
  const char* initial; /* what the environment says, else the default */
};
size_t plait_ucc_variable_count(void);
struct plait_ucc_variable plait_ucc_variable_at(size_t index);

/* ---- A context: a process of a job, as UCC sees it ---- */

typedef struct plait_ucc_context plait_ucc_context;

struct plait_ucc_process {
  const char* const* values; /* of the variables, in their order */
  size_t value_count;
  int rank, ranks;  /* 0 and 1 where nothing connects it to others yet */
  bool concurrent;  /* several threads may be in here */
  bool exchanges;   /* all ranks will learn of the others' introductions */
  const char* host; /* "UCC 1.9.0" */
};
/* Reads files. */
plait_ucc_context* plait_ucc_begin(const struct plait_ucc_process* process);
/* What the others are to know, before they agree. */
size_t plait_ucc_introduction_bytes(void);
void plait_ucc_introduce(const plait_ucc_context* context, void* introduction);
/* `introductions`: by rank; NULL: that rank lacks the component. NULL where it does not exchange. */
void plait_ucc_agree(plait_ucc_context* context, int ranks, const void* const* introductions);
/* The report is printed, where `oob` reaches all ranks of the context; NULL: it has none. Collective then. */
void plait_ucc_end(plait_ucc_context* context, const ucc_oob_coll_t* oob);

/* ---- A team ---- */

typedef struct plait_ucc_team plait_ucc_team;

/* NULL also where calls of such a team are not taken: on all its ranks alike. */
plait_ucc_team* plait_ucc_make_team(plait_ucc_context* context, const ucc_oob_coll_t* oob, int rank, int ranks);
/* UCC_INPROGRESS until its ranks are connected, or are not (UCC_ERR_NOT_SUPPORTED). Does not block. */
ucc_status_t plait_ucc_connect(plait_ucc_team* team);
/* Of one that is connected, in the words of UCC_TL_PLAIT_TUNE, with the score for what is another one's; to be freed.
 * NULL: nothing is. */
char* plait_ucc_scores(const plait_ucc_team* team, int score);
void plait_ucc_destroy_team(plait_ucc_team* team);

/* ---- A collective, used again and again ---- */

typedef struct plait_ucc_operation plait_ucc_operation;

plait_ucc_operation* plait_ucc_make_operation(plait_ucc_team* team);
void plait_ucc_free_operation(plait_ucc_operation* operation);
/* UCC_ERR_NOT_SUPPORTED where it is another one's: on all ranks alike. */
ucc_status_t plait_ucc_prepare(plait_ucc_operation* operation, const ucc_coll_args_t* args);
/* Then as often as the program likes, each time to its end. */
void plait_ucc_post(plait_ucc_operation* operation);
/* A turn of all that its context has; UCC_INPROGRESS until it is complete. */
ucc_status_t plait_ucc_progress(plait_ucc_operation* operation);
/* False where it is still under way: it is not to be used again. */
bool plait_ucc_clear(plait_ucc_operation* operation);

#ifdef __cplusplus
}
#endif

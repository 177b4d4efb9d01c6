/* Ranks without MPI: processes, or threads of one, that reach each other out of band through sockets to a switchboard.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucc/api/ucc.h>

enum { most_ranks = 64 };

/* Makes the sockets; `ends[rank]` is the rank's own. False where there are none. */
bool switchboard_open(int ranks, int ends[]);
/* Carries all-gathers until all ranks have closed their ends. Blocks; in a thread or process of its own. */
void switchboard_run(void);

/* A rank's line, not thread-safe. */
struct line {
  int end;
  struct gather* pending; /* of all groups */
};

/* Some of the ranks, by a key that only they use. */
struct group {
  struct line* line;
  uint64_t key;
  int rank, ranks;
  uint64_t steps;
};
ucc_oob_coll_t oob_of(struct group* group);

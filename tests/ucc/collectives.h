/* Each of UCC's collectives once on a team, with its result looked at. */
#pragma once

#include <stdint.h>
#include <ucc/api/ucc.h>

struct place {
  ucc_context_h context;
  ucc_team_h team;
  int rank, ranks;
};

/* How a call is made. */
struct shape {
  size_t count; /* elements of a rank's part */
  int root;
  int in_place, persistent, wide; /* flags; wide: lists of 64 bits */
};

/* Runs the requests to their end: 0, or why not. */
ucc_status_t run(const struct place* place, ucc_coll_req_h* requests, int count, int rounds);

/* The first collective whose result is wrong or that fails; NULL: all are right. */
const char* all_collectives(const struct place* place, const struct shape* shape);

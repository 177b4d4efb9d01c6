/* UCC's collectives in a program that has no MPI: ranks are processes, or threads with contexts of their own.
 *
 *   without_mpi RANKS processes|threads [ROUNDS [SEED]]
 *       all collectives on the team of all ranks and on subsets; then teams are made and destroyed in drawn orders
 *   without_mpi RANKS concurrent [ROUNDS [SEED]]
 *       processes of several threads, each with teams of its own on the one context, which it makes, uses and destroys
 *   without_mpi RANKS given [ROUNDS [SEED]]
 *       the same with a team that the process's first thread has made: UCC's layer ucp makes one at a time
 *   without_mpi RANKS edges
 *       what is refused; a collective that is given up, and its team destroyed; a context that is made later
 *   without_mpi RANKS killed
 *       a process is killed within a collective: the others end, by an error or because they are told to, in 20 s
 *
 * Prints "without_mpi: right". */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectives.h"
#include "edges.h"
#include "switchboard.h"

enum { most_teams = 4, most_workers = 3, patience_s = 20 };

struct options {
  int ranks, rounds;
  unsigned seed;
  int threads, killed, edges;
  int workers;     /* threads of a rank beside its first; 0: it has one only */
  int gives_teams; /* the first one makes their teams */
};

struct rank {
  struct options options;
  int rank;
  struct line line;
  int worker_ends[most_workers];
  struct group world;
  ucc_lib_h lib;
  ucc_context_h context;
  const char* wrong; /* NULL: nothing */
};

static int opened(struct rank* self) {
  ucc_lib_config_h lib_config;
  ucc_lib_params_t lib_params = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE,
                                 .thread_mode = self->options.workers > 0 ? UCC_THREAD_MULTIPLE : UCC_THREAD_SINGLE};
  ucc_context_config_h config;
  ucc_context_params_t params = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB};
  if (ucc_lib_config_read(NULL, NULL, &lib_config) != UCC_OK) return 0;
  const ucc_status_t status = ucc_init(&lib_params, lib_config, &self->lib);
  ucc_lib_config_release(lib_config);
  if (status != UCC_OK || ucc_context_config_read(self->lib, NULL, &config) != UCC_OK) return 0;
  params.oob = oob_of(&self->world);
  const ucc_status_t made = ucc_context_create(self->lib, &params, config, &self->context);
  ucc_context_config_release(config);
  return made == UCC_OK;
}

/* ---- Teams ---- */

struct team {
  struct group group;
  ucc_team_h handle; /* NULL: this rank is not in it */
  ucc_status_t status;
};

/* Those of the ranks whose bit is set, in their order. */
static void post(struct rank* self, struct team* team, uint64_t members, uint64_t key) {
  memset(team, 0, sizeof *team);
  uint64_t* list = malloc(sizeof *list * (size_t)self->options.ranks);
  team->group = (struct group){.line = &self->line, .key = key, .rank = -1};
  for (int rank = 0; rank < self->options.ranks; ++rank) {
    if ((members >> rank & 1) == 0) continue;
    if (rank == self->rank) team->group.rank = team->group.ranks;
    list[team->group.ranks++] = (uint64_t)rank;
  }
  free(list);
  if (team->group.rank < 0) return;
  ucc_team_params_t params = {
      .mask = UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE | UCC_TEAM_PARAM_FIELD_OOB,
      .ep = (uint64_t)team->group.rank,
      .ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG};
  params.oob = oob_of(&team->group);
  team->status = ucc_team_create_post(&self->context, 1, &params, &team->handle);
  if (team->status != UCC_OK) self->wrong = "a team could not be posted";
}

static void wait_for(struct rank* self, struct team* team) {
  if (team->handle == NULL) return;
  while ((team->status = ucc_team_create_test(team->handle)) == UCC_INPROGRESS) {
    ucc_context_progress(self->context);
    sched_yield();
  }
  if (team->status != UCC_OK) self->wrong = "a team could not be made";
}

static void destroy(struct rank* self, struct team* team) {
  if (team->handle == NULL) return;
  ucc_status_t status;
  while ((status = ucc_team_destroy(team->handle)) == UCC_INPROGRESS) {
    ucc_context_progress(self->context);
    sched_yield();
  }
  team->handle = NULL;
  if (status != UCC_OK) self->wrong = "a team could not be destroyed";
}

static struct place place_of(const struct rank* self, const struct team* team) {
  return (struct place){self->context, team->handle, team->group.rank, team->group.ranks};
}

static void use(struct rank* self, struct team* team, const struct shape* shape) {
  if (team->handle == NULL || self->wrong != NULL) return;
  const struct place place = place_of(self, team);
  struct shape here = *shape;
  here.root = shape->root % place.ranks;
  const char* wrong = all_collectives(&place, &here);
  if (wrong == NULL) return;
  fprintf(stderr, "rank %d of %d: %s is wrong: count %zu root %d in place %d persistent %d wide %d\n", place.rank,
          place.ranks, wrong, here.count, here.root, here.in_place, here.persistent, here.wide);
  self->wrong = wrong;
}

static void all_shapes(struct rank* self, struct team* team) {
  static const size_t counts[] = {0, 1, 7, 1000, 100000};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i)
    for (int bits = 0; bits < 8; ++bits) {
      const struct shape shape = {counts[i], bits, bits & 1, bits >> 1 & 1, bits >> 2 & 1};
      use(self, team, &shape);
    }
}

/* All ranks draw the same. Teams are made one after the other, as UCC asks, and used and destroyed in a drawn order. */
static void drawn_orders(struct rank* self) {
  unsigned seed = self->options.seed;
  struct team teams[most_teams];
  memset(teams, 0, sizeof teams);
  uint64_t key = 1000;
  for (int round = 0; round < self->options.rounds && self->wrong == NULL; ++round) {
    struct team* team = &teams[rand_r(&seed) % most_teams];
    const uint64_t members = ((uint64_t)rand_r(&seed) | 1u << rand_r(&seed) % (unsigned)self->options.ranks) &
                             ((UINT64_C(1) << self->options.ranks) - 1);
    const struct shape shape = {(size_t)(rand_r(&seed) % 3000 + 1), rand_r(&seed) % 64, rand_r(&seed) & 1,
                                rand_r(&seed) & 1, rand_r(&seed) & 1};
    ++key;
    destroy(self, team);
    post(self, team, members, key);
    if (self->wrong == NULL) wait_for(self, team);
    for (int i = 0; i < most_teams; ++i) use(self, &teams[i], &shape);
  }
  for (int i = most_teams - 1; i >= 0; --i) destroy(self, &teams[i]);
}

/* ---- What is refused and given up ---- */

static void on_a_team(struct rank* self, uint64_t key, const char* (*look)(const struct place* place)) {
  struct team team;
  post(self, &team, (UINT64_C(1) << self->options.ranks) - 1, key);
  if (self->wrong == NULL) wait_for(self, &team);
  if (self->wrong == NULL) {
    const struct place place = place_of(self, &team);
    self->wrong = look(&place);
  }
  destroy(self, &team);
}

static const char* all_right(const struct place* place) {
  const struct shape shape = {1000, 0, 0, 0, 0};
  return all_collectives(place, &shape);
}

/* A context of its own, while the first one is still there. */
static void later_context(struct rank* self) {
  struct rank later = *self;
  later.line.pending = NULL;
  later.world = (struct group){.line = &later.line, .key = 20, .rank = self->rank, .ranks = self->options.ranks};
  if (!opened(&later)) {
    self->wrong = "a second context could not be made";
    return;
  }
  on_a_team(&later, 21, all_right);
  ucc_context_destroy(later.context);
  ucc_finalize(later.lib);
  self->wrong = later.wrong;
}

static void try_edges(struct rank* self) {
  on_a_team(self, 10, refuses);
  if (self->wrong == NULL) on_a_team(self, 11, gives_up);
  if (self->wrong == NULL) on_a_team(self, 12, all_right);
  if (self->wrong == NULL) later_context(self);
}

/* ---- Threads of a rank ---- */

/* The rank as one of its threads sees it: a line and teams of its own, the context of all. */
struct worker {
  struct rank self;
  int index;
  pthread_t thread;
  struct team given; /* made by the rank's first thread; its handle is NULL where the worker makes its teams itself */
};

static void make_for(struct rank* self, struct team* team, uint64_t key) {
  post(self, team, (UINT64_C(1) << self->options.ranks) - 1, key);
  if (self->wrong == NULL) wait_for(self, team);
}

static void use_as_drawn(struct worker* worker, struct team* team, unsigned* seed) {
  static const size_t counts[] = {2, 100, 4000, 22000};
  struct rank* self = &worker->self;
  for (int call = 0; call < 8; ++call) {
    const size_t count = counts[rand_r(seed) % 4];
    const int root = rand_r(seed) % self->options.ranks, in_place = rand_r(seed) & 1, persistent = rand_r(seed) & 1;
    const struct shape shape = {count, root, in_place, persistent, rand_r(seed) & 1};
    use(self, team, &shape);
  }
}

static void* work(void* data) {
  struct worker* worker = data;
  struct rank* self = &worker->self;
  unsigned seed = self->options.seed + (unsigned)worker->index;
  uint64_t key = (uint64_t)(worker->index + 1) << 32;
  for (int round = 0; round < self->options.rounds && self->wrong == NULL; ++round) {
    struct team own, *team = &worker->given;
    if (worker->given.handle == NULL) make_for(self, team = &own, ++key);
    use_as_drawn(worker, team, &seed);
    if (worker->given.handle == NULL) destroy(self, &own);
  }
  return worker;
}

static void work_side_by_side(struct rank* self) {
  struct worker workers[most_workers];
  for (int i = 0; i < self->options.workers; ++i) {
    workers[i] = (struct worker){.self = *self, .index = i};
    workers[i].self.line = (struct line){.end = self->worker_ends[i]};
    if (self->options.gives_teams && self->wrong == NULL) make_for(self, &workers[i].given, 10 + (uint64_t)i);
  }
  for (int i = 0; i < self->options.workers; ++i) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  for (int i = 0; i < self->options.workers; ++i) {
    pthread_join(workers[i].thread, NULL);
    close(self->worker_ends[i]);
    if (self->wrong == NULL) self->wrong = workers[i].self.wrong;
  }
  for (int i = 0; i < self->options.workers; ++i) destroy(self, &workers[i].given);
}

/* ---- A rank ---- */

static void killed_within(struct rank* self, struct team* team) {
  const struct place place = place_of(self, team);
  const struct shape shape = {1000, 0, 0, 0, 0};
  if (self->rank == self->options.ranks - 1) {
    all_collectives(&place, &shape);
    raise(SIGKILL);
  }
  const char* wrong = NULL;
  while (wrong == NULL) wrong = all_collectives(&place, &shape);
  fprintf(stderr, "rank %d: %s ended with an error\n", self->rank, wrong);
}

static void* be(void* data) {
  struct rank* self = data;
  self->world = (struct group){.line = &self->line, .key = 1, .rank = self->rank, .ranks = self->options.ranks};
  if (!opened(self)) {
    self->wrong = "UCC could not be opened";
    return self;
  }
  struct team world;
  post(self, &world, (UINT64_C(1) << self->options.ranks) - 1, 2);
  if (self->wrong == NULL) wait_for(self, &world);
  if (self->wrong == NULL && self->options.killed) {
    killed_within(self, &world);
    _exit(0);
  }
  if (self->wrong == NULL && self->options.edges) {
    try_edges(self);
  } else if (self->wrong == NULL && self->options.workers > 0) {
    work_side_by_side(self);
  } else {
    if (self->wrong == NULL) all_shapes(self, &world);
    if (self->wrong == NULL) drawn_orders(self);
  }
  destroy(self, &world);
  ucc_context_destroy(self->context);
  ucc_finalize(self->lib);
  close(self->line.end);
  return self;
}

/* Of `ends` the ranks' first threads have the first ones, then each further thread of all ranks. */
static struct rank make(const struct options* options, int rank, const int ends[]) {
  struct rank self = {.options = *options, .rank = rank, .line = {.end = ends[rank]}};
  for (int i = 0; i < options->workers; ++i) self.worker_ends[i] = ends[(i + 1) * options->ranks + rank];
  return self;
}

static int line_count(const struct options* options) { return options->ranks * (options->workers + 1); }

static int say(const char* wrong) {
  if (wrong != NULL) fprintf(stderr, "without_mpi: wrong: %s\n", wrong);
  return wrong == NULL ? 0 : 1;
}

static void* carry(void* nothing) {
  switchboard_run();
  return nothing;
}

static int as_threads(const struct options* options, const int ends[]) {
  static struct rank ranks[most_ranks];
  pthread_t threads[most_ranks], board;
  int failures = 0;
  pthread_create(&board, NULL, carry, NULL);
  for (int rank = 0; rank < options->ranks; ++rank) {
    ranks[rank] = make(options, rank, ends);
    pthread_create(&threads[rank], NULL, be, &ranks[rank]);
  }
  for (int rank = 0; rank < options->ranks; ++rank) {
    pthread_join(threads[rank], NULL);
    failures += say(ranks[rank].wrong);
  }
  pthread_join(board, NULL);
  return failures;
}

/* Those that are left after `patience_s` are ended: a failure where none was killed. */
static int wait_for_processes(const struct options* options, const pid_t processes[]) {
  int failures = 0, left = options->ranks;
  const time_t until = time(NULL) + (options->killed ? patience_s : 600);
  while (left > 0 && time(NULL) < until) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended <= 0) {
      usleep(10000);
      continue;
    }
    --left;
    const int as_told = options->killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    failures += !as_told && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
  }
  for (int rank = 0; left > 0 && rank < options->ranks; ++rank) kill(processes[rank], SIGKILL);
  if (left > 0) fprintf(stderr, "without_mpi: %d processes had not ended\n", left);
  return failures + left;
}

static int as_processes(const struct options* options, const int ends[]) {
  pid_t processes[most_ranks];
  pthread_t board;
  for (int rank = 0; rank < options->ranks; ++rank) {
    processes[rank] = fork();
    if (processes[rank] != 0) continue;
    for (int other = 0; other < line_count(options); ++other)
      if (other % options->ranks != rank) close(ends[other]);
    struct rank self = make(options, rank, ends);
    be(&self);
    _exit(say(self.wrong));
  }
  for (int line = 0; line < line_count(options); ++line) close(ends[line]);
  pthread_create(&board, NULL, carry, NULL);
  const int failures = wait_for_processes(options, processes);
  if (failures == 0 && !options->killed) pthread_join(board, NULL);
  return failures;
}

int main(int argc, char** argv) {
  struct options options = {.ranks = argc > 1 ? atoi(argv[1]) : 0, .rounds = 20, .seed = 1};
  int ends[most_ranks];
  if (options.ranks < 1 || options.ranks > most_ranks - 1 || argc < 3) {
    fprintf(stderr, "usage: without_mpi RANKS processes|threads|concurrent|given|edges|killed [ROUNDS [SEED]]\n");
    return 2;
  }
  options.gives_teams = strcmp(argv[2], "given") == 0;
  options.workers = options.gives_teams || strcmp(argv[2], "concurrent") == 0 ? most_workers : 0;
  options.threads = strcmp(argv[2], "threads") == 0;
  options.killed = strcmp(argv[2], "killed") == 0;
  options.edges = strcmp(argv[2], "edges") == 0;
  if (argc > 3) options.rounds = atoi(argv[3]);
  if (argc > 4) options.seed = (unsigned)atoi(argv[4]);
  if (line_count(&options) > most_ranks || !switchboard_open(line_count(&options), ends)) return 2;
  const int failures = options.threads ? as_threads(&options, ends) : as_processes(&options, ends);
  printf("without_mpi: %s (seed %u)\n", failures == 0 ? "right" : "wrong", options.seed);
  return failures == 0 ? 0 : 1;
}

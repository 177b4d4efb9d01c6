#include "switchboard.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct header {
  uint64_t key, step, bytes;
  int32_t rank, ranks;
};

struct gather {
  struct header header;
  void* all;
  bool done;
  struct gather* next;
};

static int board[most_ranks];
static int lines = 0;

bool switchboard_open(int ranks, int ends[]) {
  lines = ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return false;
    board[rank] = pair[0];
    ends[rank] = pair[1];
  }
  return true;
}

static bool send_all(int end, const void* data, size_t bytes) {
  for (const char* from = data; bytes > 0;) {
    const ssize_t sent = send(end, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= (size_t)sent;
  }
  return true;
}

static bool receive_all(int end, void* data, size_t bytes) {
  for (char* to = data; bytes > 0;) {
    const ssize_t got = recv(end, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= (size_t)got;
  }
  return true;
}

/* ---- The switchboard ---- */

struct call {
  struct header header;
  char* data;
  int from[most_ranks]; /* line by rank of the group */
  int come;
  struct call* next;
};
static struct call* calls = NULL;

static struct call* call_of(const struct header* header) {
  for (struct call* call = calls; call != NULL; call = call->next)
    if (call->header.key == header->key && call->header.step == header->step) return call;
  struct call* call = calloc(1, sizeof *call);
  call->header = *header;
  call->data = malloc(header->bytes * (size_t)header->ranks + 1);
  call->next = calls;
  calls = call;
  return call;
}

static void answer(struct call* call) {
  for (int rank = 0; rank < call->header.ranks; ++rank) {
    struct header header = call->header;
    header.rank = rank;
    if (send_all(board[call->from[rank]], &header, sizeof header))
      send_all(board[call->from[rank]], call->data, header.bytes * (size_t)header.ranks);
  }
  struct call** place = &calls;
  while (*place != call) place = &(*place)->next;
  *place = call->next;
  free(call->data);
  free(call);
}

static bool take_message(int line) {
  struct header header;
  if (!receive_all(board[line], &header, sizeof header)) return false;
  struct call* call = call_of(&header);
  if (!receive_all(board[line], call->data + header.bytes * (size_t)header.rank, header.bytes)) return false;
  call->from[header.rank] = line;
  if (++call->come == header.ranks) answer(call);
  return true;
}

void switchboard_run(void) {
  for (int open = lines; open > 0;) {
    struct pollfd waited[most_ranks];
    for (int line = 0; line < lines; ++line) waited[line] = (struct pollfd){.fd = board[line], .events = POLLIN};
    if (poll(waited, (nfds_t)lines, -1) < 0) continue;
    for (int line = 0; line < lines; ++line) {
      if (waited[line].fd < 0 || waited[line].revents == 0 || take_message(line)) continue;
      close(board[line]);
      board[line] = -1;
      --open;
    }
  }
}

/* ---- A rank ---- */

static ucc_status_t start(void* mine, void* all, size_t bytes, void* data, void** request) {
  struct group* group = data;
  struct gather* gather = calloc(1, sizeof *gather);
  gather->header = (struct header){group->key, group->steps++, bytes, group->rank, group->ranks};
  gather->all = all;
  gather->next = group->line->pending;
  group->line->pending = gather;
  *request = gather;
  if (!send_all(group->line->end, &gather->header, sizeof gather->header)) return UCC_ERR_NO_MESSAGE;
  return send_all(group->line->end, mine, bytes) ? UCC_OK : UCC_ERR_NO_MESSAGE;
}

static _Thread_local struct line* own_line = NULL; /* of the rank that this thread is */

static bool take_answer(struct line* line) {
  struct header header;
  if (!receive_all(line->end, &header, sizeof header)) return false;
  for (struct gather** place = &line->pending; *place != NULL; place = &(*place)->next) {
    struct gather* gather = *place;
    if (gather->header.key != header.key || gather->header.step != header.step) continue;
    if (!receive_all(line->end, gather->all, header.bytes * (size_t)header.ranks)) return false;
    gather->done = true;
    *place = gather->next;
    return true;
  }
  return false;
}

static ucc_status_t test(void* request) {
  struct gather* gather = request;
  struct pollfd waited = {.fd = own_line->end, .events = POLLIN};
  if (!gather->done && poll(&waited, 1, 0) > 0 && !take_answer(own_line)) return UCC_ERR_NO_MESSAGE;
  return gather->done ? UCC_OK : UCC_INPROGRESS;
}

static ucc_status_t release(void* request) {
  free(request);
  return UCC_OK;
}

ucc_oob_coll_t oob_of(struct group* group) {
  own_line = group->line;
  return (ucc_oob_coll_t){.allgather = start,
                          .req_test = test,
                          .req_free = release,
                          .coll_info = group,
                          .n_oob_eps = (uint32_t)group->ranks,
                          .oob_ep = (uint32_t)group->rank};
}

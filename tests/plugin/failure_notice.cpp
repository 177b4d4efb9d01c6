// Run by three ranks: what a rank hears of failures. A rank that merely saw another one's connection cut tells so; the
// reason of the rank that cut it counts for more, whichever comes first.
#include "plugin/failure_notice.h"

#include <mpi.h>

#include <cstdio>
#include <string>

namespace {

using plait::Code;
using plait::Status;
using plait::plugin::MpiFailureNotice;
using plait::runtime::FailureNotice;

constexpr std::uint64_t team = 17;
const Status cut{Code::peer_left, "tcp: rank 2 on node1, rail eth0: it closed the connection"};
const Status cause{Code::peer_failed, "ucx: rank 0 on node0, rail eth1: the link of this rank's own node is lost"};

int failures = 0;

void expect(const char* what, const Status& found, Code code, const std::string& text) {
  if (found.code() == code && found.message() == text) return;
  std::fprintf(stderr, "failed: %s: '%s', expected '%s'\n", what, found.message().c_str(), text.c_str());
  ++failures;
}

void hear(FailureNotice& notice, Code code) {
  const double until = MPI_Wtime() + 20;
  while (notice.heard().code() != code && MPI_Wtime() < until) notice.look();
}

void expect_silence() {
  int found = 0;
  for (int glance = 0; glance < 1000 && found == 0; ++glance)
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  if (found == 0) return;
  std::fprintf(stderr, "failed: a rank was told once more\n");
  ++failures;
}

// Rank 1 tells what it saw, rank 2 why it left; in this order or in the other one.
void run(int rank, bool cause_first) {
  MpiFailureNotice notice(MPI_COMM_WORLD, team + (cause_first ? 1 : 0),
                          rank == 2 ? std::vector<int>{0} : std::vector<int>{0, 2});
  const std::string first = "rank 1 has failed: " + cut.message(), better = "rank 2 has failed: " + cause.message();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && !cause_first) notice.tell(cut);
  if (rank == 2 && cause_first) notice.tell(cause);
  if (rank == 0) hear(notice, cause_first ? Code::peer_failed : Code::peer_left);
  if (rank == 0 && !cause_first) expect("hearsay", notice.heard(), Code::peer_left, first);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && cause_first) notice.tell(cut);
  if (rank == 2 && !cause_first) {
    hear(notice, Code::peer_left);
    expect("hearsay where the cause is", notice.heard(), Code::peer_left, first);
    notice.tell(cause);  // although something was heard
  }
  if (rank == 2 && cause_first) {
    hear(notice, Code::peer_left);
    expect("hearsay of this rank itself", notice.heard(), Code::peer_left, first);
  }
  if (rank == 0) {
    if (cause_first) MPI_Probe(1, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    hear(notice, Code::peer_failed);
    notice.look();
    expect("the reason", notice.heard(), Code::peer_failed, better);
    notice.tell(cut);  // nobody is told: rank 0 has heard better
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expect_silence();
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 3) {
    std::fprintf(stderr, "failure_notice: expected 3 ranks, not %d\n", ranks);
    return 2;
  }
  for (const bool cause_first : {false, true}) run(rank, cause_first);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

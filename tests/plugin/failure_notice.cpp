// Run by three ranks: what a rank hears of failures. A rank that merely saw another one's connection cut tells so; the
// reason of the rank that cut it counts for more, whichever comes first.
#include "plugin/mpi/oob/failure_notice.h"

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "plugin/mpi/oob/left_requests.h"

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

void expect_that(const char* what, bool so) {
  if (so) return;
  std::fprintf(stderr, "failed: %s\n", what);
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
                          rank == 2 ? std::vector<int>{1, 2} : std::vector<int>{rank});  // rank 2 tells rank 0 alone
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

// A notice that nobody takes up in time goes out before MPI ends, and what never goes out does not hold it up. Messages
// that are too long to go out before they are received.
void run_left(int rank) {
  std::vector<char> data(std::size_t{4} << 20);
  constexpr int length = 4 << 20;
  constexpr double given_up_s = 5;
  constexpr std::uint64_t short_ns = 200'000'000, long_ns = 20'000'000'000;
  if (rank == 0) {
    const double begin = MPI_Wtime();
    for (const int to : {1, 2}) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(data.data(), length, MPI_CHAR, to, 1, MPI_COMM_WORLD, &request);
      plait::plugin::leave_request(request);
    }
    const bool early = plait::plugin::settle_left_requests(short_ns);
    expect_that("nothing has gone out where nobody receives it", !early);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(data.data(), length, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request);
    plait::plugin::leave_request(request);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_that("all has gone out", plait::plugin::settle_left_requests(long_ns));
    expect_that("it has waited for the receiver", MPI_Wtime() - begin > 0.5);
    const double again = MPI_Wtime();
    expect_that("nothing is left", plait::plugin::settle_left_requests(long_ns));
    expect_that("nothing is waited for", MPI_Wtime() - again < given_up_s);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (int tag = 1; tag <= (rank == 1 ? 2 : 1); ++tag)
      MPI_Recv(data.data(), length, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
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
  run_left(rank);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

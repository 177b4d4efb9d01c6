// Run under mpirun: random traffic over the MPI channel, with several piece sizes and windows; then the failures.
#include "tl/mpi/mpi_channel.h"

#include <cstdio>

#include "tests/tl/traffic.h"

namespace {

using namespace plait;
using namespace plait::tl;

int failures = 0;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  ++failures;
}

struct Case {
  MpiChannelOptions options;
  std::size_t element_bytes;
  std::vector<std::size_t> sizes;
};

void run_traffic(MPI_Comm communicator, int rank, int ranks) {
  const Case cases[] = {
      {{}, 4, {4, 8, 1000, 61'436, 61'440, 61'444, 130'000, 1'000'000}},
      {{.fragment_bytes = 1000, .window = 1}, 4, {4, 996, 1000, 1004, 20'000}},
      {{.fragment_bytes = 1000, .window = 3}, 12, {12, 996, 1008, 20'000}},
      {{.fragment_bytes = 100, .window = 8}, 4096, {4096, 40'960}},
      {{.fragment_bytes = 64, .window = 2}, 0, {0}},
      {{.fragment_bytes = 1 << 30, .window = 8}, 4, {100, 2'000'000}},
  };
  for (const Case& test : cases) {
    const std::unique_ptr<Channel> channel = make_mpi_channel(communicator, test.options);
    Engine engine(by_kind({channel.get()}), {.yield = true});
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Traffic traffic({.seed = seed,
                       .ranks = ranks,
                       .messages = 60,
                       .element_bytes = test.element_bytes,
                       .sizes = test.sizes,
                       .most_spans = seed % 2 == 0 ? 1 : 6,
                       .channel = ChannelKind::mpi},
                      rank);
      const std::string problem = traffic.run(engine);
      expect(problem.empty(), problem);
      expect(channel->active() == 0, "transfers left over");
    }
  }
}

struct Message {
  Message(StepKind kind, int peer, std::size_t bytes) : storage(bytes), span{0, bytes, Space::input} {
    buffers.base[0] = storage.data();
    transfer.kind = kind;
    transfer.peer = peer;
    transfer.bytes = bytes;
    transfer.memory = {&span, 1, &buffers};
  }
  std::vector<std::byte> storage;
  BoundSpan span;
  Buffers buffers;
  Transfer transfer;
};

// A receive shorter than the message fails with the peer's name; afterwards the channel refuses work.
void run_mismatch(MPI_Comm communicator, int rank) {
  const std::unique_ptr<Channel> channel = make_mpi_channel(communicator, {});
  if (rank == 1) {
    const std::vector<char> longer(100);
    PMPI_Send(longer.data(), 100, MPI_BYTE, 0, 1, communicator);
  } else if (rank == 0) {
    Message message(StepKind::recv, 1, 60);
    std::vector<Transfer*> completed;
    Status status;
    expect(channel->start(message.transfer).ok(), "start");
    while (status.ok() && completed.empty())
      if (Result<bool> moved = channel->progress(completed); !moved.ok()) status = moved.status();
    expect(status.code() == Code::peer_failed && status.message().find("from rank 1") != std::string::npos,
           "truncation says: " + status.message());
    channel->abandon({Code::peer_failed, "given up"});
    expect(!channel->start(message.transfer).ok(), "an abandoned channel takes work");
  }
  PMPI_Barrier(communicator);
}

// Receives that nothing will meet are cancelled, and their memory is not written afterwards.
void run_abandon(MPI_Comm communicator, int rank) {
  Message message(StepKind::recv, 1, 200'000);
  if (rank == 0) {
    const std::unique_ptr<Channel> channel = make_mpi_channel(communicator, {});
    expect(channel->start(message.transfer).ok(), "start");
    channel->abandon({Code::peer_failed, "given up"});
    expect(channel->active() == 0, "abandon leaves nothing active");
  }
  PMPI_Barrier(communicator);
  Message stranger(StepKind::send, 99, 8);
  expect(!make_mpi_channel(communicator, {})->start(stranger.transfer).ok(), "rank 99 does not exist");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // which MPICH asks about MPI_Testsome
  int rank = 0, ranks = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  run_traffic(communicator, rank, ranks);
  run_mismatch(communicator, rank);
  run_abandon(communicator, rank);
  int total = 0;
  MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, communicator);
  MPI_Comm_free(&communicator);
  MPI_Finalize();
  return total == 0 ? 0 : 1;
}

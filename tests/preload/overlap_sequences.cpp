// Random sequences of non-blocking allreduces under PLAIT_OVERLAP: the plan's step with calls left out, added, moved,
// of other sizes, types and operators, in place, on several communicators, among other collectives and messages; each
// rank waits when and how it likes. All results are checked, and a rank that waits too long ends the job.
//
//   overlap_sequences SEQUENCES SEED [PLAN | [steps] [threads]]
//
// PLAN is the one of rank 2 ("none": it has none). With "steps", a sequence is many steps of the same calls on one or
// two communicators of its own, for plans that are learned; later they are disturbed like the others. With "threads"
// the program asks for MPI_THREAD_MULTIPLE, under which the helper thread completes requests. Prints
// "overlap_sequences: right" at the end. The plan's sizes are those of overlap_step.json.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace {

constexpr std::array<int, 12> step_bytes = {64, 8, 512, 512, 512, 4096, 64, 20000, 40, 8, 8, 96};
constexpr unsigned patience_s = 20;

int rank_of_world, ranks_of_world;
std::uint64_t seed_at_hand;

void check(bool right, const char* what, std::size_t call) {
  if (right) return;
  std::fprintf(stderr, "overlap_sequences: wrong: %s of call %zu, rank %d, seed %llu\n", what, call, rank_of_world,
               static_cast<unsigned long long>(seed_at_hand));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void too_late(int) {
  static const char text[] = "overlap_sequences: wrong: a rank waits for ever\n";
  if (write(2, text, sizeof text - 1) < 0) _exit(2);
  std::fprintf(stderr, "seed %llu, rank %d\n", static_cast<unsigned long long>(seed_at_hand), rank_of_world);
  _exit(1);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int below(int bound) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(bound)); }
  bool one_in(int times) { return below(times) == 0; }

 private:
  std::mt19937_64 engine_;
};

enum class Kind { allreduce, other_post, blocking, message };
enum class Type { f32, f64, i32, i64 };

struct Call {
  Kind kind = Kind::allreduce;
  int communicator = 0, bytes = 0;
  Type type = Type::f32;
  bool maximum = false, in_place = false;
};

struct Party {
  MPI_Comm comm;
  int rank, ranks;
  std::vector<int> members;  // ranks of MPI_COMM_WORLD
};

MPI_Datatype handle(Type type) {
  switch (type) {
    case Type::f32:
      return MPI_FLOAT;
    case Type::f64:
      return MPI_DOUBLE;
    case Type::i32:
      return MPI_INT;
    default:
      return MPI_INT64_T;
  }
}
int width(Type type) { return type == Type::f32 || type == Type::i32 ? 4 : 8; }

int value(int member, std::size_t call, int index) {
  return (member * 7 + static_cast<int>(call) * 13 + index * 5) % 23 - 6;
}

void put(std::byte* place, Type type, int number) {
  const auto store = [&](auto converted) { std::memcpy(place, &converted, sizeof converted); };
  if (type == Type::f32) store(static_cast<float>(number));
  if (type == Type::f64) store(static_cast<double>(number));
  if (type == Type::i32) store(static_cast<std::int32_t>(number));
  if (type == Type::i64) store(static_cast<std::int64_t>(number));
}

struct Posted {
  std::size_t index = 0;
  Call call;
  std::vector<std::byte> input, output;
  MPI_Request request = MPI_REQUEST_NULL;
};

void fill(std::vector<std::byte>& data, const Call& call, int member, std::size_t index) {
  data.resize(static_cast<std::size_t>(call.bytes));
  for (int i = 0; i < call.bytes / width(call.type); ++i)
    put(data.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(width(call.type)), call.type,
        value(member, index, i));
}

void check_result(const Posted& posted, const Party& party) {
  const Call& call = posted.call;
  std::array<std::byte, 8> right{};
  for (int i = 0; i < call.bytes / width(call.type); ++i) {
    int result = call.maximum ? -1000 : 0;
    for (const int member : party.members)
      result =
          call.maximum ? std::max(result, value(member, posted.index, i)) : result + value(member, posted.index, i);
    put(right.data(), call.type, result);
    const std::size_t at = static_cast<std::size_t>(i) * static_cast<std::size_t>(width(call.type));
    check(std::memcmp(posted.output.data() + at, right.data(), static_cast<std::size_t>(width(call.type))) == 0,
          "an element", posted.index);
  }
}

// ---- What all ranks do ----

Call random_call(Random& random, int bytes, int communicators) {
  Call call{.bytes = bytes};
  if (random.one_in(12)) call.communicator = random.below(communicators);
  if (random.one_in(15)) call.type = static_cast<Type>(random.below(4));
  call.maximum = random.one_in(15);
  call.in_place = random.one_in(10);
  call.bytes = (call.bytes + width(call.type) - 1) / width(call.type) * width(call.type);
  return call;
}

std::vector<Call> random_sequence(Random& random, int communicators) {
  std::vector<Call> calls;
  const int home = random.below(communicators), steps = 1 + random.below(3);
  const bool plain = random.one_in(4);
  for (int step = 0; step < steps; ++step)
    for (const int bytes : step_bytes) {
      if (plain) {
        calls.push_back({.communicator = home, .bytes = bytes});
        continue;
      }
      if (random.one_in(20)) continue;  // left out
      if (random.one_in(20)) calls.push_back(random_call(random, 8 * (1 + random.below(3000)), communicators));
      Call call = random_call(random, random.one_in(20) ? 8 * (1 + random.below(100)) : bytes, communicators);
      if (!random.one_in(12)) call.communicator = home;
      calls.push_back(call);
      if (calls.size() > 1 && random.one_in(20)) std::swap(calls.back(), calls[calls.size() - 2]);
      if (random.one_in(25)) calls.push_back({.kind = Kind::other_post, .communicator = home, .bytes = 64});
      if (random.one_in(40)) calls.push_back({.kind = Kind::blocking, .communicator = home, .bytes = 64});
      if (random.one_in(30)) calls.push_back({.kind = Kind::message});
    }
  return calls;
}

// ---- What each rank does as it likes ----

class Rank {
 public:
  explicit Rank(std::vector<Party>& parties) : parties_(parties) {}

  // `patient`: it waits at the end only.
  void run(const std::vector<Call>& calls, std::uint64_t seed, bool patient) {
    Random own(seed * 1000003 + static_cast<std::uint64_t>(rank_of_world));
    Random common(seed ^ 0x5bd1e995);
    patient |= own.one_in(3);
    for (std::size_t index = 0; index < calls.size(); ++index) {
      make(index, calls[index], common);
      if (!patient && own.one_in(6)) wait_somehow(own);
      if (own.one_in(200)) usleep(300);
    }
    while (!posted_.empty()) wait_somehow(own);
  }

 private:
  void make(std::size_t index, const Call& call, Random& common) {
    if (call.kind == Kind::message) return message(common);
    Party& party = parties_[static_cast<std::size_t>(call.communicator)];
    if (call.kind == Kind::blocking) return blocking(party, index);
    auto posted = std::make_unique<Posted>();
    posted->index = index;
    posted->call = call;
    if (call.kind == Kind::other_post)
      post_other(*posted, party);
    else
      post(*posted, party);
    posted_.push_back(std::move(posted));
  }

  void post(Posted& posted, const Party& party) {
    const Call& call = posted.call;
    fill(call.in_place ? posted.output : posted.input, call, rank_of_world, posted.index);
    posted.output.resize(static_cast<std::size_t>(call.bytes));
    MPI_Iallreduce(call.in_place ? MPI_IN_PLACE : posted.input.data(), posted.output.data(),
                   call.bytes / width(call.type), handle(call.type), call.maximum ? MPI_MAX : MPI_SUM, party.comm,
                   &posted.request);
  }

  // Its result is the one of member 0.
  void post_other(Posted& posted, const Party& party) {
    posted.output.assign(static_cast<std::size_t>(posted.call.bytes), std::byte{0});
    if (party.rank == 0) fill(posted.output, posted.call, rank_of_world, posted.index);
    MPI_Ibcast(posted.output.data(), posted.call.bytes, MPI_BYTE, 0, party.comm, &posted.request);
  }

  void blocking(const Party& party, std::size_t index) {
    int mine = value(rank_of_world, index, 0), all = 0, right = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, party.comm);
    for (const int member : party.members) right += value(member, index, 0);
    check(all == right, "the blocking sum", index);
  }

  // One rank goes on only when another one has come so far.
  void message(Random& common) {
    const int from = common.below(ranks_of_world), to = common.below(ranks_of_world);
    int token = 0;
    if (from == to) return;
    if (rank_of_world == from) MPI_Send(&token, 1, MPI_INT, to, 5, MPI_COMM_WORLD);
    if (rank_of_world == to) MPI_Recv(&token, 1, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

  void wait_somehow(Random& own) {
    if (posted_.empty()) return;
    const auto count = static_cast<int>(posted_.size());
    std::vector<MPI_Request> requests;
    for (const auto& posted : posted_) requests.push_back(posted->request);
    std::vector<MPI_Status> statuses(requests.size());
    std::vector<int> indices(requests.size());
    const auto chosen = static_cast<std::size_t>(own.below(count));
    int done = 0, index = 0;
    switch (own.below(8)) {
      case 0:
        while (done == 0) MPI_Test(&requests[chosen], &done, MPI_STATUS_IGNORE);
        break;
      case 1:
        MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
        break;
      case 2:
        MPI_Waitsome(count, requests.data(), &done, indices.data(), statuses.data());
        break;
      case 3:
        MPI_Waitall(count, requests.data(), statuses.data());
        break;
      case 4:
        while (done == 0) MPI_Testany(count, requests.data(), &index, &done, MPI_STATUS_IGNORE);
        break;
      case 5:
        while (done == 0) MPI_Request_get_status(requests[chosen], &done, MPI_STATUS_IGNORE);
        break;
      case 6:
        for (int look = 0; look < 3 && done == 0; ++look) MPI_Testall(count, requests.data(), &done, statuses.data());
        break;
      default:
        MPI_Wait(&requests[chosen], MPI_STATUS_IGNORE);
    }
    take_out(requests);
  }

  void take_out(const std::vector<MPI_Request>& requests) {
    std::vector<std::unique_ptr<Posted>> left;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      posted_[i]->request = requests[i];
      if (requests[i] != MPI_REQUEST_NULL) {
        left.push_back(std::move(posted_[i]));
        continue;
      }
      const Party& party = parties_[static_cast<std::size_t>(posted_[i]->call.communicator)];
      if (posted_[i]->call.kind == Kind::allreduce) check_result(*posted_[i], party);
    }
    posted_ = std::move(left);
  }

  std::vector<Party>& parties_;
  std::vector<std::unique_ptr<Posted>> posted_;
};

// ---- The communicators ----

Party party_of(MPI_Comm comm) {
  Party party{.comm = comm, .rank = 0, .ranks = 0, .members = {}};
  MPI_Comm_rank(comm, &party.rank);
  MPI_Comm_size(comm, &party.ranks);
  party.members.resize(static_cast<std::size_t>(party.ranks));
  MPI_Allgather(&rank_of_world, 1, MPI_INT, party.members.data(), 1, MPI_INT, comm);
  // So that it is set up for all lengths.
  std::vector<char> data(65536), all(65536);
  for (int i = 0; i < 2; ++i) MPI_Allreduce(data.data(), all.data(), 65536, MPI_CHAR, MPI_BOR, comm);
  return party;
}

std::vector<Party> make_parties() {
  MPI_Comm again = MPI_COMM_NULL, half = MPI_COMM_NULL, reversed = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  MPI_Comm_split(MPI_COMM_WORLD, rank_of_world % 2, rank_of_world, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank_of_world, &reversed);
  return {party_of(MPI_COMM_WORLD), party_of(again), party_of(half), party_of(reversed)};
}

// ---- Steps ----

// A call is left out, or comes twice, later, on another communicator, or with another size, type or operator.
std::vector<Call> disturbed(std::vector<Call> step, Random& random, int communicators) {
  const auto chosen = step.begin() + random.below(static_cast<int>(step.size()));
  switch (random.below(5)) {
    case 0:
      step.erase(chosen);
      break;
    case 1:
      step.insert(chosen, Call(*chosen));
      break;
    case 2:
      std::swap(*chosen, step.back());
      break;
    case 3:
      chosen->communicator = random.below(communicators);
      break;
    default:
      *chosen = random_call(random, 8 * (1 + random.below(100)), communicators);
  }
  return step;
}

void run_steps(std::uint64_t seed) {
  constexpr int undisturbed = 48, steps = 72;
  Random common(seed);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<Party> parties = {party_of(comm)};
  if (common.one_in(2)) {
    MPI_Comm_split(MPI_COMM_WORLD, common.one_in(2) ? 0 : rank_of_world % 2, -rank_of_world, &comm);
    parties.push_back(party_of(comm));
  }
  const auto communicators = static_cast<int>(parties.size());
  Rank self(parties);
  std::vector<Call> step(static_cast<std::size_t>(2 + common.below(12)));
  for (Call& call : step) call.bytes = 8 * (1 + common.below(common.one_in(3) ? 3000 : 100));
  for (Call& call : step) call.communicator = common.below(communicators);
  const int change = common.one_in(3) ? common.below(undisturbed) : -1;
  for (int number = 0; number < steps; ++number) {
    alarm(patience_s);
    if (number == change) step.front().bytes += 8;
    const bool disturb = number >= undisturbed && common.one_in(3);
    self.run(disturb ? disturbed(step, common, communicators) : step, seed * 1000 + static_cast<std::uint64_t>(number),
             number < undisturbed);
  }
  for (Party& party : parties) MPI_Comm_free(&party.comm);
}

// Open MPI's name and MPICH's.
const char* own_rank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr ? rank : std::getenv("PMI_RANK");
}

}  // namespace

long resident_bytes() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * sysconf(_SC_PAGESIZE);
}

// The plan's whole step, again and again, with a wait after each call: no group is ever full, and what one step
// needed serves the next.
void wait_early(MPI_Comm comm) {
  constexpr int warm_up = 50, steps = 1000;
  constexpr long most_growth = 8 << 20;
  static std::array<std::array<float, 5000>, step_bytes.size()> data;
  long before = 0;
  for (int step = 0; step < warm_up + steps; ++step) {
    if (step % warm_up == 0) alarm(patience_s);
    if (step == warm_up) before = resident_bytes();
    for (std::size_t call = 0; call < data.size(); ++call) {
      MPI_Request request;
      MPI_Iallreduce(MPI_IN_PLACE, data[call].data(), step_bytes[call] / 4, MPI_FLOAT, MPI_MAX, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  check(resident_bytes() - before < most_growth, "the memory of steps whose groups begin early", 0);
}

int main(int argc, char** argv) {
  const auto asks_for = [&](const char* word) {
    return std::any_of(argv + std::min(argc, 3), argv + argc,
                       [&](const char* is) { return std::strcmp(is, word) == 0; });
  };
  const bool by_steps = asks_for("steps"), threads = asks_for("threads");
  if (argc > 3 && !by_steps && !threads && own_rank() != nullptr && std::atoi(own_rank()) == 2) {
    if (std::strcmp(argv[3], "none") != 0)
      setenv("PLAIT_OVERLAP", argv[3], 1);
    else
      unsetenv("PLAIT_OVERLAP");
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_world);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_of_world);
  const long sequences = argc > 1 ? std::atol(argv[1]) : 100;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::signal(SIGALRM, too_late);
  std::vector<Party> parties = make_parties();
  Rank self(parties);
  for (long sequence = 0; sequence < sequences; ++sequence) {
    seed_at_hand = seed * 1000000 + static_cast<std::uint64_t>(sequence);
    alarm(patience_s);
    if (by_steps) {
      run_steps(seed_at_hand);
      continue;
    }
    Random random(seed_at_hand);
    const std::vector<Call> calls = random_sequence(random, static_cast<int>(parties.size()));
    self.run(calls, seed_at_hand, false);
  }
  wait_early(parties.front().comm);
  for (std::size_t i = 1; i < parties.size(); ++i) MPI_Comm_free(&parties[i].comm);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_of_world == 0)
    std::printf("overlap_sequences: right: %ld sequences from seed %llu\n", sequences,
                static_cast<unsigned long long>(seed));
  MPI_Finalize();
  return 0;
}

// The job that perf/soak hurts: random collectives whose every result is checked, until its time is over.
//
//   soak_job [--seconds S] [--seed N] [--forms blocking,nonblocking,persistent] [--memory private|mpi]
//            [--errors fatal|return|abort] [--idle AT SECONDS]
//
// --errors: fatal is MPI's default; after an error, return leaves by MPI_Finalize, abort by MPI_Abort.
// --idle: no call for so many seconds.
//
// Rank 0 prints "begun" once MPI has started and its host has connected all ranks, and "done" when all results of all
// ranks were right. A wrong result is "wrong bits"; so is what somebody writes into a buffer after its call has failed.
#include <dlfcn.h>
#include <mpi.h>

// Open MPI 4.1 has MPI 4.0's persistent collectives as an extension.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(Name) MPIX_##Name##_init
#else
#define PERSISTENT(Name) MPI_##Name##_init
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plait/plait.h"

namespace {

constexpr std::size_t most_elements = 150000;  // of a buffer
constexpr std::array<std::size_t, 6> counts = {1, 40, 300, 9000, 60000, most_elements};
constexpr std::int64_t unset = -1, reclaimed = 0x5AFE5AFE5AFE5AFE;
constexpr int failed_status = 3;

struct Options {
  double seconds = 1;
  std::uint64_t seed = 1;
  std::string forms = "blocking", memory = "private", errors = "fatal";
  double idle_at = -1, idle_seconds = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&] { return ++i < argc ? argv[i] : ""; };
    if (option == "--seconds")
      options.seconds = std::atof(value());
    else if (option == "--seed")
      options.seed = std::strtoull(value(), nullptr, 10);
    else if (option == "--forms")
      options.forms = value();
    else if (option == "--memory")
      options.memory = value();
    else if (option == "--errors")
      options.errors = value();
    else if (option == "--idle")
      options.idle_at = std::atof(value()), options.idle_seconds = std::atof(value());
    else
      std::fprintf(stderr, "soak_job: unknown option %s\n", argv[i]), std::exit(2);
  }
  return options;
}

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

struct Group {
  explicit Group(MPI_Comm made) : comm(made) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
  }
  MPI_Comm comm;
  int rank = 0, ranks = 1;
};

// ---- What is sent, and what must arrive ----

// Element i of what a rank gives in a round: any other place, rank or round has another value.
std::int64_t value(std::int64_t round, int rank, std::size_t i) {
  return round * 1'000'003 + rank * 7'919 + static_cast<std::int64_t>(i) * 31;
}

// Over ranks 0 to last.
std::int64_t sum_of_values(std::int64_t round, int last, std::size_t i) {
  const std::int64_t ranks = last + 1;
  return ranks * value(round, 0, i) + 7'919 * (ranks * (ranks - 1) / 2);
}

// What one rank gives another where each gets something else.
std::int64_t pair_value(std::int64_t round, int from, int to, std::size_t i) {
  return value(round, from, i) + std::int64_t{to} * 104'729;
}

// Reals whose sum depends, in its last bits, on the order of the additions.
double real_value(std::int64_t round, int rank, std::size_t i) {
  const auto bits = static_cast<std::uint64_t>(value(round, rank, i)) * 0x9E3779B97F4A7C15u;
  return static_cast<double>(bits >> 11) * 0x1p-50 + 1e-7;
}

// ---- Calls ----

enum class Kind { allreduce, reals, reduce, bcast, gather, scatter, allgather, alltoall, alltoallv, scan, barrier };
constexpr std::array kind_names = {"allreduce", "allreduce of reals", "reduce",    "bcast", "gather", "scatter",
                                   "allgather", "alltoall",           "alltoallv", "scan",  "barrier"};

enum class Form { blocking, nonblocking, persistent };

// Two buffers and the collective call that is made with them. All ranks of the group do the same.
class Call {
 public:
  Call(Form form, bool memory_of_mpi) : form_(form), in_(made(memory_of_mpi)), out_(made(memory_of_mpi)) {}

  // What it is from now on. A persistent one stays what it was first.
  void become(const Group& group, Kind kind, std::size_t count);
  // Fills the buffers, then makes the call, or starts it. An error code.
  int start(std::int64_t round);
  int wait() { return form_ == Form::blocking ? MPI_SUCCESS : MPI_Wait(&request_, MPI_STATUS_IGNORE); }
  // Collective over the group for a sum of reals, which is to have the same bits everywhere.
  bool right() const;

  bool fixed() const { return fixed_; }
  const char* name() const { return kind_names[static_cast<std::size_t>(kind_)]; }
  // After an error the buffers are the program's again: nobody else may write there from then on.
  void reclaim() { std::fill_n(out_, most_elements, reclaimed); }
  bool untouched() const {
    return std::all_of(out_, out_ + most_elements, [](std::int64_t each) { return each == reclaimed; });
  }

 private:
  static std::int64_t* made(bool of_mpi);
  bool by_pair() const { return kind_ == Kind::alltoall || kind_ == Kind::alltoallv || kind_ == Kind::scatter; }
  bool by_rank() const { return by_pair() || kind_ == Kind::gather || kind_ == Kind::allgather; }
  // Of an exchange of unequal lengths: from nothing to `count`.
  std::size_t pair_count(int from, int to) const { return count_ * static_cast<std::size_t>((from + to) % 3) / 2; }
  std::int64_t awaited(std::size_t i) const;
  bool same_bits_everywhere() const;
  int post();
  template <typename Blocking, typename Posted, typename Lasting, typename... Arguments>
  int in_form(Blocking blocking, Posted posted, Lasting lasting, Arguments... arguments);

  Form form_;
  std::int64_t *in_, *out_;
  Group group_{MPI_COMM_WORLD};
  Kind kind_ = Kind::barrier;
  std::size_t count_ = 0;  // elements, of each rank or pair where there are such
  std::int64_t round_ = 0;
  int root_ = 0;
  bool fixed_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<int> to_, from_, places_;  // of an exchange of unequal lengths
};

// Lives as long as the process: after an error nobody knows who still writes there.
std::int64_t* Call::made(bool of_mpi) {
  constexpr std::size_t bytes = most_elements * sizeof(std::int64_t);
  void* memory = nullptr;
  if (!of_mpi) return static_cast<std::int64_t*>(std::calloc(1, bytes));
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory);
  return static_cast<std::int64_t*>(memory);
}

void Call::become(const Group& group, Kind kind, std::size_t count) {
  group_ = group;
  kind_ = kind;
  const auto ranks = static_cast<std::size_t>(group.ranks);
  count_ = by_rank() ? std::max<std::size_t>(1, count / ranks) : count;
  root_ = static_cast<int>(count % ranks);
  if (kind != Kind::alltoallv) return;
  for (std::vector<int>* each : {&to_, &from_, &places_}) each->resize(ranks);
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    to_[peer] = static_cast<int>(pair_count(group.rank, static_cast<int>(peer)));
    from_[peer] = static_cast<int>(pair_count(static_cast<int>(peer), group.rank));
    places_[peer] = static_cast<int>(peer * count_);
  }
}

int Call::start(std::int64_t round) {
  round_ = round;
  const std::size_t all = by_rank() ? count_ * static_cast<std::size_t>(group_.ranks) : count_;
  std::fill_n(out_, std::max(all, count_), unset);
  for (std::size_t i = 0; i < (by_pair() ? all : count_); ++i)
    in_[i] = by_pair()              ? pair_value(round, group_.rank, static_cast<int>(i / count_), i % count_)
             : kind_ == Kind::reals ? std::bit_cast<std::int64_t>(real_value(round, group_.rank, i))
                                    : value(round, group_.rank, i);
  if (kind_ == Kind::bcast && group_.rank == root_) std::copy_n(in_, count_, out_);
  if (form_ != Form::persistent) return post();
  if (!std::exchange(fixed_, true))
    if (const int code = post(); code != MPI_SUCCESS) return code;
  return MPI_Start(&request_);
}

template <typename Blocking, typename Posted, typename Lasting, typename... Arguments>
int Call::in_form(Blocking blocking, Posted posted, Lasting lasting, Arguments... arguments) {
  if (form_ == Form::blocking) return blocking(arguments..., group_.comm);
  if (form_ == Form::nonblocking) return posted(arguments..., group_.comm, &request_);
  return lasting(arguments..., group_.comm, MPI_INFO_NULL, &request_);
}

int Call::post() {
  const int n = static_cast<int>(count_);
  const MPI_Datatype type = MPI_INT64_T;
  switch (kind_) {
    case Kind::allreduce:
      return in_form(MPI_Allreduce, MPI_Iallreduce, PERSISTENT(Allreduce), in_, out_, n, type, MPI_SUM);
    case Kind::reals:
      return in_form(MPI_Allreduce, MPI_Iallreduce, PERSISTENT(Allreduce), in_, out_, n, MPI_DOUBLE, MPI_SUM);
    case Kind::reduce:
      return in_form(MPI_Reduce, MPI_Ireduce, PERSISTENT(Reduce), in_, out_, n, type, MPI_SUM, root_);
    case Kind::bcast:
      return in_form(MPI_Bcast, MPI_Ibcast, PERSISTENT(Bcast), out_, n, type, root_);
    case Kind::gather:
      return in_form(MPI_Gather, MPI_Igather, PERSISTENT(Gather), in_, n, type, out_, n, type, root_);
    case Kind::scatter:
      return in_form(MPI_Scatter, MPI_Iscatter, PERSISTENT(Scatter), in_, n, type, out_, n, type, root_);
    case Kind::allgather:
      return in_form(MPI_Allgather, MPI_Iallgather, PERSISTENT(Allgather), in_, n, type, out_, n, type);
    case Kind::alltoall:
      return in_form(MPI_Alltoall, MPI_Ialltoall, PERSISTENT(Alltoall), in_, n, type, out_, n, type);
    case Kind::alltoallv:
      return in_form(MPI_Alltoallv, MPI_Ialltoallv, PERSISTENT(Alltoallv), in_, to_.data(), places_.data(), type, out_,
                     from_.data(), places_.data(), type);
    case Kind::scan:
      return in_form(MPI_Scan, MPI_Iscan, PERSISTENT(Scan), in_, out_, n, type, MPI_SUM);
    case Kind::barrier:
      return in_form(MPI_Barrier, MPI_Ibarrier, PERSISTENT(Barrier));
  }
  return MPI_ERR_INTERN;
}

// Element i of the result.
std::int64_t Call::awaited(std::size_t i) const {
  const int from = static_cast<int>(i / count_);
  const bool here = group_.rank == root_;
  switch (kind_) {
    case Kind::allreduce:
      return sum_of_values(round_, group_.ranks - 1, i);
    case Kind::reduce:
      return here ? sum_of_values(round_, group_.ranks - 1, i) : unset;
    case Kind::scan:
      return sum_of_values(round_, group_.rank, i);
    case Kind::bcast:
      return value(round_, root_, i);
    case Kind::gather:
      return here ? value(round_, from, i % count_) : unset;
    case Kind::allgather:
      return value(round_, from, i % count_);
    case Kind::scatter:
      return from == 0 ? pair_value(round_, root_, group_.rank, i) : unset;
    case Kind::alltoall:
      return pair_value(round_, from, group_.rank, i % count_);
    case Kind::alltoallv:
      return i % count_ < pair_count(from, group_.rank) ? pair_value(round_, from, group_.rank, i % count_) : unset;
    case Kind::barrier:
    case Kind::reals:
      break;
  }
  return unset;
}

bool Call::right() const {
  if (kind_ == Kind::reals) return same_bits_everywhere();
  const std::size_t all = by_rank() ? count_ * static_cast<std::size_t>(group_.ranks) : count_;
  for (std::size_t i = 0; i < all; ++i)
    if (out_[i] != awaited(i)) return false;
  return true;
}

// And near what the sum is: a few elements, the rest being the same arithmetic.
bool Call::same_bits_everywhere() const {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (std::size_t i = 0; i < count_; ++i) hash = (hash ^ static_cast<std::uint64_t>(out_[i])) * 0x100000001B3u;
  const std::array<std::uint64_t, 2> mine = {hash, ~hash};
  std::array<std::uint64_t, 2> least{};
  // Where the ranks have ceased to be together the error shows in the next call as well.
  if (MPI_Allreduce(mine.data(), least.data(), 2, MPI_UINT64_T, MPI_MIN, group_.comm) != MPI_SUCCESS) return true;
  bool near = true;
  for (std::size_t i = 0; i < count_; i += 97) {
    double sum = 0;
    for (int rank = 0; rank < group_.ranks; ++rank) sum += real_value(round_, rank, i);
    const double difference = std::bit_cast<double>(out_[i]) - sum;
    near = near && difference < 1e-9 && difference > -1e-9;
  }
  return near && least[0] == ~least[1];
}

// ---- The job ----

class Job {
 public:
  explicit Job(const Options& options) : options_(options), random_(options.seed) {
    MPI_Comm copy = MPI_COMM_NULL, part = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, world_.rank % 2, world_.rank, &part);
    groups_ = {world_};
    // Who leaves after an error on one communicator would let others, which know of none, wait for ever on another, or
    // in a call that is always the host's.
    if (options.errors != "return") groups_ = {world_, Group(copy), Group(part)};
    for (std::size_t kind = 0; kind < kind_names.size(); ++kind)
      if (options.errors != "return" || static_cast<Kind>(kind) != Kind::scan)
        kinds_.push_back(static_cast<Kind>(kind));
    for (const Form form : {Form::blocking, Form::nonblocking, Form::persistent})
      if (options.forms.find(form_name(form)) != std::string::npos) forms_.push_back(form);
    for (const Form form : forms_)
      for (int i = 0; i <= static_cast<int>(form); ++i) calls_.emplace_back(form, options.memory == "mpi");
    if (options.errors != "fatal")
      for (const Group& group : groups_) MPI_Comm_set_errhandler(group.comm, MPI_ERRORS_RETURN);
  }

  // The status of the process.
  int run() {
    say("begun");
    begin_ = MPI_Wtime();
    while (go_on())
      for (int i = 0; i < rounds_between_looks; ++i)
        if (!step()) return failed_status;
    return error_ == MPI_SUCCESS ? 0 : failed_status;
  }

  void say(const char* what) const {
    if (world_.rank == 0) std::printf("soak_job: %s\n", what), std::fflush(stdout);
  }
  long rounds() const { return round_; }

 private:
  static constexpr int rounds_between_looks = 8;

  static const char* form_name(Form form) {
    return form == Form::blocking ? "blocking" : form == Form::nonblocking ? "nonblocking" : "persistent";
  }

  // What rank 0's clock says: 0 to end, 1 to go on, 2 to do nothing for a while.
  bool go_on() {
    const double passed = MPI_Wtime() - begin_;
    int what = passed < options_.seconds;
    if (options_.idle_at >= 0 && passed >= options_.idle_at && !idled_) what = 2;
    called_ = MPI_Wtime();
    if (failed(MPI_Bcast(&what, 1, MPI_INT, 0, MPI_COMM_WORLD), "bcast of the clock")) return false;
    if (what == 2) {
      idled_ = true;
      say("idle");
      sleep_seconds(options_.idle_seconds);
      say("awake");
    }
    return what != 0;
  }

  // The calls of one form, all under way at once. False: it is over.
  bool step() {
    ++round_;
    const Form form = forms_[random_() % forms_.size()];
    std::vector<Call*> chosen;
    std::size_t first = 0;
    for (const Form each : forms_) {
      const std::size_t number = static_cast<std::size_t>(each) + 1;
      if (each == form)
        for (std::size_t i = 0; i < number; ++i) chosen.push_back(&calls_[first + i]);
      first += number;
    }
    for (Call* call : chosen)
      if (!call->fixed())
        call->become(groups_[random_() % groups_.size()], kinds_[random_() % kinds_.size()],
                     counts[random_() % counts.size()]);
    return make(chosen);
  }

  bool make(const std::vector<Call*>& chosen) {
    called_ = MPI_Wtime();
    bool over = false;
    // Persistent calls that are made may be started by each rank in an order of its own.
    std::vector<Call*> mine = chosen, started;
    if (chosen[0]->fixed())
      std::rotate(mine.begin(), mine.begin() + world_.rank % static_cast<int>(mine.size()), mine.end());
    for (Call* call : mine) {
      if (failed(call->start(round_), call->name()))
        over = true;
      else
        started.push_back(call);
    }
    for (Call* call : started) over = failed(call->wait(), call->name()) || over;
    if (over) return reclaim(chosen);
    for (const Call* call : chosen)
      if (!call->right()) accuse(call->name());
    return true;
  }

  bool failed(int code, const char* what) {
    if (code == MPI_SUCCESS) return false;
    error_ = code;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    std::fprintf(stderr, "soak_job: rank %d: error after %.2f s in %s: %s\n", world_.rank, MPI_Wtime() - called_, what,
                 text);
    return true;
  }

  // Whoever still writes after the error is seen.
  bool reclaim(const std::vector<Call*>& chosen) {
    for (Call* call : chosen) call->reclaim();
    sleep_seconds(0.5);
    for (const Call* call : chosen)
      if (!call->untouched()) accuse("a buffer that was written after its call's error");
    return false;
  }

  void accuse(const char* what) const {
    std::fprintf(stderr, "soak_job: rank %d: wrong bits in round %ld: %s\n", world_.rank, round_, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  Options options_;
  std::mt19937_64 random_;  // the same on all ranks
  Group world_{MPI_COMM_WORLD};
  std::vector<Group> groups_;
  std::vector<Kind> kinds_;
  std::vector<Form> forms_;
  std::vector<Call> calls_;
  double begin_ = 0, called_ = 0;
  long round_ = 0;
  int error_ = MPI_SUCCESS;
  bool idled_ = false;
};

// What the host connects at a rank's first message to another must not be what a fault hits: it is not ours.
void let_host_connect() {
  const auto enable = reinterpret_cast<decltype(&plait_set_enabled)>(dlsym(RTLD_DEFAULT, "plait_set_enabled"));
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> out(static_cast<std::size_t>(ranks)), in(out.size());
  if (enable != nullptr) enable(0);
  MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
  if (enable != nullptr) enable(1);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  MPI_Init(&argc, &argv);
  let_host_connect();
  Job job(options);
  const int status = job.run();
  if (status != 0 && options.errors == "abort") MPI_Abort(MPI_COMM_WORLD, status);
  const auto last_plan = reinterpret_cast<decltype(&plait_last_plan)>(dlsym(RTLD_DEFAULT, "plait_last_plan"));
  if (status == 0)
    job.say(("done: " + std::to_string(job.rounds()) + " rounds, plan " + (last_plan != nullptr ? last_plan() : "none"))
                .c_str());
  MPI_Finalize();
  return status;
}

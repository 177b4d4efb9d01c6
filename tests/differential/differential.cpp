// Compares Plait with the host MPI in one process: each collective call is made twice with the same input, once with
// Plait turned off and once with it turned on, and all of the memory around the receive buffers must come out alike.
//
// Calls are made in groups, back to back on each road, so that ranks run ahead of each other as they do in programs.
// Exit status: 0 all alike; 1 differences; 2 wrong command line; 3 Plait is not loaded; 4 a call did not end.
#include <execinfo.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/differential/binding.h"
#include "tests/differential/cases.h"
#include "tests/differential/completion.h"
#include "tests/differential/device.h"
#include "tests/differential/extras.h"
#include "tests/differential/options.h"
#include "tests/differential/parties.h"
#include "tests/differential/settled.h"

namespace plait::test {
namespace {

constexpr std::size_t default_side_bytes = std::size_t{4} << 20;
constexpr std::size_t large_side_bytes = std::size_t{32} << 20;
constexpr std::size_t group_bytes = std::size_t{24} << 20;  // of all buffers of a group; a larger case is alone
constexpr std::size_t longest_group = 8;
constexpr unsigned shortest_hang_limit_s = 60;
constexpr int most_failures = 4;  // that one rank prints
constexpr std::size_t most_threads = 8;

// ---- Calls that do not end, or crash ----

std::array<std::array<char, 400>, most_threads> doing{};  // by thread

void announce(const std::string& what, std::size_t thread = 0) {
  std::snprintf(doing[thread].data(), doing[thread].size(), "%s", what.c_str());
}

// The calling thread may hold any lock, so that nothing but write() is safe.
void say(const char* before) {
  for (const auto& text : doing) {
    if (text[0] == '\0') continue;
    const bool told = write(STDERR_FILENO, before, std::strlen(before)) > 0 &&
                      write(STDERR_FILENO, text.data(), std::strlen(text.data())) > 0;
    if (told) (void)!write(STDERR_FILENO, "\n", 1);
  }
}

// Ranks that share their processors with much else take so much longer.
unsigned hang_limit_s() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return shortest_hang_limit_s;
  const double processors = std::max(1u, std::thread::hardware_concurrency());
  constexpr double usual = 8;  // ranks of tests on a processor
  return static_cast<unsigned>(shortest_hang_limit_s * std::max(1.0, load / (usual * processors)));
}

void report_hang(int) {
  say("\ndifferential: no end of ");
  sleep(2);  // the other ranks are about to say what they wait for; the job ends with the first that exits
  _exit(4);
}

void report_crash(int signal_number) {
  say("\ndifferential: crash in ");
  std::array<void*, 40> frames;
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), static_cast<int>(frames.size())), STDERR_FILENO);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void watch_signals() {
  signal(SIGALRM, report_hang);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) signal(number, report_crash);
}

// ---- The run ----

class Run {
 public:
  Run(const Options& options, const Cases& cases, const std::vector<Party>& parties, const MixedTypes& mixed)
      : options_(options), cases_(cases), parties_(parties), mixed_(mixed), next_(options.first) {
    begin_s_ = MPI_Wtime();
  }

  void warm_up();
  void run_cases();
  void run_extras();
  int conclude();

 private:
  bool go_on();
  std::vector<Case> next_group();
  void run_group(const std::vector<Case>& group);
  void run_road(std::vector<std::unique_ptr<Trial>>& trials, Road road);
  void run_one(Trial& trial, Road road, std::size_t thread);
  void run_in_threads(std::vector<std::unique_ptr<Trial>>& trials);
  bool trials_as_expected();
  void start_all(std::vector<std::unique_ptr<Trial>>& trials);
  Form form(const Case& test) const;
  void complete_all(std::vector<std::unique_ptr<Trial>>& trials);
  void judge(const Trial& trial);
  void fail(const std::string& what, const std::string& why);

  const Options& options_;
  const Cases& cases_;
  const std::vector<Party>& parties_;
  const MixedTypes& mixed_;
  std::size_t next_;
  double begin_s_;
  double host_s_ = 0, plait_s_ = 0;  // in the calls of this rank
  int failures_ = 0;
  std::size_t expected_plan_runs_ = 0;  // cases of this rank
  std::uint64_t plans_seen_ = 0;        // a checksum of what ran on communicators of all ranks
  std::uint64_t answer_bits_ = 0;
  Settled settled_;
  std::map<std::string, std::size_t> plans_;  // cases by collective, plan and channels
};

int world_rank() {
  static const int rank = [] {
    int found = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &found);
    return found;
  }();
  return rank;
}

void Run::fail(const std::string& what, const std::string& why) {
  if (++failures_ > most_failures) return;
  std::fprintf(stderr, "differential: rank %d: %s: %s\n", world_rank(), what.c_str(), why.c_str());
}

// A communicator is set up at one of its first calls.
void Run::warm_up() {
  enable_plait(true);
  for (const Party& party : parties_)
    for (int i = 0; i < 4 && party.comm != MPI_COMM_NULL; ++i) {
      // What does not block runs on what blocking calls have set up, for any length when it was there before.
      MPI_Request request = MPI_REQUEST_NULL;
      if (options_.forms.front() != Form::blocking || options_.forms.size() > 1) MPI_Ibarrier(party.comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Barrier(party.comm);
    }
  enable_plait(false);
}

// Rank 0's clock and count and everyone's failures decide for all.
bool Run::go_on() {
  enable_plait(false);
  const bool enough = options_.enough > 0 && expected_plan_runs_ >= options_.enough;
  const bool late = world_rank() == 0 && (enough || MPI_Wtime() - begin_s_ > options_.budget_s);
  std::array<std::uint64_t, 4> state = {static_cast<std::uint64_t>(failures_), late ? 1u : 0u, plans_seen_,
                                        ~plans_seen_};
  MPI_Allreduce(MPI_IN_PLACE, state.data(), 4, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  // The largest and the smallest of all ranks' values.
  if (state[2] != ~state[3]) {
    fail("cases before " + std::to_string(next_), "the ranks ran different plans");
    return false;
  }
  if (state[0] > most_failures) return false;
  return options_.end ? next_ < *options_.end : state[1] == 0;
}

std::vector<Case> Run::next_group() {
  const std::size_t length = 1 + derive(options_.seed, 6, next_) % longest_group;
  std::vector<Case> group;
  std::size_t bytes = 0;
  while (group.size() < length && (!options_.end || next_ < *options_.end)) {
    const Case test = cases_.at(next_);
    // All ranks must come to the same groups, so that the size of the world stands for that of all parties.
    bytes += Trial::footprint(test, parties_[0]);
    if (bytes > group_bytes && !group.empty()) break;
    group.push_back(test);
    ++next_;
  }
  return group;
}

void Run::run_one(Trial& trial, Road road, std::size_t thread) {
  announce(describe(trial.test(), trial.party()) + (road == Road::host ? " on the host" : " with plait") + ", rank " +
               std::to_string(world_rank()) + " of the world",
           thread);
  trial.run(road, form(trial.test()));
  if (thread > 0) doing[thread][0] = '\0';
}

// Each thread makes the calls of its own communicators, in their order.
void Run::run_in_threads(std::vector<std::unique_ptr<Trial>>& trials) {
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < static_cast<std::size_t>(options_.threads); ++thread)
    threads.emplace_back([this, thread, &trials] {
      for (const auto& trial : trials)
        if (thread_of(trial->test().party, options_.threads) == thread) run_one(*trial, Road::plait, thread);
    });
}

void Run::run_road(std::vector<std::unique_ptr<Trial>>& trials, Road road) {
  const double begin_s = MPI_Wtime();
  if (road == Road::plait && options_.threads > 1)
    run_in_threads(trials);
  else
    for (const auto& trial : trials) run_one(*trial, road, 0);
  (road == Road::host ? host_s_ : plait_s_) += MPI_Wtime() - begin_s;
  if (road == Road::plait) start_all(trials);
}

// Persistent collectives: every rank in an order of its own, one by one or together.
void Run::start_all(std::vector<std::unique_ptr<Trial>>& trials) {
  std::vector<MPI_Request*> places;
  for (const auto& trial : trials)
    if (form(trial->test()) == Form::persistent && trial->request() != MPI_REQUEST_NULL)
      places.push_back(&trial->request());
  if (places.empty()) return;
  Random random(derive(options_.seed, 10, next_) + static_cast<std::uint64_t>(world_rank()));
  for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.below(i)]);
  std::vector<MPI_Request> handles;
  for (const MPI_Request* place : places) handles.push_back(*place);
  if (random.below(2) == 0)
    MPI_Startall(static_cast<int>(handles.size()), handles.data());
  else
    for (MPI_Request& handle : handles) MPI_Start(&handle);
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = handles[i];
}

// The same on all ranks. Plait leaves user-defined operators to the host in calls that do not block, and the host does
// not cope with all of theirs. MPICH 4.0 crashes in persistent ones of its own.
Form Run::form(const Case& test) const {
  if (test.op != nullptr && test.op->family == Family::user) return Form::blocking;
#ifdef MPICH_VERSION
  constexpr std::size_t surely_some = 16;  // ranks' counts may be lower
  const bool no_data = test.collective != Collective::barrier && test.count < surely_some;
  if (parties_[test.party].ranks < 2 || no_data || (test.op != nullptr && !test.op->required)) return Form::blocking;
#endif
  return options_.forms[derive(test.seed, 8) % options_.forms.size()];
}

void Run::complete_all(std::vector<std::unique_ptr<Trial>>& trials) {
  std::vector<MPI_Request*> requests;
  for (const auto& trial : trials)
    if (trial->request() != MPI_REQUEST_NULL) requests.push_back(&trial->request());
  if (!requests.empty()) {
    Random random(derive(options_.seed, 9, next_) + static_cast<std::uint64_t>(world_rank()));
    announce("completing the requests before case " + std::to_string(next_) + ", rank " + std::to_string(world_rank()));
    if (!complete(requests, random)) fail("cases before " + std::to_string(next_), "a request did not end well");
  }
}

void Run::run_group(const std::vector<Case>& group) {
  std::vector<std::unique_ptr<Trial>> trials;
  announce("preparing case " + std::to_string(group.front().number));
  for (const Case& test : group)
    if (const Party& party = parties_[test.party]; party.comm != MPI_COMM_NULL)
      if (!Trial::host_fails(test, party)) trials.push_back(std::make_unique<Trial>(test, party, mixed_));
  // What is called several times is compared with the host's result each time.
  const bool plait_first = !options_.settle && derive(group.front().seed, 7) % 2 == 0;
  for (const Road road : {plait_first ? Road::plait : Road::host, plait_first ? Road::host : Road::plait}) {
    run_road(trials, road);
    if (road == Road::plait) complete_all(trials);
  }
  for (const auto& trial : trials) {
    trial->finish();
    judge(*trial);
  }
}

// Whatever the number of chunks: "flat:BC.1(chain) x16" is "flat:BC.1(chain)".
bool is_plan(const std::string& name, const std::string& family) {
  return name == family || name.starts_with(family + " x");
}

void Run::judge(const Trial& trial) {
  const std::string what = describe(trial.test(), trial.party());
  const std::string plan =
      "plan \"" + trial.plan() + "\" over " + (trial.channels().empty() ? "no channel" : trial.channels());
  if (const auto failure = trial.failure()) fail(what, *failure + ", " + plan);
  settled_.note(trial);
  const bool host = trial.plan() == "host";
  if (!options_.reference) {
    if (options_.expect_host && !host) fail(what, "not the host's, but " + plan);
    if (!options_.expect_host && !options_.any_road && host && trial.must_be_accelerated())
      fail(what, "Plait handed it to the host");
  }
  if (is_plan(trial.plan(), options_.expected_plan)) ++expected_plan_runs_;
  if (trial.party().ranks == parties_[0].ranks)
    for (const char c : trial.plan()) plans_seen_ = derive(plans_seen_, static_cast<unsigned char>(c));
  ++plans_[std::string(name(trial.test().collective)) + " \"" + trial.plan() + "\" " + trial.channels()];
}

void Run::run_cases() {
  begin_s_ = MPI_Wtime();  // the budget is for cases, however long the set-up takes on a busy machine
  while (go_on()) {
    alarm(hang_limit_s());
    // Agreeing costs a call, so that a few groups go by between two.
    for (int i = 0; i < 4 && (!options_.end || next_ < *options_.end); ++i) run_group(next_group());
  }
}

void Run::run_extras() {
  if (!options_.extras || options_.end) return;
  alarm(hang_limit_s());
  announce("check of an inter-communicator");
  if (const std::string wrong = check_inter_communicator(); !wrong.empty()) fail("extras", wrong);
  announce("check of many communicators");
  if (const std::string wrong = check_many_communicators(); !wrong.empty()) fail("extras", wrong);
  announce("check for the same answer everywhere");
  if (const std::string wrong = check_same_answer(options_.seed, answer_bits_); !wrong.empty()) fail("extras", wrong);
}

// Whatever the other ranks see of their communicators, rank 0 is a member of most.
bool Run::trials_as_expected() {
  const Settled::Counts counts = settled_.counts();
  if (options_.settle && world_rank() == 0)
    std::printf(
        "%zu calls, %zu of them in trials; classes: %zu settled on plans, %zu on the host, %zu open, known from "
        "before: "
        "%zu plans, %zu host\n",
        counts.calls, counts.in_trials, counts.on_plans, counts.on_host, counts.open, counts.known_plans,
        counts.known_host);
  // What the network's ports leave no room for is never tried.
  const std::size_t tried = counts.on_plans + counts.on_host + counts.open;
  switch (options_.expected) {
    case Expected::settled:
      return counts.in_trials > 0 && counts.on_plans > 0 && counts.known_plans < tried;
    case Expected::known:
      return counts.known_plans > 0;
    case Expected::host:
      return counts.known_host > 0 && counts.known_plans == 0;
    default:
      return true;
  }
}

int Run::conclude() {
  std::array<int, 2> all = {failures_, expected_plan_runs_ > 0 ? 1 : 0};
  MPI_Allreduce(MPI_IN_PLACE, all.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, all.data() + 1, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  const bool plan_missing = !options_.expected_plan.empty() && all[1] == 0;
  int otherwise = trials_as_expected() ? 0 : 1;
  MPI_Bcast(&otherwise, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (world_rank() == 0) {
    if (otherwise != 0) std::printf("the trials did not come to what was expected\n");
    for (const auto& [label, count] : plans_) std::printf("  %8zu %s\n", count, label.c_str());
    if (answer_bits_ != 0) std::printf("answer %016llx\n", static_cast<unsigned long long>(answer_bits_));
    if (plan_missing) std::printf("no plan named \"%s\" ran\n", options_.expected_plan.c_str());
    std::printf(
        "seed %llu, %d ranks, cases %zu to %zu (%zu enumerated), %.1f s (host %.1f s, plait %.1f s), %d failures\n",
        static_cast<unsigned long long>(options_.seed), parties_[0].ranks, options_.first, next_ - 1,
        cases_.enumerated(), MPI_Wtime() - begin_s_, host_s_, plait_s_, all[0]);
  }
  return all[0] > 0 || plan_missing || otherwise != 0 ? 1 : 0;
}

int run_on(const std::vector<Basic>& basics, const std::vector<Party>& parties, const Options& options) {
  const MixedTypes mixed;
  const Cases cases(basics, parties,
                    {.collectives = options.collectives,
                     .max_bytes = options.large ? large_side_bytes : default_side_bytes,
                     .large = options.large,
                     .for_host = options.reference || options.expect_host || options.any_road,
                     .scenes = options.settle},
                    options.seed);
  Run run(options, cases, parties, mixed);
  alarm(hang_limit_s());
  announce("warm-up");
  run.warm_up();
  run.run_cases();
  run.run_extras();
  return run.conclude();
}

// One job for all of them: its start takes longer than a plan's cases.
int run_plans(const std::vector<Basic>& basics, const std::vector<Party>& parties, const Options& options) {
  int status = 0;
  Options one = options;
  for (const ForcedPlan& forced : options.plans) {
    if (world_rank() == 0) std::printf("--- %s\n", forced.plan.c_str());
    announce("forcing " + forced.plan);
    enable_plait(true);
    for (const Party& party : parties)
      if (party.comm != MPI_COMM_NULL) force_plan(party.comm, forced.plan);
    one.expected_plan = forced.plan;
    one.collectives = forced.collectives;
    ++one.seed;
    if (run_on(basics, parties, one) != 0) status = 1;
  }
  return status;
}

int run(const Options& options) {
  if (!options.reference && !plait_present()) {
    if (world_rank() == 0)
      std::fprintf(stderr, "differential: plait is not loaded: run with -x LD_PRELOAD=.../libplait.so\n");
    return 3;
  }
  enable_plait(false);
  if (options.mostly_device) set_host_buffers(16);
  if (!options.device.empty() && !load_device(options.device.c_str())) {
    std::fprintf(stderr, "differential: %s cannot be used\n", options.device.c_str());
    return 3;
  }
  watch_signals();
  set_memory_origin(options.memory, derive(options.seed, 2, static_cast<std::uint64_t>(world_rank())));
  std::vector<Basic> basics = make_basics();
  std::vector<Party> parties = make_parties();
  if (options.threads > 1) deal_out(parties, options.threads);
  const int status = options.plans.empty() ? run_on(basics, parties, options) : run_plans(basics, parties, options);
  free_parties(parties);
  free_basics(basics);
  alarm(0);
  return status;
}

}  // namespace
}  // namespace plait::test

int main(int argc, char** argv) {
  const auto silently = plait::test::parse_options(argc, argv, false);
  if (int level = 0; silently && silently->threads > 1)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  else
    MPI_Init(&argc, &argv);
  const auto options = plait::test::parse_options(argc, argv, plait::test::world_rank() == 0);
  const int status = options ? plait::test::run(*options) : 2;
  MPI_Finalize();
  return status;
}

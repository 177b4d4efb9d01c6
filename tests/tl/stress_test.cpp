// Jobs drawn at random, their ranks threads of this process: communicators over random hierarchies, some of them over a
// part of the ranks, and rows of collectives on them without a barrier in between, by any program or exchange there is,
// proven, with delays between and within the calls. Every rank's result is compared with the collective's definition.
// Under the thread sanitizer this also finds missing order between ranks.
//
// --gtest_random_seed replays a job's draws.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <thread>

#include "plan/lower/proof.h"
#include "tests/differential/random.h"
#include "tests/plan/all_candidates.h"
#include "tests/plan/problem.h"
#include "tests/tl/ranks.h"
#include "tl/engine.h"
#include "tl/shm/ring.h"

namespace plait::tl {
namespace {

using test::Random;

constexpr int most_ranks = 9;
constexpr int most_communicators = 3;
constexpr int calls_of_a_job = 24;
constexpr std::size_t pair_bytes = 4096;  // the longer messages do not fit a slot of it
constexpr auto patience = std::chrono::seconds(60);

void delay(Random& random) {
  if (random.one_in(8)) std::this_thread::yield();
  if (random.one_in(64)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
}

// A channel whose glances come late or find nothing.
class LateChannel final : public Channel {
 public:
  LateChannel(std::unique_ptr<Channel> inner, std::uint64_t seed) : inner_(std::move(inner)), random_(seed) {}
  ChannelKind kind() const override { return inner_->kind(); }
  int active() const override { return inner_->active(); }
  Result<bool> start(Transfer& transfer) override {
    delay(random_);
    return inner_->start(transfer);
  }
  Result<bool> progress(std::vector<Transfer*>& completed) override {
    if (random_.one_in(4)) return false;
    delay(random_);
    return inner_->progress(completed);
  }
  void abandon(const Status& cause) override { inner_->abandon(cause); }

 private:
  std::unique_ptr<Channel> inner_;
  Random random_;
};

// Some ranks of a job, in the order of their ranks here, and the memory of their channels.
struct Communicator {
  std::vector<int> members;  // ranks of the job
  Hierarchy hierarchy;
  SharedSegment memory;
  bool shares_buffers = false;                // ranks of a node reach each other's buffers
  std::size_t kernel_from = ~std::size_t{0};  // bytes from which on the kernel copies between them

  int ranks() const { return static_cast<int>(members.size()); }
  NodeMemory layout() const { return {hierarchy, pair_bytes}; }
  ShmChannelOptions node_options(const PeerBuffers* buffers) const {
    ShmChannelOptions options;
    options.single_copy = kernel_from != ~std::size_t{0};
    options.collective_single_copy_from = options.pair_single_copy_from = kernel_from;
    if (shares_buffers) options.buffers = buffers;
    return options;
  }
  std::optional<int> rank_of(int job_rank) const {
    const auto found = std::find(members.begin(), members.end(), job_rank);
    if (found == members.end()) return std::nullopt;
    return static_cast<int>(found - members.begin());
  }
};

struct StressCall {
  std::size_t communicator;
  Problem problem;
  std::string name;
  std::optional<LoweredPlan> plan;
};

// One rank's way into a communicator.
struct Membership {
  std::unique_ptr<ThreadBuffers> buffers;
  std::array<std::unique_ptr<Channel>, channel_kinds> channels;
  std::unique_ptr<Engine> engine;
};

void compose(const Reducer&, void* result, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Value a, b;
    std::memcpy(&a, static_cast<const char*>(left) + i * sizeof a, sizeof a);
    std::memcpy(&b, static_cast<const char*>(right) + i * sizeof b, sizeof b);
    a = composition_of(a, b);
    std::memcpy(static_cast<char*>(result) + i * sizeof a, &a, sizeof a);
  }
}

Reducer reducer_for(const Problem& problem) {
  if (problem.call.commutative) return make_reducer(Op::sum, Element::u32);
  Reducer reducer;
  reducer.apply = compose;
  reducer.element_bytes = sizeof(Value);
  return reducer;
}

class Job {
 public:
  explicit Job(std::uint64_t seed) : seed_(seed), random_(seed), ranks_(random_.between(2, most_ranks)) {
    for (int c = random_.between(1, most_communicators); c > 0; --c) draw_communicator(communicators_.empty());
    for (int k = 0; k < calls_of_a_job; ++k) draw_call(static_cast<Value>(k));
  }

  void run() {
    std::jthread watch([this](std::stop_token stop) { watch_progress(stop); });
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks_; ++rank) threads.emplace_back([this, rank] { run_rank(rank); });
  }

 private:
  void draw_communicator(bool of_all) {
    Communicator made;
    std::vector<Location> locations;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!of_all && random_.one_in(3)) continue;
      made.members.push_back(rank);
      Location& location = locations.emplace_back();
      location.host.low = random_.below(3);
      location.package = random_.between(0, 1);
      location.core = random_.between(0, 3);
    }
    if (made.members.size() < 2) return;
    made.hierarchy = Hierarchy::from_locations(locations);
    auto memory = SharedSegment::create(made.layout().bytes());
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    made.memory = std::move(*memory);
    made.shares_buffers = !random_.one_in(3);
    if (random_.one_in(2)) made.kernel_from = 1 + random_.below(4000);
    communicators_.push_back(std::move(made));
  }

  void draw_call(Value salt) {
    StressCall& made = calls_.emplace_back();
    made.communicator = random_.below(communicators_.size());
    const Hierarchy& hierarchy = communicators_[made.communicator].hierarchy;
    std::mt19937 engine(static_cast<std::uint32_t>(random_.next()));
    const auto collective = static_cast<Collective>(random_.below(planned_collectives));
    const bool commutative = !reduces(collective) || random_.one_in(2);
    made.problem = random_problem(collective, hierarchy.ranks(), commutative, engine);
    made.problem.salt = salt;
    if (made.problem.call.count > 0 && random_.one_in(6)) made.problem.call.count += 4000 + random_.below(9000);
    const Candidate candidate = draw_candidate(made.problem, hierarchy, engine);
    made.name = std::string(name(collective)) + " " + candidate.name + " on " + hierarchy.describe() + " root " +
                std::to_string(made.problem.call.root) + " count " + std::to_string(made.problem.call.count);
    auto plan = lower(candidate, collective, made.problem.call.root, commutative, hierarchy);
    ASSERT_TRUE(plan.ok()) << made.name << ": " << plan.status().message();
    const Status proof = prove(plan->semantics, plan->schedules, commutative);
    ASSERT_TRUE(proof.ok()) << made.name << ": " << proof.message();
    made.plan = std::move(*plan);
  }

  // Any program with any algorithms, or one of those that the planner would weigh.
  Candidate draw_candidate(const Problem& problem, const Hierarchy& hierarchy, std::mt19937& engine) {
    std::vector<Candidate> found;
    if (random_.one_in(2)) {
      found = all_candidates(problem.call.collective, hierarchy, problem.call.commutative, 3, 60, random_.between(1, 4),
                             engine);
    } else {
      Call call = problem.call;
      if (!problem.counts.empty()) call.counts = problem.counts.data();
      const Machine machine = default_machine();
      found = candidates(call, {.hierarchy = hierarchy, .machine = machine}, 8);
    }
    return found[random_.below(found.size())];
  }

  void run_rank(int job_rank) {
    Random random(test::derive(seed_, 1, static_cast<std::uint64_t>(job_rank)));
    std::vector<Membership> memberships;
    for (std::size_t c = 0; c < communicators_.size(); ++c) memberships.push_back(join(c, job_rank, random));
    for (const StressCall& call : calls_) {
      const std::optional<int> rank = communicators_[call.communicator].rank_of(job_rank);
      if (rank) run_call(call, *rank, *memberships[call.communicator].engine);
      ++ended_;
      for (std::size_t k = random.below(8); k > 0; --k) delay(random);
    }
  }

  Membership join(std::size_t c, int job_rank, Random& random) {
    Communicator& of = communicators_[c];
    const std::optional<int> self = of.rank_of(job_rank);
    Membership made;
    if (!self) return made;
    made.buffers = std::make_unique<ThreadBuffers>(random.next(), random.one_in(2) ? 0 : 3);
    Channels channels{};
    const bool late = random.one_in(2);
    for (const ChannelKind kind : {ChannelKind::shm, ChannelKind::mpi}) {
      const auto k = static_cast<std::size_t>(kind);
      const bool near = kind == ChannelKind::shm;
      auto channel = near ? of.layout().within_node(of.memory.data(), *self, of.node_options(made.buffers.get()))
                          : of.layout().among_all(of.memory.data(), *self);
      if (!channel.ok()) give_up("communicator " + std::to_string(c) + ": " + channel.status().message());
      made.channels[k] = std::move(*channel);
      if (late && made.channels[k] != nullptr)
        made.channels[k] = std::make_unique<LateChannel>(std::move(made.channels[k]), random.next());
      channels[k] = made.channels[k].get();
    }
    made.engine = std::make_unique<Engine>(channels, WaitPolicy{.yield = true});
    return made;
  }

  void run_call(const StressCall& call, int rank, Engine& engine) {
    Problem problem = call.problem;
    if (!problem.counts.empty()) problem.call.counts = problem.counts.data();
    SimulatedRank memory = make_rank(problem, *call.plan, rank);
    const std::vector<std::byte> input = memory.input;
    const Buffers buffers{{memory.base(Space::input), memory.base(Space::output), memory.base(Space::scratch)}};
    const Reducer reducer = reducer_for(problem);
    const Status status = engine.run(memory.schedule, buffers, &reducer, nullptr);
    if (!status.ok()) give_up(call.name + ", rank " + std::to_string(rank) + ": " + status.message());
    const std::vector<Value> wanted = expected(problem, rank);
    const bool right =
        wanted.empty() || std::memcmp(memory.output.data(), wanted.data(), wanted.size() * sizeof(Value)) == 0;
    EXPECT_TRUE(right) << call.name << ", rank " << rank << " has a wrong result (seed " << seed_ << ")";
    if (!memory.in_place) {
      EXPECT_EQ(memory.input, input) << call.name << ", rank " << rank << ": its input has changed";
    }
  }

  // The other ranks would wait for this one for ever.
  [[noreturn]] void give_up(const std::string& problem) const {
    std::fprintf(stderr, "%s (job seed %llu)\n", problem.c_str(), static_cast<unsigned long long>(seed_));
    std::fflush(nullptr);
    std::_Exit(1);
  }

  void watch_progress(std::stop_token stop) const {
    auto since = std::chrono::steady_clock::now();
    for (std::size_t before = 0; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      const std::size_t ended = ended_;
      const auto now = std::chrono::steady_clock::now();
      if (ended != before) since = now;
      before = ended;
      if (now - since < patience) continue;
      give_up("no rank ends a call any more; the first that not all " + std::to_string(ranks_) +
              " ranks ended is at or before call " +
              calls_[std::min(ended / static_cast<std::size_t>(ranks_), calls_.size() - 1)].name);
    }
  }

  std::uint64_t seed_;
  Random random_;
  int ranks_;
  std::vector<Communicator> communicators_;
  std::vector<StressCall> calls_;
  std::atomic<std::size_t> ended_ = 0;
};

std::uint64_t seed() {
  const auto given = static_cast<std::uint64_t>(::testing::GTEST_FLAG(random_seed));
  return given != 0 ? given : std::random_device()() % 99999 + 1;
}

// Two jobs at a time, as two threads of a program use two communicators.
TEST(Stress, RandomJobsGiveTheRightNumbers) {
  const std::uint64_t drawn = seed();
  std::printf("seed %llu (--gtest_random_seed replays it)\n", static_cast<unsigned long long>(drawn));
  constexpr std::uint64_t rounds = 40;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Job first(test::derive(drawn, round, 1)), second(test::derive(drawn, round, 2));
    if (HasFatalFailure()) return;
    {
      std::jthread other([&] { second.run(); });
      first.run();
    }
    ASSERT_FALSE(HasFailure()) << "seed " << drawn << ", round " << round;
  }
}

}  // namespace
}  // namespace plait::tl

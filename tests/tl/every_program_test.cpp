// Every program of every uniform hierarchy of up to three levels with a given number of ranks: lowered with drawn
// algorithms and chunks, proven, and run by the engine of every rank over shared memory with real integers. Each rank's
// result must be the plain sum, bit for bit.
//
//   test_every_program RANKS [SEED]       the seed is drawn where none is given, and printed
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "plan/choose/candidate.h"
#include "plan/lower/lowering.h"
#include "plan/lower/proof.h"
#include "plan/synthesis/enumeration.h"
#include "tests/differential/random.h"
#include "tests/plan/factorisations.h"
#include "tests/tl/ranks.h"
#include "tl/engine.h"
#include "tl/shm/ring.h"

namespace plait::tl {
namespace {

using test::Random;
using Bytes = std::vector<std::byte>;

constexpr int most_levels_here = 3;
constexpr std::size_t programs_of_levels[] = {0, 3, 47, 1395};  // P2.md; none is longer than twice the levels
constexpr std::size_t pair_bytes = 4096;                        // the longer messages do not fit a slot of it
constexpr int most_ranks_of_a_node = 12;
constexpr int most_reported = 10;
constexpr auto patience = std::chrono::seconds(60);  // within which some rank ends some program
constexpr std::byte untouched{0xee};

// One program, as it is run: what the ranks share of it.
struct Trial {
  Candidate candidate;
  std::optional<LoweredPlan> plan;  // nothing: it could not be lowered or proven
  Placement placement;
  Element element = Element::i32;
  std::vector<Bytes> inputs;  // by rank
  Bytes expected;

  std::string describe() const {
    return text(candidate.program) + " x" + std::to_string(candidate.chunks) + ", " +
           std::to_string(placement.vector_elements) + (element == Element::i32 ? " int32" : " int64") +
           (placement.in_place ? " in place" : "");
  }
};

// Draws an algorithm for every instruction from those that fit its groups.
void draw_algorithms(Program& program, const Grid& grid, Random& random) {
  for (Instruction& instruction : program.instructions) {
    do instruction.algorithm = all_algorithms[random.below(all_algorithms.size())];
    while (!fits(instruction, grid));
  }
}

// Integers of any size, and their sum modulo the element's.
void draw_vectors(Trial& trial, int ranks, Random& random) {
  const std::size_t bytes = trial.placement.element_bytes, count = trial.placement.vector_elements;
  std::vector<std::uint64_t> sums(count);
  for (int rank = 0; rank < ranks; ++rank) {
    Bytes& input = trial.inputs.emplace_back(count * bytes);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t value = random.next();
      sums[i] += value;
      std::memcpy(&input[i * bytes], &value, bytes);  // little-endian: the low bytes
    }
  }
  trial.expected.resize(count * bytes);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&trial.expected[i * bytes], &sums[i], bytes);
}

std::string element_text(const Bytes& vector, std::size_t index, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, &vector[index * bytes], bytes);
  return std::to_string(bytes == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value));
}

// What one hierarchy's ranks, one thread each, have in common.
class Job {
 public:
  Job(const std::vector<int>& cardinalities, bool one_node, std::uint64_t seed)
      : hierarchy_(one_node ? node_of(cardinalities) : Hierarchy::uniform_of(cardinalities)),
        memory_(hierarchy_, pair_bytes),
        grid_(hierarchy_, GridKind::full, -1),
        seed_(seed),
        programs_(list_programs(reduction_task(levels()), 2 * levels(), SIZE_MAX)),
        batch_(static_cast<std::size_t>(ranks())),
        meeting_(ranks()),
        ended_(static_cast<std::size_t>(ranks())) {
    if (one_node) salt_ = 1;
    for (const int cardinality : cardinalities) salt_ = salt_ * 32 + static_cast<std::uint64_t>(cardinality);
  }

  // The number of failures; they are described on standard error.
  int run() {
    const auto begin = std::chrono::steady_clock::now();
    std::jthread watch([this](std::stop_token stop) { watch_progress(stop); });
    failures_ += run_threads(ranks(), memory_.bytes(), [this](int rank, SharedSegment segment, const auto&) {
      return run_rank(rank, segment.data());
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %zu programs, %.1f s\n", hierarchy_.describe().c_str(), programs_.size(), seconds.count());
    const std::size_t all = programs_of_levels[levels()];
    if (programs_.size() != all)
      report("lists " + std::to_string(programs_.size()) + " programs, not " + std::to_string(all));
    const std::size_t results = all * static_cast<std::size_t>(ranks());
    if (right_results_ != results)
      report(std::to_string(right_results_) + " right results, not " + std::to_string(results));
    return failures_;
  }

 private:
  int ranks() const { return hierarchy_.ranks(); }
  int levels() const { return static_cast<int>(hierarchy_.levels().size()); }

  // All levels within a node.
  static Hierarchy node_of(const std::vector<int>& cardinalities) {
    constexpr std::int32_t Location::*levels[] = {&Location::package, &Location::numa, &Location::core};
    int ranks = 1;
    for (const int cardinality : cardinalities) ranks *= cardinality;
    std::vector<Location> locations(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      int stride = ranks;
      for (std::size_t level = 0; level < cardinalities.size(); ++level)
        locations[static_cast<std::size_t>(rank)].*levels[level] = rank / (stride /= cardinalities[level]);
    }
    return Hierarchy::from_locations(locations);
  }

  // The ranks prepare as many programs as they are, one each, then all of them run them all.
  std::string run_rank(int rank, std::byte* memory) {
    const ThreadBuffers buffers(seed_, 2);
    ShmChannelOptions options;
    if (!Random(seed_ + salt_).one_in(3)) options.buffers = &buffers;
    auto near = memory_.within_node(memory, rank, options), far = memory_.among_all(memory, rank);
    for (const auto* made : {&near, &far})
      if (!made->ok()) give_up(made->status().message());
    Channels channels{};
    channels[index_of(ChannelKind::shm)] = near->get();
    channels[index_of(ChannelKind::mpi)] = far->get();
    Engine engine(channels, {.yield = true});
    for (std::size_t first = 0; first < programs_.size(); first += batch_.size()) {
      const std::size_t mine = first + static_cast<std::size_t>(rank);
      const std::size_t end = std::min(first + batch_.size(), programs_.size());
      if (mine < end) batch_[static_cast<std::size_t>(rank)] = prepare(mine);
      meeting_.arrive_and_wait();
      for (std::size_t i = first; i < end; ++i) run_trial(batch_[i - first], rank, engine);
      meeting_.arrive_and_wait();
    }
    return {};
  }

  Trial prepare(std::size_t index) {
    Random random(test::derive(seed_, salt_, index));
    Trial trial;
    trial.candidate.grid = GridKind::full;
    trial.candidate.program = programs_.program(index);
    draw_algorithms(trial.candidate.program, grid_, random);
    trial.candidate.chunks = random.between(1, 3);
    trial.element = random.one_in(2) ? Element::i32 : Element::i64;
    constexpr std::size_t lengths[] = {37, 149, 1021};  // odd: blocks of unequal sizes, of the first many empty ones
    trial.placement = {.element_bytes = extent(trial.element),
                       .vector_elements = lengths[random.below(std::size(lengths))],
                       .in_place = index % 2 == 1};
    draw_vectors(trial, ranks(), random);
    auto plan = lower(trial.candidate, Collective::allreduce, 0, true, hierarchy_);
    const Status status = plan.ok() ? prove(plan->semantics, plan->schedules, true) : plan.status();
    if (status.ok())
      trial.plan = std::move(*plan);
    else
      report(trial.describe() + (plan.ok() ? ": not proven: " : ": not lowered: ") + status.message());
    return trial;
  }

  void run_trial(const Trial& trial, int rank, Engine& engine) {
    const auto r = static_cast<std::size_t>(rank);
    if (!trial.plan) return void(++ended_[r]);
    const BoundSchedule schedule = bind(trial.plan->schedules[r], trial.plan->semantics, rank, trial.placement);
    const std::size_t bytes = trial.expected.size();
    Bytes input = trial.inputs[r], output(bytes + 1, untouched), scratch(schedule.scratch_bytes + 1, untouched);
    if (trial.placement.in_place) std::copy(input.begin(), input.end(), output.begin());
    const Buffers buffers{{trial.placement.in_place ? output.data() : input.data(), output.data(), scratch.data()}};
    const Reducer reducer = make_reducer(Op::sum, trial.element);
    const Status status = engine.run(schedule, buffers, &reducer, nullptr);
    if (!status.ok()) give_up(trial.describe() + ", rank " + std::to_string(rank) + ": " + status.message());
    ++ended_[r];
    const bool beyond = output.back() != untouched || scratch.back() != untouched;
    output.resize(bytes);
    const std::string problem = output != trial.expected   ? first_wrong(trial, output)
                                : input != trial.inputs[r] ? "its input has changed"
                                : beyond                   ? "wrote beyond its memory"
                                                           : "";
    if (problem.empty())
      ++right_results_;
    else
      report(trial.describe() + ", rank " + std::to_string(rank) + ": " + problem);
  }

  static std::string first_wrong(const Trial& trial, const Bytes& found) {
    const std::size_t bytes = trial.placement.element_bytes;
    std::size_t i = 0;
    while (std::memcmp(&found[i * bytes], &trial.expected[i * bytes], bytes) == 0) ++i;
    return "element " + std::to_string(i) + " is " + element_text(found, i, bytes) + ", expected " +
           element_text(trial.expected, i, bytes);
  }

  void report(const std::string& problem) {
    if (failures_++ < most_reported) print(problem);
  }

  void print(const std::string& problem) {
    const std::lock_guard lock(printing_);
    std::fprintf(stderr, "%s: %s (seed %llu)\n", hierarchy_.describe().c_str(), problem.c_str(),
                 static_cast<unsigned long long>(seed_));
  }

  // The other ranks would wait for this one for ever.
  [[noreturn]] void give_up(const std::string& problem) {
    print(problem);
    std::fflush(nullptr);
    std::_Exit(1);
  }

  void watch_progress(std::stop_token stop) {
    auto since = std::chrono::steady_clock::now();
    for (std::size_t before = 0; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      const auto now = std::chrono::steady_clock::now();
      std::size_t ended = 0;
      for (const auto& of_rank : ended_) ended += of_rank;
      if (ended != before) since = now;
      before = ended;
      if (now - since > patience) give_up(stalled());
    }
  }

  // The last rank's program. All ranks are in one batch.
  std::string stalled() const {
    const auto last = std::min_element(ended_.begin(), ended_.end());
    const std::size_t index = *last;
    const std::string where = ", rank " + std::to_string(last - ended_.begin()) + ": no rank ends a program any more";
    return "program " + std::to_string(index) + ", " + batch_[index % batch_.size()].describe() + where;
  }

  Hierarchy hierarchy_;
  NodeMemory memory_;
  Grid grid_;
  std::uint64_t seed_, salt_ = 0;
  ProgramList programs_;
  std::vector<Trial> batch_;  // each rank writes its own, all read all between two meetings
  std::barrier<> meeting_;
  std::mutex printing_;
  std::atomic<int> failures_ = 0;
  std::vector<std::atomic<std::size_t>> ended_;  // by rank: programs that it has run or passed over
  std::atomic<std::size_t> right_results_ = 0;
};

int run_all(int ranks, std::uint64_t seed) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the seed is seen even where a test crashes
  std::printf("%d ranks, seed %llu\n", ranks, static_cast<unsigned long long>(seed));
  int failures = 0;
  for (const auto& cardinalities : factorisations(ranks, most_levels_here)) {
    failures += Job(cardinalities, false, seed).run();
    if (ranks <= most_ranks_of_a_node) failures += Job(cardinalities, true, seed).run();
  }
  if (failures > 0) std::fprintf(stderr, "%d failures\n", failures);
  return failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace plait::tl

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  if (argc > 3 || ranks < 2 || ranks > 24) {
    std::fprintf(stderr, "usage: %s RANKS [SEED]   (2 to 24 ranks)\n", argv[0]);
    return 2;
  }
  return plait::tl::run_all(ranks, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device{}());
}

// What setting up a communicator of many ranks takes: the ranks are threads of one process, which meet as the ranks of
// a job do and then make one call of each collective, whose results are checked. Processor time and memory a rank; a
// table for docs/scale.md.
//
//   build/release/scale_setup [--per-node R] [--channels A,B] [--calls all|short|none] [--flat-ranks N] [--splits N]
//     RANKS...
//
// --splits: instead of that the ranks are split N times into communicators of 64: each is set up, makes one all-reduce
// whose result is checked, and is gone. In ten parts, so that what grows is seen; times are those of one split then.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/reduction.h"
#include "perf/counted_heap.h"
#include "runtime/job/job.h"
#include "runtime/team/set_up.h"
#include "tests/runtime/in_process_oob.h"

namespace {

using namespace plait;
using namespace plait::runtime;

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

struct Options {
  int per_node = 64;
  std::vector<std::string> channels = {"shm", "mpi"};
  std::string calls = "all";
  int splits = 0, flat_ranks = Config().flat_ranks;
  std::vector<int> ranks;
};

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream text(list);
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  return words;
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--per-node" && more)
      options.per_node = std::atoi(argv[++i]);
    else if (word == "--channels" && more)
      options.channels = words_of(argv[++i]);
    else if (word == "--calls" && more)
      options.calls = argv[++i];
    else if (word == "--flat-ranks" && more)
      options.flat_ranks = std::atoi(argv[++i]);
    else if (word == "--splits" && more)
      options.splits = std::atoi(argv[++i]);
    else
      options.ranks.push_back(std::atoi(argv[i]));
  }
  if (options.ranks.empty()) options.ranks = {64, 256, 512, 1024};
  return options;
}

double own_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double wall_seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What the process holds besides its heap.
struct Holdings {
  double resident_mib = 0;
  long mappings = 0, descriptors = 0;
};

Holdings holdings() {
  Holdings now;
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  now.resident_mib = static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  std::ifstream maps("/proc/self/maps");
  now.mappings = std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  now.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  return now;
}

TeamRequest request_of(int rank, int per_node) {
  topo::Location location;
  location.host = {1, static_cast<std::uint64_t>(rank / per_node) + 1};
  location.machine = 1;
  location.cores_allowed = 1;
  location.process = static_cast<std::int32_t>(getpid());
  TeamRequest request;
  request.location = location;
  return request;
}

// One of MPI's collectives on numbers, by a rank of `ranks`: what it gives and what it gets.
struct Numbers {
  std::vector<std::uint64_t> in, out, expected;
};

Numbers numbers_of(Collective collective, int rank, int ranks, int root, std::size_t count) {
  const auto n = static_cast<std::uint64_t>(ranks), me = static_cast<std::uint64_t>(rank);
  const bool is_root = rank == root;
  const auto list = [](std::size_t length, auto&& at) {
    std::vector<std::uint64_t> numbers(length);
    for (std::size_t i = 0; i < length; ++i) numbers[i] = at(i);
    return numbers;
  };
  const auto plain = [me](std::size_t i) { return me + i; };
  const auto sum = [n](std::size_t i) { return n * (n - 1) / 2 + n * i; };
  const auto by_rank = [count](std::size_t i) { return i / count * 7 + i % count; };
  switch (collective) {
    case Collective::barrier:
      return {};
    case Collective::bcast: {
      const auto told = list(count, [](std::size_t i) { return 3 * i + 1; });
      return {is_root ? told : list(count, [](std::size_t) { return std::uint64_t{0}; }), {}, told};
    }
    case Collective::reduce:
      return {list(count, plain), list(is_root ? count : 0, plain), list(is_root ? count : 0, sum)};
    case Collective::allreduce:
      return {list(count, plain), list(count, plain), list(count, sum)};
    case Collective::allgather:
    case Collective::gather: {
      const std::size_t got = collective == Collective::allgather || is_root ? n * count : 0;
      return {list(count, [&](std::size_t i) { return me * 7 + i; }), list(got, plain), list(got, by_rank)};
    }
    case Collective::scatter:
      return {list(is_root ? n * count : 0, by_rank), list(count, plain),
              list(count, [&](std::size_t i) { return me * 7 + i; })};
    case Collective::reduce_scatter_block:
      return {list(n * count, plain), list(count, plain),
              list(count, [&](std::size_t i) { return sum(me * count + i); })};
    default:  // alltoall
      return {list(n * count, [&](std::size_t i) { return me * n + i / count; }), list(n * count, plain),
              list(n * count, [&](std::size_t i) { return i / count * n + me; })};
  }
}

// Why it is wrong, or nothing.
std::string run(Team& team, Collective collective, int rank, int ranks, std::size_t count) {
  static const Reducer sum = make_reducer(Op::sum, Element::u64);
  const int root = ranks / 3;
  Numbers numbers = numbers_of(collective, rank, ranks, root, count);
  const Call call{.collective = collective,
                  .root = root,
                  .count = collective == Collective::barrier ? 0 : count,
                  .element_bytes = sizeof(std::uint64_t),
                  .commutative = true};
  const PreparedCall& prepared = team.schedules.find({.call = call, .candidate = planners_candidate});
  if (!prepared.accelerated) return std::string("not planned: ") + prepared.reason;
  std::vector<std::byte> scratch(prepared.schedule.scratch_bytes);
  const bool in_one = collective == Collective::bcast;
  Buffers buffers;
  auto* in = reinterpret_cast<std::byte*>(numbers.in.data());
  buffers.base = {in, in_one ? in : reinterpret_cast<std::byte*>(numbers.out.data()), scratch.data()};
  const Status status = team.engine.run(prepared.schedule, buffers, &sum, nullptr);
  if (!status.ok()) return status.message();
  return (in_one ? numbers.in : numbers.out) == numbers.expected ? "" : "a wrong result";
}

// An all-to-all of so many ranks is as many messages squared.
constexpr int most_exchanging_ranks = 1024;

std::vector<Collective> collectives(int ranks) {
  std::vector<Collective> all = {
      Collective::barrier,   Collective::bcast,  Collective::reduce,  Collective::allreduce,
      Collective::allgather, Collective::gather, Collective::scatter, Collective::reduce_scatter_block};
  if (ranks <= most_exchanging_ranks) all.push_back(Collective::alltoall);
  return all;
}

// What all ranks together spend in each part: rank 0 reads the clocks and the heap between two meetings, and prints a
// row; the others wait. Work that is done several times: the times are those of once.
class Book {
 public:
  explicit Book(int ranks) : own_(static_cast<std::size_t>(ranks)) {}
  template <class Work>
  std::string enter(Oob& oob, const std::string& name, Work&& work, int times = 1) {
    const auto me = static_cast<std::size_t>(oob.rank());
    if (!oob.meet("begin").ok()) return "did not begin";
    if (me == 0) begin();
    if (!oob.meet("begin").ok()) return "did not begin";
    const double before = own_seconds();
    std::string wrong = work();
    own_[me] = own_seconds() - before;
    if (!wrong.empty()) oob.withdraw();  // the others may be steps behind: they hear of it in the next
    if (!wrong.empty()) return name + ": " + wrong;
    if (!oob.meet("end").ok()) return "did not end";
    if (me == 0) end(name, times);
    return oob.meet("end").ok() ? "" : "did not end";
  }

 private:
  void begin() {
    wall_ = wall_seconds();
    heap_ = heap_now();
    forget_heap_peak();
  }
  void end(const std::string& name, int times) {
    const double ranks = static_cast<double>(own_.size());
    const auto kib_a_rank = [ranks](std::int64_t bytes) { return static_cast<double>(bytes) / 1024 / ranks; };
    const double own = std::accumulate(own_.begin(), own_.end(), 0.0), wall = wall_seconds() - wall_;
    const Holdings held = holdings();
    std::printf("| %s | %.3f | %.3f | %.1f | %.1f | %.1f | %ld | %ld |\n", name.c_str(), own * 1e3 / ranks / times,
                wall / times, kib_a_rank(heap_now() - heap_), kib_a_rank(heap_peak() - heap_), held.resident_mib,
                held.mappings, held.descriptors);
    std::fflush(stdout);
  }
  std::vector<double> own_;
  double wall_ = 0;
  std::int64_t heap_ = 0;
};

constexpr int split_ranks = 64, split_parts = 10;

// Of neighbours: the parts of ranks that are threads have no messages.
std::string split_once(Oob& oob, const Options& options) {
  std::unique_ptr<Oob> part;
  if (Status status = oob.part(oob.rank() / split_ranks, part, "split"); !status.ok()) return status.message();
  const int member = part->rank();
  auto made = set_up(request_of(oob.rank(), options.per_node), std::move(part), nullptr);
  if (!made.ok()) return made.status().message();
  return run(**made, Collective::allreduce, member, split_ranks, 1);
}

std::string split(Oob& oob, Book& book, const Options& options) {
  if (oob.ranks() % split_ranks != 0) return "splits need a multiple of 64 ranks";
  const int rounds = std::max(options.splits / split_parts, 1);
  for (int part = 0; part < split_parts; ++part) {
    const std::string name =
        "splits " + std::to_string(part * rounds + 1) + " to " + std::to_string((part + 1) * rounds);
    std::string wrong = book.enter(
        oob, name,
        [&]() -> std::string {
          for (int i = 0; i < rounds; ++i)
            if (std::string why = split_once(oob, options); !why.empty()) return why;
          return {};
        },
        rounds);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::string go(Oob& oob, InProcessJob& job, Book& book, const Options& options) {
  if (options.splits > 0) return split(oob, book, options);
  const int rank = oob.rank(), ranks = oob.ranks();
  std::unique_ptr<Team> team;
  std::string wrong = book.enter(oob, "set-up", [&]() -> std::string {
    auto made = set_up(request_of(rank, options.per_node), job.oob(rank), nullptr);
    if (!made.ok()) return made.status().message();
    team = std::move(*made);
    return {};
  });
  if (!wrong.empty() || options.calls == "none") return wrong;
  for (const std::size_t count : {std::size_t{1}, std::size_t{1024}})
    for (const Collective collective : collectives(ranks)) {
      const bool gathers =
          collective != Collective::bcast && collective != Collective::reduce && collective != Collective::allreduce;
      if (count > 1 && (options.calls == "short" || gathers)) continue;
      const std::string name = std::string(plan::name(collective)) + " of " + std::to_string(count * 8) + " B";
      for (const char* which : {"first ", "second "})
        if (wrong = book.enter(oob, which + name, [&] { return run(*team, collective, rank, ranks, count); });
            !wrong.empty())
          return wrong;
    }
  return book.enter(oob, "end", [&]() -> std::string {
    team.reset();
    return {};
  });
}

bool measure(int ranks, const Options& options) {
  Job state;
  state.config.channels = options.channels;
  state.config.flat_ranks = options.flat_ranks;
  state.config.host_when_faster = false;
  state.config.trial = TrialMode::none;
  state.ranks_on_machine = ranks;
  state.most_mapped_bytes *= static_cast<std::size_t>(ranks);  // they are one process
  runtime::detail::job = &state;
  std::printf("\n%d ranks, %d a node\n\n", ranks, options.per_node);
  std::printf(
      "| part | processor ms a rank | wall s | kept KiB a rank | peak KiB a rank | resident MiB | mappings | "
      "descriptors |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
  std::fflush(stdout);
  Book book(ranks);
  std::string wrong;
  {
    InProcessJob job(ranks);
    job.bring_messages(1, 0);
    wrong = job.run([&](Oob& oob) { return go(oob, job, book, options); });
  }
  runtime::detail::job = nullptr;
  if (!wrong.empty()) std::printf("\nfailed: %s\n", wrong.c_str());
  std::fflush(stdout);
  return wrong.empty();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_setattr_default_np(&attributes);
  bool well = true;
  for (const int ranks : options.ranks) well &= measure(ranks, options);
  return well ? 0 : 1;
}

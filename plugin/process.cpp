#include "plugin/process.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "plait/plait.h"
#include "plan/plan_file.h"
#include "plugin/attendance.h"
#include "plugin/axes.h"
#include "plugin/communicator.h"
#include "plugin/host.h"
#include "plugin/layout.h"
#include "plugin/learned.h"
#include "plugin/made_communicator.h"
#include "plugin/nonblocking.h"
#include "plugin/overlap_counts.h"
#include "plugin/overlap_setting.h"
#include "plugin/persistent.h"
#include "plugin/progress_thread.h"
#include "plugin/report.h"
#include "plugin/reshard.h"
#include "plugin/shared_memory.h"
#include "plugin/trace_file.h"
#include "plugin/tuning_table.h"
#include "plugin/types.h"
#include "tl/shm/doorbell.h"
#include "tl/trace.h"
#include "topo/discovery.h"

namespace plait::plugin {

constinit std::atomic<Phase> detail::phase{Phase::before};
constinit std::atomic<bool> detail::enabled{true};
constinit std::atomic<bool> detail::reporting{false};
constinit std::atomic<bool> detail::threaded{false};
thread_local constinit LastCall detail::last_call;

std::uint64_t hash_text(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

namespace {

constinit Process* settings = nullptr;  // never destroyed: calls may come until the process ends
constinit std::vector<std::string> preferred;

// Of everything that decides which road a call takes. Where the report goes and how much is said may differ.
std::uint64_t fingerprint(const Config& config) {
  std::string text = plait_version();
  const auto add = [&](std::string_view value) { text.append("|").append(value); };
  add(config.plan);
  for (const std::string& channel : config.channels) add(channel);
  add(config.rails);
  add(config.ucx_transports);
  add(config.single_copy);
  for (const std::size_t value :
       {config.single_copy_threshold, config.segment_bytes, config.chunk_bytes,
        static_cast<std::size_t>(config.setup_calls), static_cast<std::size_t>(config.host_when_faster),
        static_cast<std::size_t>(config.trial), static_cast<std::size_t>(config.trial_after)})
    add(std::to_string(value));
  return hash_text(text);
}

// What each rank of MPI_COMM_WORLD tells the others at the start.
struct Introduction {
  HostId host;
  std::uint64_t machine;
  std::uint64_t fingerprint;
  std::uint64_t table;    // OwnTable::hash
  std::uint64_t overlap;  // OwnOverlapPlan::hash
  std::uint32_t disabled, reporting, tracing, concurrent;
};

std::vector<int> number_nodes(const std::vector<Introduction>& ranks) {
  std::map<HostId, int> numbers;
  std::vector<int> nodes;
  nodes.reserve(ranks.size());
  for (const Introduction& rank : ranks)
    nodes.push_back(numbers.try_emplace(rank.host, static_cast<int>(numbers.size())).first->second);
  return nodes;
}

// What connects ranks of different jobs compares fingerprints (bootstrap.cpp).
void take_table(Process& process, const OwnTable& own) {
  process.table = own.table;
  process.fingerprint ^= own.hash;
}

void take_overlap(Process& process, const OwnOverlapPlan& own) {
  process.overlap = own.plan;
  process.learns_overlap = own.learned;
  process.fingerprint ^= own.hash;
}

void turn_off(Process& process, const char* reason) { process.off_reason = reason; }

// What one process has of a file that all ranks are to have alike.
struct OwnFile {
  const char* variable;
  std::uint64_t hash, none, refused;
  const std::string& refusal;
};

// All take the file or none does. Where some rank was told of one and cannot use it, the first such rank says why.
bool same_file(const OwnFile& own, const std::vector<Introduction>& all, std::uint64_t Introduction::*hash,
               int world_rank) {
  const auto first_with = [&](std::uint64_t wanted) { return std::ranges::find(all, wanted, hash); };
  const auto refusing = first_with(own.refused), without = first_with(own.none);
  const bool same = std::ranges::all_of(all, [&](const Introduction& rank) { return rank.*hash == all.front().*hash; });
  if (same && own.hash != own.refused) return true;
  if (refusing != all.end()) {
    if (world_rank == refusing - all.begin()) warn(own.refusal);
  } else if (world_rank == 0) {
    warn(std::string(own.variable) + " is not used: " +
         (without != all.end() ? "rank " + std::to_string(without - all.begin()) + " was not given one"
                               : std::string("the files differ between ranks")));
  }
  return false;
}

// What the files that the user named say.
struct OwnFiles {
  OwnTable table;
  OwnOverlapPlan overlap;
};

void agree_on_files(Process& process, const OwnFiles& own, const std::vector<Introduction>& all, int world_rank) {
  const OwnFile table{"PLAIT_TABLE", own.table.hash, OwnTable::none, OwnTable::refused, own.table.refusal};
  if (same_file(table, all, &Introduction::table, world_rank)) take_table(process, own.table);
  const OwnFile overlap{"PLAIT_OVERLAP", own.overlap.hash, OwnOverlapPlan::none, OwnOverlapPlan::refused,
                        own.overlap.refusal};
  if (same_file(overlap, all, &Introduction::overlap, world_rank)) take_overlap(process, own.overlap);
}

// Where it is not known whether all ranks have Plait, those that have it wait for those that have it not: that is said.
bool gather_introductions(const Introduction& mine, std::vector<Introduction>& all, bool all_present) {
  constexpr std::uint64_t said_after_ns = 20'000'000'000;
  constexpr int bytes = sizeof mine;
  if (all_present)
    return host().allgather(&mine, bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;
  if (host().iallgather(&mine, bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD, &request) != MPI_SUCCESS)
    return false;
  std::uint64_t say_at_ns = monotonic_ns() + said_after_ns;
  for (int done = 0; done == 0; sched_yield()) {
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0 || monotonic_ns() < say_at_ns) continue;
    say_at_ns = UINT64_MAX;
    warn("still waiting for other ranks in MPI_Init: is Plait loaded on all of them?");
  }
  return true;
}

// Those that are present all know it, and none of them waits for the others.
void stay_off(Process& process, const Attendance& attendance, int world_rank) {
  turn_off(process, "some ranks lack Plait");
  if (world_rank == attendance.first_present && !process.config.disable)
    warn("rank " + std::to_string(attendance.first_absent) +
         " runs without libplait.so, or with that of another version; every call goes to the host MPI");
}

void agree(Process& process, const OwnFiles& files, int world_rank, int world_ranks, bool all_present) {
  const Config& config = process.config;
  const Introduction mine{.host = discover_host(),
                          .machine = machine_identity(),
                          .fingerprint = process.fingerprint,
                          .table = files.table.hash,
                          .overlap = files.overlap.hash,
                          .disabled = config.disable,
                          .reporting = config.report,
                          .tracing = !config.trace_path.empty(),
                          .concurrent = process.concurrent};
  std::vector<Introduction> all(static_cast<std::size_t>(world_ranks), mine);
  if (world_ranks > 1 && !gather_introductions(mine, all, all_present))
    return turn_off(process, "the ranks could not agree");
  bool disabled = false, differing = false;
  for (const Introduction& other : all) {
    disabled |= other.disabled != 0;
    differing |= other.fingerprint != mine.fingerprint;
    process.reporting |= other.reporting != 0;
    process.tracing |= other.tracing != 0;
    process.any_concurrent |= other.concurrent != 0;
    process.ranks_on_machine += other.machine == mine.machine ? 1 : 0;
    process.ranks_on_node += other.host == mine.host ? 1 : 0;
  }
  process.world_nodes = number_nodes(all);
  if (disabled) return turn_off(process, "PLAIT_DISABLE is set");
  if (!differing) return agree_on_files(process, files, all, world_rank);
  turn_off(process, "settings differ between ranks");
  if (world_rank == 0) warn("the PLAIT_* variables or versions differ between ranks; every call goes to the host MPI");
}

// nullptr: without an agreement.
void start(const Attendance* attendance) {
  auto* made = new Process;
  LoadedConfig loaded = load_config_from_process(preferred);
  made->config = std::move(loaded.config);
  const Result<std::string> plan = read_plan(made->config.plan);
  made->config.plan = plan.ok() ? *plan : std::string();
  made->fingerprint = fingerprint(made->config);
  set_verbosity(static_cast<Verbosity>(made->config.verbosity));
  int rank = 0, ranks = 1, provided = MPI_THREAD_SINGLE;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!plan.ok() && rank == 0) warn("PLAIT_PLAN: " + plan.status().message());
  PMPI_Query_thread(&provided);
  made->concurrent = made->any_concurrent = provided == MPI_THREAD_MULTIPLE;
  made->main_thread_only = provided == MPI_THREAD_SINGLE || provided == MPI_THREAD_FUNNELED;
  made->first_rank = rank == 0;
  if (made->first_rank)
    for (const std::string& warning : loaded.warnings) warn(warning);
  OwnFiles files;
  if (!made->config.disable) files = {read_own_table(made->config), read_own_overlap_plan(made->config)};
  if (attendance != nullptr && attendance->some_absent()) {
    stay_off(*made, *attendance, rank);
  } else if (attendance != nullptr) {
    agree(*made, files, rank, ranks, attendance->known);
  } else if (made->config.disable) {
    turn_off(*made, "PLAIT_DISABLE is set");
  } else {
    take_table(*made, files.table);
    take_overlap(*made, files.overlap);
    for (const std::string* refusal : {&files.table.refusal, &files.overlap.refusal})
      if (made->first_rank && !refusal->empty()) warn(*refusal);
  }
  made->helped = made->config.progress == "thread" || made->overlaps();
  detail::threaded.store(made->concurrent || made->helped, std::memory_order_relaxed);
  if (made->overlaps()) OverlapCounts::instance().start();
  if (made->overlap != nullptr) OverlapCounts::instance().add(*made->overlap);
  settings = made;
  const bool off = *made->off_reason != '\0';
  if (!off) {
    start_layout();
    start_types();
    start_communicators();
    start_shared_memory(made->config, made->ranks_on_node);
  }
  detail::reporting.store(made->reporting, std::memory_order_relaxed);
  detail::phase.store(off ? Phase::off : Phase::open, std::memory_order_release);
  if (!off) start_progress_thread(made->config);
}

}  // namespace

std::uint64_t machine_identity() {
  std::array<char, 64> text{};
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  return hash_text({text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))});
}

const Process& process() { return *settings; }

void prefer_settings(std::vector<std::string> entries) { preferred = std::move(entries); }

// The kernel lets a process take part in fences at once while it has one thread, and after milliseconds later on.
void begin_initialisation() {
  tl::detail::join_fences();
  detail::phase.store(Phase::starting, std::memory_order_release);
}

void end_initialisation(bool initialised) {
  if (initialised)
    end_initialisation(Attendance());
  else
    detail::phase.store(Phase::before, std::memory_order_release);
}

void end_initialisation(const Attendance& attendance) {
  start(&attendance);
  set_up_world();
}

void start_late() {
  static constinit std::mutex starting;
  const std::scoped_lock lock(starting);
  if (phase() != Phase::before) return;
  int initialised = 0, finalised = 0;
  PMPI_Initialized(&initialised);
  PMPI_Finalized(&finalised);
  if (initialised != 0 && finalised == 0) start(nullptr);
}

void finish() {
  free_axes_groups();
  const Phase before = detail::phase.exchange(Phase::over, std::memory_order_acq_rel);
  if (before != Phase::open && before != Phase::off) return;
  stop_progress_thread();
  finish_reshardings();
  finish_persistent();
  free_all_communicators();
  free_idle_requests();
  if (settings->first_rank) write_lessons();
  if (settings->reporting) finish_report(settings->config);
  if (settings->tracing) finish_trace(settings->config);
  if (before == Phase::off) return;
  stop_communicators();
  stop_types();
  stop_layout();
}

const char* intern(std::string_view text) {
  static constinit std::mutex guard;
  const std::scoped_lock lock(guard);
  static auto* texts = new std::set<std::string, std::less<>>;  // never destroyed, see above
  auto found = texts->find(text);
  if (found == texts->end()) found = texts->emplace(text).first;
  return found->c_str();
}

}  // namespace plait::plugin

#include "plugin/process.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/immortal.h"
#include "core/log.h"
#include "plait/plait.h"
#include "plan/choose/plan_file.h"
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
#include "tl/device_memory.h"
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
bool wait_for_all(MPI_Request request) {
  constexpr std::uint64_t said_after_ns = 20'000'000'000;
  std::uint64_t say_at_ns = monotonic_ns() + said_after_ns;
  for (int done = 0; done == 0; sched_yield()) {
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0 || monotonic_ns() < say_at_ns) continue;
    say_at_ns = UINT64_MAX;
    warn("still waiting for other ranks in MPI_Init: is Plait loaded on all of them?");
  }
  return true;
}

// Whether all ranks of MPI_COMM_WORLD are well: one that lacks memory would leave calls to the host by itself.
bool all_well(bool mine, bool all_present) {
  const int well = mine ? 1 : 0;
  int all = 0;
  if (all_present) return host().allreduce(&well, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS && all != 0;
  MPI_Request request = MPI_REQUEST_NULL;
  return host().iallreduce(&well, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
         wait_for_all(request) && all != 0;
}

// Those that are present all know it, and none of them waits for the others.
void stay_off(Process& process, const Attendance& attendance, int world_rank) {
  turn_off(process, "some ranks lack Plait");
  if (world_rank == attendance.first_present && !process.config.disable)
    warn("rank " + std::to_string(attendance.first_absent) +
         " runs without libplait.so, or with that of another version; every call goes to the host MPI");
}

Introduction introduction_of(const Process& process, const OwnFiles& files) {
  const Config& config = process.config;
  return {.host = discover_host(),
          .machine = machine_identity(),
          .fingerprint = process.fingerprint,
          .table = files.table.hash,
          .overlap = files.overlap.hash,
          .disabled = config.disable,
          .reporting = config.report,
          .tracing = !config.trace_path.empty(),
          .concurrent = process.concurrent};
}

// `all`: one for each rank, this one's in all of them.
void agree(Process& process, const OwnFiles& files, std::vector<Introduction>& all, int world_rank) {
  const Introduction mine = all.front();
  if (all.size() > 1 &&
      host().allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD) != MPI_SUCCESS)
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

// What a rank has found out by itself.
struct Beginning {
  std::unique_ptr<Process> process;
  OwnFiles files;
  std::vector<Introduction> all;
  int rank = 0, ranks = 1;
};

void begin(Beginning& begun) {
  begun.process = std::make_unique<Process>();
  Process& process = *begun.process;
  LoadedConfig loaded = load_config_from_process(preferred);
  process.config = std::move(loaded.config);
  const Result<std::string> plan = read_plan(process.config.plan);
  process.config.plan = plan.ok() ? *plan : std::string();
  process.fingerprint = fingerprint(process.config);
  set_verbosity(static_cast<Verbosity>(process.config.verbosity));
  int provided = MPI_THREAD_SINGLE;
  if (!plan.ok() && begun.rank == 0) warn("PLAIT_PLAN: " + plan.status().message());
  PMPI_Query_thread(&provided);
  process.concurrent = process.any_concurrent = provided == MPI_THREAD_MULTIPLE;
  process.main_thread_only = provided == MPI_THREAD_SINGLE || provided == MPI_THREAD_FUNNELED;
  process.first_rank = begun.rank == 0;
  if (process.first_rank)
    for (const std::string& warning : loaded.warnings) warn(warning);
  if (!process.config.disable) begun.files = {read_own_table(process.config), read_own_overlap_plan(process.config)};
  begun.all.assign(static_cast<std::size_t>(begun.ranks), introduction_of(process, begun.files));
}

void begin_alone(Process& process, const OwnFiles& files) {
  if (process.config.disable) return turn_off(process, "PLAIT_DISABLE is set");
  take_table(process, files.table);
  take_overlap(process, files.overlap);
  for (const std::string* refusal : {&files.table.refusal, &files.overlap.refusal})
    if (process.first_rank && !refusal->empty()) warn(*refusal);
}

// What the calls stand on.
void open_layers(Process& process) {
  process.helped = process.config.progress == "thread" || process.overlaps();
  detail::threaded.store(process.concurrent || process.helped, std::memory_order_relaxed);
  if (process.overlaps()) OverlapCounts::instance().start();
  if (process.overlap != nullptr) OverlapCounts::instance().add(*process.overlap);
  if (*process.off_reason != '\0') return;
  start_device_memory();
  start_layout();
  start_types();
  start_communicators();
  start_shared_memory(process.config, process.ranks_on_node);
}

template <class Work>
bool works(Work&& work) {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// False where memory is short, on all ranks alike where they agree: then there may be no settings at all. `attendance`:
// nullptr without an agreement.
bool start(const Attendance* attendance) {
  Beginning begun;
  PMPI_Comm_rank(MPI_COMM_WORLD, &begun.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &begun.ranks);
  const bool agreeing = attendance != nullptr && !attendance->some_absent();
  bool well = works([&] { begin(begun); });
  if (agreeing) well = all_well(well, attendance->known);
  if (!well) return false;
  well = works([&] {
    Process& process = *begun.process;
    if (agreeing)
      agree(process, begun.files, begun.all, begun.rank);
    else if (attendance != nullptr)
      stay_off(process, *attendance, begun.rank);
    else
      begin_alone(process, begun.files);
    settings = &process;
    open_layers(process);
  });
  if (agreeing) well = all_well(well, true);
  settings = nullptr;
  if (!well) return false;
  settings = begun.process.release();
  const bool off = *settings->off_reason != '\0';
  detail::reporting.store(settings->reporting, std::memory_order_relaxed);
  detail::phase.store(off ? Phase::off : Phase::open, std::memory_order_release);
  if (!off) start_progress_thread(settings->config);
  return true;
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
  if (start(&attendance)) return set_up_world();
  detail::phase.store(Phase::off, std::memory_order_release);
  warn("a rank has no memory for Plait; every call goes to the host MPI");
}

void start_late() {
  static constinit std::mutex starting;
  const std::scoped_lock lock(starting);
  if (phase() != Phase::before) return;
  int initialised = 0, finalised = 0;
  PMPI_Initialized(&initialised);
  PMPI_Finalized(&finalised);
  if (initialised != 0 && finalised == 0 && !start(nullptr)) throw std::bad_alloc();
}

void finish() {
  static_cast<void>(works(free_axes_groups));
  const Phase before = detail::phase.exchange(Phase::over, std::memory_order_acq_rel);
  if ((before != Phase::open && before != Phase::off) || settings == nullptr) return;
  stop_progress_thread();
  static_cast<void>(works(finish_reshardings));
  static_cast<void>(works(finish_persistent));
  free_all_communicators();
  free_idle_requests();
  if (settings->first_rank) static_cast<void>(works(write_lessons));
  if (settings->reporting) static_cast<void>(works([] { finish_report(settings->config); }));
  if (settings->tracing) static_cast<void>(works([] { finish_trace(settings->config); }));
  if (before == Phase::off) return;
  stop_communicators();
  stop_types();
  stop_layout();
}

const char* intern(std::string_view text) {
  static constinit std::mutex guard;
  const std::scoped_lock lock(guard);
  static Immortal<std::set<std::string, std::less<>>> kept;  // see above
  auto& texts = *kept;
  auto found = texts.find(text);
  if (found == texts.end()) found = texts.emplace(text).first;
  return found->c_str();
}

}  // namespace plait::plugin

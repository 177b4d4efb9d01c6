#include "runtime/job/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "core/log.h"
#include "core/text_hash.h"
#include "plan/choose/plan_file.h"
#include "plan/model/fingerprint.h"
#include "tl/trace.h"
#include "topo/discovery.h"

namespace plait::runtime {
namespace {

// Of everything that decides which road a call takes. Where the report goes and how much is said may differ.
std::uint64_t fingerprint(const Config& config, const std::string& version) {
  std::string text = version;
  const auto add = [&](std::string_view value) { text.append("|").append(value); };
  add(config.plan);
  for (const std::string& channel : config.channels) add(channel);
  add(config.rails);
  add(config.ucx_transports);
  add(config.single_copy);
  for (const std::size_t value :
       {config.device_direct_from, config.single_copy_threshold, config.segment_bytes, config.chunk_bytes,
        static_cast<std::size_t>(config.setup_calls), static_cast<std::size_t>(config.host_when_faster),
        static_cast<std::size_t>(config.trial), static_cast<std::size_t>(config.trial_after),
        static_cast<std::size_t>(config.trial_percent), static_cast<std::size_t>(config.flat_ranks),
        static_cast<std::size_t>(config.reproducible)})
    add(std::to_string(value));
  return hash_text(text);
}

std::vector<int> number_nodes(const std::vector<Introduction>& ranks) {
  std::map<HostId, int> numbers;
  std::vector<int> nodes;
  nodes.reserve(ranks.size());
  for (const Introduction& rank : ranks)
    nodes.push_back(numbers.try_emplace(rank.host, static_cast<int>(numbers.size())).first->second);
  return nodes;
}

// What connects ranks of different jobs compares fingerprints (runtime/team/set_up.cpp).
void take_table(Job& job, const OwnTable& own) {
  job.table = own.table;
  job.fingerprint ^= own.hash;
}

void take_overlap(Job& job, const OwnOverlapPlan& own) {
  job.overlap = own.plan;
  job.learns_overlap = own.learned;
  job.fingerprint ^= own.hash;
}

void take_schedule(Job& job, const OwnSchedule& own) {
  job.schedule = own.schedule;
  job.makes_schedule = own.own;
  job.fingerprint ^= own.hash;
}

void turn_off(Job& job, const char* reason) { job.off_reason = reason; }

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

void agree_on_files(Job& job, const OwnFiles& own, const std::vector<Introduction>& all, int world_rank) {
  const OwnFile table{"PLAIT_TABLE", own.table.hash, OwnTable::none, OwnTable::refused, own.table.refusal};
  if (same_file(table, all, &Introduction::table, world_rank)) take_table(job, own.table);
  const OwnFile overlap{"PLAIT_OVERLAP", own.overlap.hash, OwnOverlapPlan::none, OwnOverlapPlan::refused,
                        own.overlap.refusal};
  if (same_file(overlap, all, &Introduction::overlap, world_rank)) take_overlap(job, own.overlap);
  const OwnFile schedule{"PLAIT_SCHEDULE", own.schedule.hash, OwnSchedule::none, OwnSchedule::refused,
                         own.schedule.refusal};
  if (same_file(schedule, all, &Introduction::schedule, world_rank)) take_schedule(job, own.schedule);
}

// Those that are present all know it, and none of them waits for the others.
void stay_off(Job& job, const Attendance& attendance, int world_rank) {
  turn_off(job, "some ranks lack Plait");
  if (world_rank == attendance.first_present && !job.config.disable)
    warn("rank " + std::to_string(attendance.first_absent) + " runs without " +
         (job.host == plan::HostKind::layers ? "the UCC component" : "libplait.so") +
         ", or with that of another version; every call goes to " + name_of_host(job));
}

// What no other process has, of this node or another.
std::uint64_t process_token() {
  static const std::uint64_t first_ns = monotonic_ns();  // a child that is forked later has it too, but another number
  return first_ns ^ static_cast<std::uint64_t>(getpid()) << 40;
}

Introduction introduction_of(const Job& job, const OwnFiles& files) {
  const Config& config = job.config;
  return {.host = discover_host(),
          .machine = job.machine,
          .process = process_token(),
          .fingerprint = job.fingerprint,
          .table = files.table.hash,
          .overlap = files.overlap.hash,
          .schedule = files.schedule.hash,
          .disabled = config.disable,
          .reporting = config.report,
          .tracing = !config.trace_path.empty(),
          .concurrent = job.concurrent};
}

// `all`: one for each rank, this one's in all of them.
void agree_with_others(Job& job, const OwnFiles& files, std::vector<Introduction>& all, World& world) {
  const Introduction mine = all.front();
  if (all.size() > 1 && !world.gather_all(&mine, sizeof mine, all.data()))
    return turn_off(job, "the ranks could not agree");
  bool disabled = false, differing = false;
  for (const Introduction& other : all) {
    disabled |= other.disabled != 0;
    differing |= other.fingerprint != mine.fingerprint;
    job.reporting |= other.reporting != 0;
    job.tracing |= other.tracing != 0;
    job.any_concurrent |= other.concurrent != 0;
    job.ranks_on_machine += other.machine == mine.machine ? 1 : 0;
    job.ranks_on_node += other.host == mine.host ? 1 : 0;
  }
  job.world_nodes = number_nodes(all);
  if (disabled) return turn_off(job, "PLAIT_DISABLE is set");
  if (!differing) return agree_on_files(job, files, all, world.rank());
  turn_off(job, "settings differ between ranks");
  if (job.first_rank)
    warn("the PLAIT_* variables or versions differ between ranks; every call goes to " + name_of_host(job));
}

void begin_alone(Job& job, const OwnFiles& files) {
  if (job.config.disable) return turn_off(job, "PLAIT_DISABLE is set");
  take_table(job, files.table);
  take_overlap(job, files.overlap);
  take_schedule(job, files.schedule);
  for (const std::string* refusal : {&files.table.refusal, &files.overlap.refusal, &files.schedule.refusal})
    if (job.first_rank && !refusal->empty()) warn(*refusal);
}

// Where it is not known whether all ranks have Plait, those that have it wait for those that have it not: that is said.
class Patience {
 public:
  void say_when_it_takes_long() {
    if (monotonic_ns() < say_at_ns_) return;
    say_at_ns_ = UINT64_MAX;
    warn("still waiting for other ranks in MPI_Init: is Plait loaded on all of them?");
  }

 private:
  static constexpr std::uint64_t said_after_ns = 20'000'000'000;
  std::uint64_t say_at_ns_ = monotonic_ns() + said_after_ns;
};

}  // namespace

Agreement::Agreement(World& world, const Attendance* attendance)
    : world_(world), attendance_(attendance), all_present_(attendance != nullptr && attendance->known) {}

void Agreement::begin(const BindingFacts& binding, const std::vector<std::string>& preferred) {
  job_ = std::make_unique<Job>();
  Job& job = *job_;
  LoadedConfig loaded = load_config_from_process(preferred);
  job.config = std::move(loaded.config);
  job.mpi_library = binding.mpi_library;
  job.mpi_release = mpi_release_name(job.mpi_library);
  job.host = binding.host;
  job.first_rank = world_.rank() == 0;
  const Result<std::string> plan = read_plan(job.config.plan);
  job.config.plan = plan.ok() ? *plan : std::string();
  job.fingerprint = fingerprint(job.config, binding.version);
  set_verbosity(static_cast<Verbosity>(job.config.verbosity));
  if (!plan.ok() && job.first_rank) warn("PLAIT_PLAN: " + plan.status().message());
  job.concurrent = job.any_concurrent = binding.concurrent;
  job.main_thread_only = binding.main_thread_only;
  job.machine = discover_machine();
  if (job.first_rank)
    for (const std::string& warning : loaded.warnings) warn(warning);
  if (!job.config.disable)
    files_ = {read_own_table(job.config, job.mpi_release), read_own_overlap_plan(job.config, job.mpi_release),
              read_own_schedule(job.config)};
  all_.assign(static_cast<std::size_t>(world_.ranks()), introduction_of(job, files_));
}

void Agreement::agree() {
  if (with_others())
    agree_with_others(*job_, files_, all_, world_);
  else if (attendance_ != nullptr)
    stay_off(*job_, *attendance_, world_.rank());
  else
    begin_alone(*job_, files_);
}

bool Agreement::all_well(bool mine) {
  if (!with_others()) return mine;
  if (std::exchange(all_present_, true)) return world_.all_say_yes(mine, {});  // who has answered once is present
  Patience patience;
  return world_.all_say_yes(mine, [&patience] { patience.say_when_it_takes_long(); });
}

}  // namespace plait::runtime

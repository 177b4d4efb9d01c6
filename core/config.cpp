#include "core/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "core/channel_kind.h"
#include "core/environment.h"
#include "core/units.h"

namespace plait {
namespace {

// ---- Values ----

std::optional<bool> parse_flag(std::string_view text) {
  std::string word(text);
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (word == "1" || word == "true" || word == "yes" || word == "y" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "n" || word == "off") return false;
  return std::nullopt;
}

bool set_flag(bool& field, std::string_view text) {
  const std::optional<bool> flag = parse_flag(text);
  if (flag) field = *flag;
  return flag.has_value();
}

bool set_count(int& field, std::string_view text, int max = std::numeric_limits<int>::max()) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all_read = error == std::errc() && rest == text.data() + text.size();
  if (!all_read || number < 0 || number > max) return false;
  field = number;
  return true;
}

bool set_threads(int& field, std::string_view text) {
  int number = 0;
  if (!set_count(number, text, 1024) || number == 0) return false;
  field = number;
  return true;
}

bool set_bytes(std::size_t& field, std::string_view text) {
  const Result<std::size_t> bytes = parse_bytes(text);
  if (bytes.ok()) field = *bytes;
  return bytes.ok();
}

bool set_share(double& field, std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all_read = error == std::errc() && rest == text.data() + text.size();
  if (!all_read || !(number >= 0.01 && number <= 1)) return false;
  field = number;
  return true;
}

bool set_text(std::string& field, std::string_view text) {
  field = text;
  return true;
}

constexpr std::array<std::string_view, 4> single_copy_modes = {"auto", "cma", "xpmem", "none"};
constexpr std::array<std::string_view, 3> shared_modes = {"mpi", "malloc", "none"};

bool set_single_copy(Config& config, std::string_view text) {
  if (std::ranges::find(single_copy_modes, text) == single_copy_modes.end()) return false;
  config.single_copy = text;
  return true;
}

bool set_shared(Config& config, std::string_view text) {
  if (std::ranges::find(shared_modes, text) == shared_modes.end()) return false;
  config.shared = text;
  return true;
}

bool set_device_direct(Config& config, std::string_view text) {
  std::size_t from = 0;
  if (text == "none")
    from = std::numeric_limits<std::size_t>::max();
  else if (text != "auto" && !set_bytes(from, text))
    return false;
  config.device_direct_from = from;
  return true;
}

constexpr std::array<std::string_view, 2> progress_modes = {"calls", "thread"};

bool set_progress(Config& config, std::string_view text) {
  if (std::ranges::find(progress_modes, text) == progress_modes.end()) return false;
  config.progress = text;
  return true;
}

bool set_trial(Config& config, std::string_view text) {
  bool all = false;
  if (text == "exact")
    config.trial = TrialMode::exact;
  else if (set_flag(all, text))
    config.trial = all ? TrialMode::all : TrialMode::none;
  else
    return false;
  return true;
}

bool set_reproducible(Config& config, std::string_view text) {
  constexpr std::array<std::string_view, 3> words = {"0", "run", "order"};  // as Reproducible has them
  const auto word = std::ranges::find(words, text);
  if (word == words.end()) return false;
  config.reproducible = static_cast<Reproducible>(word - words.begin());
  return true;
}

bool set_channels(Config& config, std::string_view text) {
  std::vector<std::string> channels = parse_channels(text);
  if (channels.empty()) return false;
  config.channels = std::move(channels);
  return true;
}

// Every word for a flag is a flag: PLAIT_REPORT=on does not write a file named "on" (./on does).
bool set_report(Config& config, std::string_view text) {
  const std::optional<bool> flag = parse_flag(text);
  config.report = flag.value_or(true);
  config.report_path = flag ? std::string() : std::string(text);
  return true;
}

// ---- The table ----

struct Entry {
  Knob knob;
  std::string_view expected;               // what a warning says a value must be
  bool (*set)(Config&, std::string_view);  // false, and no change: not a valid value
};

constexpr std::string_view a_flag = "1, true, yes, y, on, 0, false, no, n or off";
constexpr std::string_view some_bytes = "a whole number of bytes with an optional K, M or G";
constexpr std::string_view a_count = "a whole number, 0 or more";
constexpr std::string_view any_text = "any text";

constexpr auto table = std::to_array<Entry>({
    {{"PLAIT_DISABLE", "flag", "0", "Hand every call to the host MPI unchanged."},
     a_flag,
     [](Config& c, std::string_view v) { return set_flag(c.disable, v); }},
    {{"PLAIT_REPORT", "flag or path", "0",
      "At the end, say which collectives were accelerated and which were not: 1 as a table on "
      "standard error, a path as JSON into that file, or as a page to look at where it ends in .html."},
     any_text,
     set_report},
    {{"PLAIT_TRACE", "path", "", "Record every accelerated call into this file; empty records nothing."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.trace_path, v); }},
    {{"PLAIT_RECORD", "path", "",
      "Record the step that the program repeats, as rank 0 sees it, into this file; with %r in the name a file a "
      "rank."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.record_path, v); }},
    {{"PLAIT_PLAN", "plan", "",
      "Force this plan wherever it applies: a program such as 'RS.2 AR.1 AG.2' (with algorithms and chunks: "
      "'AR.12(ring) x8'), pairwise, leaders or shared for alltoall, or a plan file's name (*.json, docs/p2.md), or "
      "rules in brackets (docs/schedule.md); empty "
      "lets the "
      "planner choose."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.plan, v); }},
    {{"PLAIT_TABLE", "path", "",
      "Take the plans of this tuning table (plait tune, docs/tuning.md) where it has one; a table that was made for "
      "another machine is ignored. Empty: none."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.table, v); }},
    {{"PLAIT_CHANNELS", "list", all_channel_names,
      "The channels that may be used, separated by commas, of" PLAIT_SPACED_CHANNEL_NAMES
      ". Between nodes ucx is taken where it works on all ranks, else mpi."},
     "a list, separated by commas, of" PLAIT_SPACED_CHANNEL_NAMES,
     set_channels},
    {{"PLAIT_RAILS", "list", "all",
      "The rails that ucx may use: their names as plait topo shows them, separated by commas, or how many, or all."},
     "names of rails separated by commas, a number, or all",
     [](Config& c, std::string_view v) { return set_text(c.rails, v); }},
    {{"PLAIT_UCX_TLS", "list", "",
      "UCX's transports on the rails, as in UCX_TLS; empty takes tcp on Ethernet and rc, dc and ud on HCAs."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.ucx_transports, v); }},
    {{"PLAIT_SINGLE_COPY", "choice", "auto",
      "How large private data crosses between processes of a node: cma copies through the kernel, xpmem maps it, "
      "none stages through shared memory, auto takes what works and was measured to be fastest."},
     "auto, cma, xpmem or none",
     set_single_copy},
    {{"PLAIT_SINGLE_COPY_THRESHOLD", "bytes", "0",
      "Copies of this size and more use the single copy; 0 takes what was measured, for messages the built-in "
      "threshold."},
     some_bytes,
     [](Config& c, std::string_view v) { return set_bytes(c.single_copy_threshold, v); }},
    {{"PLAIT_DEVICE_DIRECT", "bytes", "none",
      "Data of a rank from which on collectives of one node work straight between the memories of devices, where all "
      "data are there; auto takes the built-in sizes, none always goes through the processor's memory."},
     "auto, none or a number of bytes, as 64K",
     set_device_direct},
    {{"PLAIT_SEGMENT_BYTES", "bytes", "0", "Size of the shared segment of a node; 0 is the built-in rule."},
     some_bytes,
     [](Config& c, std::string_view v) { return set_bytes(c.segment_bytes, v); }},
    {{"PLAIT_SHARED", "choice", "mpi",
      "Whose memory the node's other ranks can map, for collectives without copies: mpi that of MPI_Alloc_mem and "
      "plait_alloc, malloc also the program's own blocks of 64 KiB and more, none nobody's."},
     "mpi, malloc or none",
     set_shared},
    {{"PLAIT_SHARED_HEAP_BYTES", "bytes", "0",
      "Address space of a process's shared memory; 0 is as much as the machine has memory."},
     some_bytes,
     [](Config& c, std::string_view v) { return set_bytes(c.shared_heap_bytes, v); }},
    {{"PLAIT_BLAS", "path", "auto",
      "The library whose products of matrices the fused operators use: the file of one that has cblas_sgemm, auto the "
      "first that is there of OpenBLAS and BLIS, none Plait's own kernel."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.blas, v); }},
    {{"PLAIT_CHUNK_BYTES", "bytes", "0", "Size of the pipeline's chunks; 0 lets the planner choose."},
     some_bytes,
     [](Config& c, std::string_view v) { return set_bytes(c.chunk_bytes, v); }},
    {{"PLAIT_FLAT_RANKS", "count", "1024",
      "Up to so many ranks of a communicator tell each other everything when it is set up, those of a larger one only "
      "what all need, by way of each node's first rank."},
     a_count,
     [](Config& c, std::string_view v) { return set_count(c.flat_ranks, v); }},
    {{"PLAIT_SETUP_CALLS", "count", "3",
      "Eligible calls on a communicator before it is set up for acceleration; 0: where it is made, MPI_COMM_WORLD in "
      "MPI_Init, which serves calls that do not block."},
     a_count,
     [](Config& c, std::string_view v) { return set_count(c.setup_calls, v); }},
    {{"PLAIT_PROGRESS", "choice", "calls",
      "What moves non-blocking collectives on: calls the program's own calls of MPI, thread also a helper thread of "
      "each "
      "process."},
     "calls or thread",
     set_progress},
    {{"PLAIT_PROGRESS_DUTY", "share", "1",
      "The share of its core that the helper thread may take while the program computes, where no overlap plan says "
      "another."},
     "a number from 0.01 to 1",
     [](Config& c, std::string_view v) { return set_share(c.progress_duty, v); }},
    {{"PLAIT_PROGRESS_THREADS", "count", "1",
      "How many threads share the helper thread's long copies and reductions, itself included, each with that share of "
      "a core of its own, where no overlap plan says another number."},
     "a whole number from 1 to 1024",
     [](Config& c, std::string_view v) { return set_threads(c.progress_threads, v); }},
    {{"PLAIT_FUSED_WORKERS", "count", "0",
      "How many threads of each process compute a fused operator, the caller included, where its plan does not say; 0: "
      "as many as it has processors to itself."},
     "a whole number from 0 to 1024",
     [](Config& c, std::string_view v) { return set_count(c.fused_workers, v, 1024); }},
    {{"PLAIT_FUSED_BINDING", "flag", "0",
      "Keep each thread that computes a fused operator on a core of its own, but for the caller, where the process has "
      "its processors to itself."},
     a_flag,
     [](Config& c, std::string_view v) { return set_flag(c.fused_binding, v); }},
    {{"PLAIT_OVERLAP", "path", "",
      "Fuse the program's non-blocking allreduces as this overlap plan says (plait overlap plan, docs/overlap.md), "
      "with the helper thread at each group's share of a core; auto: as a plan made from the program's first steps "
      "says. Empty: none."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.overlap, v); }},
    {{"PLAIT_SCHEDULE", "path", "",
      "Cut the program's collectives on MPI_COMM_WORLD into pieces and run them in the order and on the channels of "
      "this schedule (plait schedule, docs/schedule.md); auto: of one that is made from the program's first steps. "
      "Empty: none."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.schedule, v); }},
    {{"PLAIT_SWITCH", "name", "",
      "Name of the network switch this process's node hangs on, the same on all nodes of the switch; empty takes it "
      "from Slurm."},
     any_text,
     [](Config& c, std::string_view v) { return set_text(c.leaf_switch, v); }},
    {{"PLAIT_HOST", "flag", "1", "Hand a call to the host MPI where that was measured to be faster; 0 never does."},
     a_flag,
     [](Config& c, std::string_view v) { return set_flag(c.host_when_faster, v); }},
    {{"PLAIT_TRIAL", "choice", "1",
      "Try the host MPI and the best predicted plans in turn in early calls of each kind and size, and take the "
      "fastest; exact leaves out sums and other reductions whose last bits depend on the plan, 0 takes the best "
      "predicted plan for all."},
     "0, 1 or exact",
     set_trial},
    {{"PLAIT_TRIAL_AFTER", "count", "64",
      "How many calls of a kind and size go by the best predicted plan before they are tried; of more than 64 KiB a "
      "32nd of it. Of short ones within a node up to 16 times as many may be the host's before any plan is made."},
     a_count,
     [](Config& c, std::string_view v) { return set_count(c.trial_after, v); }},
    {{"PLAIT_TRIAL_PERCENT", "count", "2",
      "How much of the time of a kind and size of calls may be spent on trying other ways; with more, others are tried "
      "sooner, and 0 tries none."},
     "0 to 10000",
     [](Config& c, std::string_view v) { return set_count(c.trial_percent, v, 10000); }},
    {{"PLAIT_REPRODUCIBLE", "choice", "0",
      "run: floating-point results have the same bits in every run of a job that is placed alike, and on all ranks; "
      "order: sums and products do not depend on the order of the operands either, nor on placement, number of nodes, "
      "plan or size (docs/reproducible.md). Trials leave such reductions out then; PLAIT_OVERLAP and PLAIT_SCHEDULE "
      "are not used."},
     "0, run or order",
     set_reproducible},
    {{"PLAIT_CACHE", "flag", "1",
      "Keep what trials found in $XDG_CACHE_HOME/plait or ~/.cache/plait for later jobs; 0 "
      "neither reads nor writes there."},
     a_flag,
     [](Config& c, std::string_view v) { return set_flag(c.cache, v); }},
    {{"PLAIT_VERBOSE", "count", "1", "Messages on standard error: 0 none, 1 warnings, 2 information, 3 debugging."},
     "0, 1, 2 or 3",
     [](Config& c, std::string_view v) { return set_count(c.verbosity, v, 3); }},
});

constexpr auto knob_list = [] {
  std::array<Knob, table.size()> result;
  for (std::size_t i = 0; i < table.size(); ++i) result[i] = table[i].knob;
  return result;
}();

// ---- Warnings ----

// What a user wrote, fit for one line of a terminal.
std::string printable(std::string_view text) {
  static constexpr std::size_t longest_shown = 80;
  std::string result(text.substr(0, longest_shown));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  if (text.size() > longest_shown) result += "...";
  return result;
}

// Levenshtein's distance: insertions, deletions and replacements from one to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[to.size()];
}

// The nearest name, where it is near enough to be a slip; else empty.
std::string_view nearest_name(std::string_view name) {
  static constexpr std::size_t largest_slip = 4;
  // A longer one is no slip, and not worth the quadratic search.
  static constexpr std::size_t longest_name = 64;
  if (name.size() > longest_name) return {};
  const Knob* best = nullptr;
  std::size_t best_distance = largest_slip + 1;
  for (const Knob& knob : knob_list) {
    const std::size_t distance = edit_distance(name, knob.name);
    if (distance < best_distance) {
      best_distance = distance;
      best = &knob;
    }
  }
  return best == nullptr ? std::string_view() : best->name;
}

std::string unknown_name_warning(std::string_view name) {
  std::string result = printable(name) + " is not a variable of plait";
  const std::string_view nearest = nearest_name(name);
  if (!nearest.empty()) result.append("; did you mean ").append(nearest);
  result.append(nearest.empty() ? "." : "?").append(" The variables are");
  for (const Knob& knob : knob_list) result.append(&knob == knob_list.data() ? " " : ", ").append(knob.name);
  return result;
}

std::string invalid_value_warning(const Entry& entry, std::string_view value) {
  std::string result(entry.knob.name);
  result.append("=").append(printable(value)).append(" is ignored: expected ").append(entry.expected);
  return result.append("; using ").append(entry.knob.default_value);
}

// ---- The environment ----

constexpr std::string_view prefix = "PLAIT_";

// What one entry of the environment means to us.
struct Setting {
  std::string_view name;
  std::string_view value;
  const Entry* entry = nullptr;  // nullptr: no variable of this name
};

// The PLAIT_* settings. A name's first occurrence counts, as for getenv; an empty value is as good
// as none.
std::vector<Setting> settings(std::span<const std::string_view> environment) {
  std::vector<Setting> result;
  for (const std::string_view variable : environment) {
    if (!variable.starts_with(prefix)) continue;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    Setting setting{.name = variable.substr(0, equals), .value = variable.substr(equals + 1)};
    const auto entry = std::ranges::find(table, setting.name, [](const Entry& e) { return e.knob.name; });
    if (entry != table.end()) setting.entry = &*entry;
    if (std::ranges::find(result, setting.name, &Setting::name) == result.end()) result.push_back(setting);
  }
  std::erase_if(result, [](const Setting& setting) { return setting.entry != nullptr && setting.value.empty(); });
  return result;
}

// The first occurrence of a variable, as for getenv; empty: none.
std::string_view value_of(std::span<const std::string_view> environment, std::string_view name) {
  for (const std::string_view variable : environment) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
}

std::vector<std::string_view> process_environment() {
  std::vector<std::string_view> environment;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return environment;
}

// Whether Slurm's pattern is one or more switches and then the node.
bool switches_then_node(std::string_view pattern) {
  static constexpr std::string_view component = "switch.";
  if (!pattern.starts_with(component)) return false;
  while (pattern.starts_with(component)) pattern.remove_prefix(component.size());
  return pattern == "node";
}

// "top.leaf3" of the address "top.leaf3.node7"; empty where Slurm gives no switches, or names have dots of their own.
std::string slurm_switch(std::span<const std::string_view> environment) {
  const std::string_view address = value_of(environment, "SLURM_TOPOLOGY_ADDR");
  const std::string_view pattern = value_of(environment, "SLURM_TOPOLOGY_ADDR_PATTERN");
  const bool same_depth = std::ranges::count(address, '.') == std::ranges::count(pattern, '.');
  if (!switches_then_node(pattern) || !same_depth) return {};
  return std::string(address.substr(0, address.rfind('.')));
}

// "3", or the uuid of a GPU: as launchers give each rank its own. A part of one (MIG) is no GPU of others' islands.
std::string only_gpu(std::span<const std::string_view> environment) {
  const std::string_view visible = value_of(environment, "CUDA_VISIBLE_DEVICES");
  return visible.find(',') == visible.npos && !visible.starts_with("MIG-") && visible != "-1" ? std::string(visible)
                                                                                              : std::string();
}

// By the XDG base directory specification: paths that are not absolute do not count.
std::string cache_folder(std::span<const std::string_view> environment) {
  const std::string_view cache = value_of(environment, "XDG_CACHE_HOME"), home = value_of(environment, "HOME");
  if (cache.starts_with('/')) return std::string(cache) + "/plait";
  return home.starts_with('/') ? std::string(home) + "/.cache/plait" : std::string();
}

// What else PLAIT_REPRODUCIBLE settles: nothing that is found out while the job runs may change how operands are
// combined; and where their order must not matter no call is the host's, so that all is set up before the first one.
void keep_reproducible(LoadedConfig& loaded) {
  Config& config = loaded.config;
  if (config.reproducible == Reproducible::no) return;
  if (config.trial == TrialMode::all) config.trial = TrialMode::exact;
  for (const auto& [name, file] : {std::pair<std::string_view, std::string*>{"PLAIT_OVERLAP", &config.overlap},
                                   {"PLAIT_SCHEDULE", &config.schedule}}) {
    if (file->empty()) continue;
    loaded.warnings.push_back(std::string(name) +
                              " is not used with PLAIT_REPRODUCIBLE: what runs together depends "
                              "on when the ranks call");
    file->clear();
  }
  if (config.reproducible != Reproducible::order) return;
  config.host_when_faster = false;
  config.setup_calls = 0;
}

Config default_config() {
  Config config;
  for (const Entry& entry : table) entry.set(config, entry.knob.default_value);
  return config;
}

}  // namespace

std::span<const Knob> knobs() { return knob_list; }

std::vector<std::string> parse_channels(std::string_view text) {
  std::vector<std::string> channels;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view channel = text.substr(0, comma);
    if (!channel_named(channel)) return {};
    if (std::ranges::find(channels, channel) == channels.end()) channels.emplace_back(channel);
    if (comma == std::string_view::npos) return channels;
    text.remove_prefix(comma + 1);
  }
}

LoadedConfig load_config(std::span<const std::string_view> environment) {
  LoadedConfig loaded{.config = default_config(), .warnings = {}};
  for (const Setting& setting : settings(environment)) {
    if (setting.entry == nullptr) {
      loaded.warnings.push_back(unknown_name_warning(setting.name));
    } else if (!setting.entry->set(loaded.config, setting.value)) {
      loaded.warnings.push_back(invalid_value_warning(*setting.entry, setting.value));
    }
  }
  keep_reproducible(loaded);
  if (loaded.config.leaf_switch.empty()) loaded.config.leaf_switch = slurm_switch(environment);
  loaded.config.only_gpu = only_gpu(environment);
  loaded.config.cache_folder = cache_folder(environment);
  return loaded;
}

LoadedConfig load_config_from_process(std::span<const std::string> preferred) {
  std::vector<std::string_view> environment(preferred.begin(), preferred.end());
  const std::vector<std::string_view> own = process_environment();
  environment.insert(environment.end(), own.begin(), own.end());
  return load_config(environment);
}

std::string process_variable(std::string_view name) { return std::string(value_of(process_environment(), name)); }

std::string initial_text(const Knob& knob) {
  const std::string text = process_variable(knob.name);
  return text.empty() ? std::string(knob.default_value) : text;
}

std::vector<EffectiveValue> effective_values(std::span<const std::string_view> environment) {
  const std::vector<Setting> given = settings(environment);
  std::vector<EffectiveValue> result;
  for (const Entry& entry : table) {
    Config scratch;
    const auto setting = std::ranges::find(given, &entry, &Setting::entry);
    const bool valid = setting != given.end() && entry.set(scratch, setting->value);
    result.push_back({.name = entry.knob.name,
                      .value = std::string(valid ? setting->value : entry.knob.default_value),
                      .origin = valid ? "environment" : "default"});
  }
  return result;
}

}  // namespace plait

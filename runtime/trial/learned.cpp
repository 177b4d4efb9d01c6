#include "runtime/trial/learned.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/file.h"
#include "core/immortal.h"
#include "core/log.h"
#include "core/text_hash.h"
#include "plan/choose/table.h"
#include "runtime/job/job.h"
#include "runtime/job/tuning_table.h"

namespace plait::runtime {
namespace {

constexpr std::size_t most_shapes = 32;  // kept in a file; those of the last jobs stay
constexpr std::size_t longest_plan = 256;
constexpr double longest_seconds = 1e6;

struct Learned {
  std::mutex guard;
  std::vector<std::pair<std::string, std::vector<TuningRecord>>> shapes;
};

Learned& learned() {
  static Immortal<Learned> one;  // never destroyed: calls may come until the process ends
  return *one;
}

// ---- Between tuning records and a tuning table ----

std::size_t class_from(int size_class) { return size_class == 0 ? 0 : std::size_t{1} << (size_class - 1); }
std::size_t class_to(int size_class) { return std::size_t{1} << size_class; }

constexpr double nanosecond = 1e-9;
std::uint64_t nanoseconds(double seconds) { return static_cast<std::uint64_t>(std::llround(seconds / nanosecond)); }
double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * nanosecond; }

// A range that is no class of sizes was not written here.
std::optional<TuningRecord> tuning_record_in(Collective collective, const TunedRange& range) {
  const int size_class = static_cast<int>(std::bit_width(range.from));
  const bool one_class = size_class < 63 && range.from == class_from(size_class) && range.to == class_to(size_class);
  const bool sane = range.seconds_from >= 0 && range.seconds_from < longest_seconds &&
                    range.host_seconds_from < longest_seconds && !range.plan.empty() &&
                    range.plan.size() <= longest_plan;
  if (!one_class || !sane) return std::nullopt;
  return TuningRecord{collective, size_class, range.plan, nanoseconds(range.seconds_from),
                      nanoseconds(range.host_seconds_from)};
}

std::vector<TuningRecord> tuning_records_in(const TunedShape& shape) {
  std::vector<TuningRecord> tuning_records;
  for (const TunedCollective& tuned : shape.collectives)
    for (const TunedRange& range : tuned.ranges)
      if (std::optional<TuningRecord> tuning_record = tuning_record_in(tuned.collective, range))
        tuning_records.push_back(std::move(*tuning_record));
  return tuning_records;
}

TunedShape shape_of(const std::string& shape, const std::vector<TuningRecord>& tuning_records) {
  std::map<Collective, std::map<std::size_t, TunedRange>> ranges;
  for (const TuningRecord& tuning_record : tuning_records) {
    const double own = seconds(tuning_record.nanoseconds), host = seconds(tuning_record.host_nanoseconds);
    const std::size_t from = class_from(tuning_record.size_class);
    ranges[tuning_record.collective][from] = {
        from, class_to(tuning_record.size_class), tuning_record.plan, own, own, host, host};
  }
  TunedShape tuned{.shape = shape, .collectives = {}};
  for (auto& [collective, by_size] : ranges) {
    TunedCollective& entry = tuned.collectives.emplace_back(TunedCollective{.collective = collective, .ranges = {}});
    for (auto& [from, range] : by_size) entry.ranges.push_back(std::move(range));
  }
  return tuned;
}

// ---- The file ----

// Of one system and one set of settings: what is fastest depends on both.
Fingerprint own_fingerprint() {
  Fingerprint fingerprint = job_fingerprint(job().config, job().mpi_release);
  fingerprint["settings"] = std::to_string(job().fingerprint);
  return fingerprint;
}

std::string file_of(const Fingerprint& fingerprint) {
  std::string all;
  for (const auto& [entry, value] : fingerprint) all.append(entry).append("=").append(value).append("\n");
  return "trials-" + std::to_string(hash_text(all)) + ".json";
}

// A folder that others could have laid out for this user is as good as none, which is said once.
Result<OwnFolder> open_folder(OwnFolder::Missing missing) {
  Result<OwnFolder> folder = OwnFolder::open(job().config.cache_folder, missing);
  static std::once_flag refused;
  if (!folder.ok() && folder.status().code() == Code::invalid)
    std::call_once(refused, [&] { debug("cache: not used: " + folder.status().message()); });
  return folder;
}

// Empty where there is none, or none that fits.
TuningTable read_file_of(const OwnFolder& folder, const Fingerprint& fingerprint) {
  const Result<std::string> text = folder.read(file_of(fingerprint), largest_table_file);
  if (!text.ok()) return {};
  Result<TuningTable> table = parse_table(*text);
  if (!table.ok()) debug("cache: " + table.status().message());
  const bool fits = table.ok() && table->fingerprint == fingerprint;
  return fits ? std::move(*table) : TuningTable();
}

TuningTable read_earlier() {
  const Result<OwnFolder> folder = open_folder(OwnFolder::Missing::fails);
  return folder.ok() ? read_file_of(*folder, own_fingerprint()) : TuningTable();
}

const TuningTable& earlier() {
  static const auto* table = new TuningTable(read_earlier());  // never destroyed, as above
  return *table;
}

bool cached() {
  return job().config.trial != TrialMode::none && job().config.cache && !job().config.cache_folder.empty();
}

// This job's shapes come first: the last ones of a file that grows too long are dropped.
TuningTable merged(const std::vector<std::pair<std::string, std::vector<TuningRecord>>>& shapes, TuningTable found) {
  TuningTable table{.machine = "trials", .fingerprint = own_fingerprint(), .shapes = {}};
  for (const auto& [shape, tuning_records] : shapes) {
    const TunedShape* known = found.shape(shape);
    std::vector<TuningRecord> all = known != nullptr ? tuning_records_in(*known) : std::vector<TuningRecord>();
    all.insert(all.end(), tuning_records.begin(), tuning_records.end());
    table.shapes.push_back(shape_of(shape, all));
  }
  for (TunedShape& other : found.shapes)
    if (table.shape(other.shape) == nullptr) table.shapes.push_back(std::move(other));
  if (table.shapes.size() > most_shapes) table.shapes.resize(most_shapes);
  return table;
}

bool of_one_class(const TuningRecord& one, const TuningRecord& other) {
  return one.collective == other.collective && one.size_class == other.size_class;
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest == text.data() + text.size() || *rest != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return true;
}

}  // namespace

void keep_tuning_record(const std::string& shape, const TuningRecord& tuning_record) {
  if (tuning_record.plan.size() > longest_plan) return;
  const std::scoped_lock lock(learned().guard);
  auto& shapes = learned().shapes;
  auto found = std::ranges::find(shapes, shape, [](const auto& entry) { return entry.first; });
  if (found == shapes.end()) found = shapes.insert(shapes.end(), {shape, {}});
  auto& tuning_records = found->second;
  std::erase_if(tuning_records, [&](const TuningRecord& old) { return of_one_class(old, tuning_record); });
  tuning_records.push_back(tuning_record);
}

bool has_earlier_tuning_records() {
  if (cached() && !earlier().shapes.empty()) return true;
  const std::scoped_lock lock(learned().guard);
  return !learned().shapes.empty();
}

std::vector<TuningRecord> earlier_tuning_records(const std::string& shape) {
  const TunedShape* known = cached() ? earlier().shape(shape) : nullptr;
  std::vector<TuningRecord> tuning_records = known != nullptr ? tuning_records_in(*known) : std::vector<TuningRecord>();
  const std::scoped_lock lock(learned().guard);
  for (const auto& [other, own] : learned().shapes) {
    if (other != shape) continue;
    for (const TuningRecord& newer : own) {
      std::erase_if(tuning_records, [&](const TuningRecord& old) { return of_one_class(old, newer); });
      tuning_records.push_back(newer);
    }
  }
  return tuning_records;
}

std::string tuning_records_text(const std::vector<TuningRecord>& tuning_records) {
  std::string text;
  for (const TuningRecord& tuning_record : tuning_records)
    text += std::to_string(static_cast<int>(tuning_record.collective)) + ' ' +
            std::to_string(tuning_record.size_class) + ' ' + std::to_string(tuning_record.nanoseconds) + ' ' +
            std::to_string(tuning_record.host_nanoseconds) + ' ' + tuning_record.plan + '\n';
  return text;
}

std::vector<TuningRecord> parse_tuning_records(std::string_view text) {
  std::vector<TuningRecord> tuning_records;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    int collective = 0;
    TuningRecord tuning_record{};
    if (!take_number(line, collective) || !take_number(line, tuning_record.size_class) ||
        !take_number(line, tuning_record.nanoseconds) || !take_number(line, tuning_record.host_nanoseconds) ||
        collective < 0 || collective >= planned_collectives)
      continue;
    tuning_record.collective = static_cast<Collective>(collective);
    tuning_record.plan = line;
    tuning_records.push_back(std::move(tuning_record));
  }
  return tuning_records;
}

void write_tuning_records() {
  if (!cached()) return;
  const std::scoped_lock lock(learned().guard);
  if (learned().shapes.empty()) return;
  try {
    const Fingerprint fingerprint = own_fingerprint();
    const Result<OwnFolder> folder = open_folder(OwnFolder::Missing::is_made);
    if (!folder.ok()) return;
    const TuningTable table = merged(learned().shapes, read_file_of(*folder, fingerprint));
    const Status written = folder->replace(file_of(fingerprint), table_json(table));
    if (!written.ok()) debug("cache: " + written.message());
  } catch (const std::exception& exception) {
    debug(std::string("cache: ") + exception.what());
  }
}

}  // namespace plait::runtime

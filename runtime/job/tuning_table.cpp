#include "runtime/job/tuning_table.h"

#include <algorithm>
#include <utility>

#include "core/file.h"
#include "core/text_hash.h"
#include "topo/discovery.h"

namespace plait::runtime {
namespace {

OwnTable refused_table(const std::string& reason) {
  return {nullptr, OwnTable::refused, "PLAIT_TABLE is not used: " + reason};
}

}  // namespace

Fingerprint job_fingerprint(const Config& config, const std::string& mpi_release) {
  return system_fingerprint(mpi_release, describe_processors(), config.channels);
}

OwnTable read_own_table(const Config& config, const std::string& mpi_release) {
  if (config.table.empty()) return {};
  const std::string path = "\"" + config.table + "\": ";
  const Result<std::string> text = read_file(config.table, largest_table_file);
  if (!text.ok()) return refused_table(text.status().message());
  Result<TuningTable> table = parse_table(*text);
  if (!table.ok()) return refused_table(path + table.status().message());
  const Fingerprint job = table->fingerprint.empty() ? Fingerprint() : job_fingerprint(config, mpi_release);
  if (const std::string entry = mismatch(table->fingerprint, job); !entry.empty())
    return refused_table(path + "it was made for " + entry + " '" + table->fingerprint.at(entry) +
                         "', and here it is '" + job.at(entry) + "'");
  const std::uint64_t hash = std::max(hash_text(*text), OwnTable::refused + 1);
  return {std::make_shared<const TuningTable>(std::move(*table)), hash, {}};
}

}  // namespace plait::runtime

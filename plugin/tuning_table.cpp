#include "plugin/tuning_table.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "plugin/process.h"
#include "topo/discovery.h"

namespace plait {
namespace {

// "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\n..." without what follows the version.
std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (PMPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return {};
  std::string version(text.data());
  version.resize(std::min(version.find_first_of(",\n"), version.size()));
  std::replace(version.begin(), version.end(), '\t', ' ');
  return version;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

OwnTable refused(const std::string& reason) {
  return {nullptr, OwnTable::refused, "PLAIT_TABLE is not used: " + reason};
}

}  // namespace

Fingerprint job_fingerprint(const Config& config) {
  return {{"mpi", library_version()}, {"hardware", describe_processors()}, {"channels", joined(config.channels)}};
}

OwnTable read_own_table(const Config& config) {
  if (config.table.empty()) return {};
  const std::string path = "\"" + config.table + "\": ";
  const Result<std::string> text = read_file(config.table, largest_table_file);
  if (!text.ok()) return refused(text.status().message());
  Result<TuningTable> table = parse_table(*text);
  if (!table.ok()) return refused(path + table.status().message());
  const Fingerprint job = table->fingerprint.empty() ? Fingerprint() : job_fingerprint(config);
  if (const std::string entry = mismatch(table->fingerprint, job); !entry.empty())
    return refused(path + "it was made for " + entry + " '" + table->fingerprint.at(entry) + "', and here it is '" +
                   job.at(entry) + "'");
  const std::uint64_t hash = std::max(hash_text(*text), OwnTable::refused + 1);
  return {std::make_shared<const TuningTable>(std::move(*table)), hash, {}};
}

}  // namespace plait

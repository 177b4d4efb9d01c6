#include "fused/embedding/arguments.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "fused/tiles/tiles.h"

namespace plait::fused {
namespace {

// So that no product of the shape's numbers overflows.
constexpr std::int64_t most_batch = std::int64_t{1} << 31, most_dim = std::int64_t{1} << 20;
constexpr std::int64_t most_tables = std::int64_t{1} << 20, most_rows = std::int64_t{1} << 40;

// ---- Tables ----

Status read_table(const EmbeddingArguments& given, std::size_t number, EmbeddingProblem& problem) {
  const auto what = [number](const char* list) { return std::string(list) + "[" + std::to_string(number) + "]"; };
  Table table;
  table.rows = given.rows[number];
  if (Status status = check_within(what("rows"), table.rows, {0, most_rows}); !status.ok()) return status;
  table.data = static_cast<const std::byte*>(given.data[number]);
  if (table.data == nullptr && table.rows > 0) return bad_argument(what("data"), "NULL");
  if (given.direction == Direction::back) table.target = static_cast<std::byte*>(given.targets[number]);
  if (problem.type == RowType::i8) {
    table.scales = given.scales[number];
    if (table.scales == nullptr && table.rows > 0) return bad_argument(what("scales"), "NULL");
  }
  problem.tables.push_back(table);
  return {};
}

Status read_tables(const EmbeddingArguments& given, EmbeddingProblem& problem) {
  if (Status status = check_within("tables", given.tables, {0, most_tables}); !status.ok()) return status;
  if (given.tables > 0 && given.rows == nullptr) return bad_argument("rows", "NULL");
  if (given.tables > 0 && given.data == nullptr) return bad_argument("data", "NULL");
  if (given.tables > 0 && given.scales == nullptr && problem.type == RowType::i8) return bad_argument("scales", "NULL");
  for (std::size_t number = 0; number < static_cast<std::size_t>(given.tables); ++number)
    if (Status status = read_table(given, number, problem); !status.ok()) return status;
  return {};
}

// Rows that are added to are no others': what comes of both would depend on who is first.
Status check_apart(const EmbeddingProblem& problem) {
  struct Place {
    const std::byte *begin, *end;
    std::size_t table;
  };
  std::vector<Place> places;
  const auto row_bytes = static_cast<std::size_t>(problem.dim) * bytes_of(problem.type);
  for (std::size_t number = 0; number < problem.tables.size(); ++number) {
    const Table& table = problem.tables[number];
    if (table.rows > 0)
      places.push_back({table.data, table.data + static_cast<std::size_t>(table.rows) * row_bytes, number});
  }
  std::ranges::sort(places, std::less<>(), &Place::begin);
  for (std::size_t at = 1; at < places.size(); ++at) {
    const Place &before = places[at - 1], &behind = places[at];
    if (!std::less<>()(behind.begin, before.end)) continue;
    const auto [first, second] = std::minmax(before.table, behind.table);
    return bad_argument("data[" + std::to_string(second) + "]", "overlaps data[" + std::to_string(first) + "]");
  }
  return {};
}

Status read_ends(const EmbeddingArguments& given, bool has_samples, EmbeddingProblem& problem) {
  problem.output = static_cast<std::byte*>(given.output);
  problem.gradients = reinterpret_cast<const std::byte*>(given.gradients);
  if (!has_samples) return {};
  if (given.direction == Direction::forward && problem.output == nullptr) return bad_argument("output", "NULL");
  if (given.direction == Direction::back && problem.gradients == nullptr) return bad_argument("gradients", "NULL");
  return {};
}

// ---- Lookups ----

enum class Argument : std::int64_t { indices, index_count, offsets, weights };
// What the words of a complaint are.
enum : std::size_t { word_argument, word_place, word_value, word_table, word_rows };

Complaint missing(Argument argument) { return {.words = {static_cast<std::int64_t>(argument), -1, 0, 0, 0}}; }

// Without a branch an index, so that they are looked at several at a time: the first bit of one of the two numbers is
// set where an index is not a row.
bool all_are_rows(const std::int64_t* indices, std::int64_t count, std::int64_t rows) {
  std::uint64_t bits = 0;
  const auto last = static_cast<std::uint64_t>(rows) - 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint64_t>(indices[i]);
    bits |= index | (last - index);
  }
  return bits >> 63 == 0;
}

bool all_ascend(const std::int64_t* offsets, std::int64_t count) {
  std::uint64_t bits = 0;
  for (std::int64_t i = 0; i + 1 < count; ++i)
    bits |= static_cast<std::uint64_t>(offsets[i + 1]) |
            (static_cast<std::uint64_t>(offsets[i + 1]) - static_cast<std::uint64_t>(offsets[i]));
  return bits >> 63 == 0;
}

Complaint first_wrong_offset(const Lookup& lookup, std::int64_t count) {
  std::int64_t before = 0, place = 0;
  while (place < count && lookup.offsets[place] >= before && lookup.offsets[place] <= lookup.count)
    before = lookup.offsets[place++];
  return {.words = {static_cast<std::int64_t>(Argument::offsets), place, lookup.offsets[place], before, lookup.count}};
}

Complaint first_wrong_index(const Lookup& lookup, std::int64_t place, std::int64_t table, std::int64_t rows) {
  while (lookup.indices[place] >= 0 && lookup.indices[place] < rows) ++place;
  return {.words = {static_cast<std::int64_t>(Argument::indices), place, lookup.indices[place], table, rows}};
}

}  // namespace

Status read_arguments(const EmbeddingArguments& given, int ranks, int rank, EmbeddingProblem& problem) {
  if (given.missing != nullptr) return bad_argument(given.missing, "NULL");
  if (Status status = check_within("batch", given.batch, {1, most_batch}); !status.ok()) return status;
  if (Status status = check_within("dim", given.dim, {1, most_dim}); !status.ok()) return status;
  if (Status status = check_within("type", given.type, {0, 2}); !status.ok()) return status;
  if (Status status = check_within("mode", given.mode, {0, 1}); !status.ok()) return status;
  problem.batch = given.batch;
  problem.dim = given.dim;
  problem.type = static_cast<RowType>(given.type);
  problem.mean = given.mode == 1;
  problem.weighted = given.weighted;
  if (problem.mean && problem.weighted) return bad_argument("weighted", "1: expected 0 where the mode is a mean");
  if (given.direction == Direction::back && problem.type == RowType::i8)
    return bad_argument("type", "2: expected 0 or 1: gradients are added to rows of f32 or bf16");
  if (Status status = read_tables(given, problem); !status.ok()) return status;
  if (given.direction == Direction::back)
    if (Status status = check_apart(problem); !status.ok()) return status;
  const bool has_samples = share_of(given.batch, ranks, rank).length() > 0;
  if (Status status = read_ends(given, has_samples, problem); !status.ok()) return status;
  Result<PlanOptions> options = parse_plan_options(given.options != nullptr ? given.options : "", HasChecks::yes);
  if (!options.ok()) return options.status();
  problem.options = *options;
  return {};
}

std::vector<Alike> alike_of(const EmbeddingProblem& problem) {
  return {{"batch", problem.batch},
          {"dim", problem.dim},
          {"slice=", static_cast<std::int64_t>(problem.options.slice_bytes)}};
}

void visit_problem(EmbeddingProblem& problem, std::uint64_t end_bytes, DataVisitor& visit) {
  const auto row_bytes = static_cast<std::uint64_t>(problem.dim) * bytes_of(problem.type);
  for (Table& table : problem.tables) {
    const std::uint64_t rows = static_cast<std::uint64_t>(table.rows);
    if (table.target == nullptr) {
      visit(table.data, rows * row_bytes, DataWay::given, bytes_of(problem.type));
    } else {
      visit(table.target, rows * row_bytes, DataWay::changed, bytes_of(problem.type));
      table.data = table.target;
    }
    visit(table.scales, rows * sizeof(float), DataWay::given);
  }
  visit(problem.output, end_bytes, DataWay::taken, sizeof(float));
  visit(problem.gradients, end_bytes, DataWay::given, sizeof(float));
}

Lookup brought_lookup(const EmbeddingProblem& problem, const Lookup& lookup, BroughtData& brought) {
  const auto tables = static_cast<std::int64_t>(problem.tables.size());
  if (tables == 0) return lookup;
  return {.indices = brought.bring(lookup.indices, lookup.count),
          .count = lookup.count,
          .offsets = brought.bring(lookup.offsets, tables * problem.batch + 1),
          .weights = problem.weighted ? brought.bring(lookup.weights, lookup.count) : nullptr};
}

bool complains(const EmbeddingProblem& problem, const Lookup& lookup, Complaint& complaint) {
  const auto tables = static_cast<std::int64_t>(problem.tables.size()), bags = tables * problem.batch;
  if (tables == 0) return false;
  if (lookup.offsets == nullptr) return complaint = missing(Argument::offsets), true;
  if (lookup.count > 0 && lookup.indices == nullptr) return complaint = missing(Argument::indices), true;
  if (lookup.count > 0 && problem.weighted && lookup.weights == nullptr)
    return complaint = missing(Argument::weights), true;
  if (!problem.options.checks) return false;
  if (lookup.offsets[0] < 0 || lookup.offsets[bags] > lookup.count || !all_ascend(lookup.offsets, bags + 1))
    return complaint = first_wrong_offset(lookup, bags + 1), true;
  for (std::int64_t table = 0; table < tables; ++table) {
    const std::int64_t begin = lookup.offsets[table * problem.batch], end = lookup.offsets[(table + 1) * problem.batch];
    const std::int64_t rows = problem.tables[static_cast<std::size_t>(table)].rows;
    if (begin == end || (rows > 0 && all_are_rows(lookup.indices + begin, end - begin, rows))) continue;
    return complaint = first_wrong_index(lookup, begin, table, rows), true;
  }
  return false;
}

std::string lookup_complaint_text(const Complaint& complaint) {
  constexpr const char* names[] = {"indices", "index_count", "offsets", "weights"};
  const auto& words = complaint.words;
  const std::string argument = names[words[word_argument] & 3];
  if (words[word_place] < 0) return argument + ": NULL";
  const std::string place =
      argument + "[" + std::to_string(words[word_place]) + "]: " + std::to_string(words[word_value]);
  if (static_cast<Argument>(words[word_argument]) == Argument::offsets)
    return place + ": expected " + std::to_string(words[word_table]) + ", the offset before it, to " +
           std::to_string(words[word_rows]) + ", the number of indices";
  return place + ": expected a row of table " + std::to_string(words[word_table]) + ", which has " +
         std::to_string(words[word_rows]);
}

}  // namespace plait::fused

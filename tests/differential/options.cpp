#include "tests/differential/options.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "tests/differential/cases.h"

namespace plait::test {
namespace {

constexpr const char* usage =
    "usage: mpirun ... -x LD_PRELOAD=libplait.so differential [option]...\n"
    "  --collectives A,B,..  only these (default: all)\n"
    "  --budget SECONDS      stop starting cases after that time (20)\n"
    "  --seed N              of everything random (1)\n"
    "  --large               also buffers of tens of MiB\n"
    "  --only N              case N alone\n"
    "  --from N, --to N      cases N to N\n"
    "  --expect-plan NAME    fail unless the plan of that name ran\n"
    "  --plans FILE          force each plan in it in turn, a line each: PLAN, a tab, COLLECTIVES; each must run\n"
    "  --enough N            stop when that plan has run in N cases\n"
    "  --expect-host         fail unless every call went to the host\n"
    "  --any-road            let any call go to the host\n"
    "  --settle              any road; few classes of calls at a time, each often enough that a trial settles\n"
    "  --scenes N            stop after so many sets of classes, whatever the budget\n"
    "  --expect-settled      fail unless trials ran and settled, some on plans\n"
    "  --expect-known        fail unless plans that an earlier job has settled on were taken from the first calls on\n"
    "  --expect-known-host   fail unless what an earlier job has settled on is the host's for all, from the first "
    "calls on\n"
    "  --threads N           that make Plait's calls, each on communicators of its own (1)\n"
    "  --memory heap|mpi|either   where buffers come from (heap): mpi is MPI_Alloc_mem\n"
    "  --device FILE         that driver's memory for some buffers of Plait's calls\n"
    "  --mostly-device       for most of them: then all of a call's may be there\n"
    "  --form blocking|nonblocking|persistent|blocking-or-not|any   of Plait's calls (blocking)\n"
    "  --no-extras           leave out what is not a case\n"
    "  --reference           compare the host with itself, to test the test\n";

std::optional<std::vector<Collective>> parse_collectives(const std::string& text) {
  std::vector<Collective> found;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::size_t i = 0;
    while (i < collective_count && word != name(static_cast<Collective>(i))) ++i;
    if (i == collective_count) return std::nullopt;
    found.push_back(static_cast<Collective>(i));
  }
  return found;
}

// Empty where the file cannot be read, or a line is none.
std::vector<ForcedPlan> read_plans(const std::string& path) {
  std::ifstream file(path);
  std::vector<ForcedPlan> plans;
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    if (tab == 0 || tab == std::string::npos) return {};
    const auto collectives = parse_collectives(line.substr(tab + 1));
    if (!collectives || collectives->empty()) return {};
    plans.push_back({.plan = line.substr(0, tab), .collectives = *collectives});
  }
  return plans;
}

std::optional<Origin> parse_origin(std::string_view text) {
  if (text == "heap") return Origin::heap;
  if (text == "mpi") return Origin::mpi;
  if (text == "either") return Origin::either;
  return std::nullopt;
}

bool set_forms(Options& options, std::string_view text) {
  options.forms.clear();
  if (text == "blocking" || text == "any" || text == "blocking-or-not") options.forms.push_back(Form::blocking);
  if (text == "nonblocking" || text == "any" || text == "blocking-or-not") options.forms.push_back(Form::nonblocking);
#if defined(MPICH_VERSION)
  const bool persistent = text == "persistent";  // MPICH 4.0 cannot free a persistent collective
#else
  const bool persistent = text == "persistent" || text == "any";
#endif
  if (persistent) options.forms.push_back(Form::persistent);
  return !options.forms.empty();
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

bool set_flag(Options& options, std::string_view option) {
  if (option == "--large") return options.large = true;
  if (option == "--expect-host") return options.expect_host = true;
  if (option == "--any-road") return options.any_road = true;
  if (option == "--settle") return options.any_road = options.settle = true;
  if (option == "--expect-settled") return (options.expected = Expected::settled) == Expected::settled;
  if (option == "--expect-known") return (options.expected = Expected::known) == Expected::known;
  if (option == "--expect-known-host") return (options.expected = Expected::host) == Expected::host;
  if (option == "--reference") return options.reference = true;
  if (option == "--no-extras") return !(options.extras = false);
  if (option == "--mostly-device") return options.mostly_device = true;
  return false;
}

bool set_value(Options& options, std::string_view option, const std::string& value) {
  if (option == "--expect-plan") {
    options.expected_plan = value;
    return true;
  }
  if (option == "--plans") {
    options.plans = read_plans(value);
    return !options.plans.empty();
  }
  if (option == "--collectives") {
    const auto collectives = parse_collectives(value);
    if (collectives) options.collectives = *collectives;
    return collectives.has_value();
  }
  if (option == "--memory") {
    const auto origin = parse_origin(value);
    if (origin) options.memory = *origin;
    return origin.has_value();
  }
  if (option == "--form") return set_forms(options, value);
  if (option == "--device") {
    options.device = value;
    return true;
  }
  const auto number = parse_number(value);
  if (!number) return false;
  if (option == "--budget")
    options.budget_s = static_cast<double>(*number);
  else if (option == "--seed")
    options.seed = *number;
  else if (option == "--enough")
    options.enough = static_cast<std::size_t>(*number);
  else if (option == "--scenes")
    options.scenes = static_cast<std::size_t>(*number);
  else if (option == "--threads" && *number > 0 && *number <= 8)
    options.threads = static_cast<int>(*number);
  else if (option == "--from")
    options.first = *number;
  else if (option == "--to")
    options.end = *number + 1;
  else if (option == "--only")
    options.first = *number, options.end = *number + 1;
  else
    return false;
  return true;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, bool speak) {
  Options options;
  for (std::size_t i = 0; i < collective_count; ++i) options.collectives.push_back(static_cast<Collective>(i));
  for (int i = 1; i < argc; ++i) {
    if (set_flag(options, argv[i])) continue;
    if (i + 1 < argc && set_value(options, argv[i], argv[i + 1])) {
      ++i;
      continue;
    }
    if (speak) std::fprintf(stderr, "differential: wrong argument '%s'\n%s", argv[i], usage);
    return std::nullopt;
  }
  if (options.scenes > 0 && !options.end) options.end = options.first + options.scenes * scene_length;
  return options;
}

}  // namespace plait::test

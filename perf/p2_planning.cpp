// How long planning takes: the cheapest program, all programs, and all that a new communicator needs before its first
// call. The medians of many runs, as table rows for docs/p2.md; perf/p2 calls it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "plan/choose/planner.h"
#include "plan/synthesis/enumeration.h"
#include "plan/synthesis/search.h"
#include "topo/discovery.h"

namespace {

using namespace plait;
using namespace plait::topo;
using namespace plait::plan;

double median_seconds(int runs, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  return seconds[static_cast<std::size_t>(runs / 2)];
}

std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "[" : " ") + std::to_string(number);
  return text + "]";
}

void row(const std::string& what, const std::string& asked, double seconds) {
  std::printf("| %s | %s | %.3g us |\n", what.c_str(), asked.c_str(), seconds * 1e6);
}

void cheapest(const std::vector<int>& system, const char* asked) {
  const GridRequest request{system, {std::accumulate(system.begin(), system.end(), 1, std::multiplies<>())}, {0}};
  const auto matrices = parallelism_matrices(request.system, request.axes);
  const GroupModel model = group_model(default_machine(), request, matrices.front());
  const SynthesisTask task = reduction_task(static_cast<int>(system.size()));
  for (const auto& [bytes, size] :
       {std::pair(8.0, "8 B"), std::pair(32768.0, "32 KiB"), std::pair(67108864.0, "64 MiB")}) {
    SearchOptions options{.bytes = bytes};
    if (bytes < 1e6) options.most_chunks = bytes > 16384 ? 2 : 1;
    row("cheapest program for " + listed(system) + ", " + size, asked,
        median_seconds(51, [&] { cheapest_programs(task, model, options, 1); }));
  }
}

std::vector<Location> on_nodes(int nodes, int ranks_per_node) {
  std::vector<Location> locations;
  for (int rank = 0; rank < nodes * ranks_per_node; ++rank) {
    Location location;
    location.host.low = static_cast<std::uint64_t>(rank / ranks_per_node) + 1;
    location.core = rank % ranks_per_node;
    locations.push_back(location);
  }
  return locations;
}

void new_communicator(std::size_t bytes, const char* size) {
  const std::vector<Location> locations = on_nodes(4, 4);
  row(std::string("new communicator of 16 ranks, allreduce of ") + size + ": hierarchy, synthesis, lowering, proof",
      "2 ms", median_seconds(21, [&] {
        Planner planner(Hierarchy::from_locations(locations), 0, {});
        if (planner.choose({.collective = Collective::allreduce, .count = bytes}).plan == nullptr) std::abort();
      }));
}

}  // namespace

int main() {
  std::printf("| what | asked | median |\n| --- | ---: | ---: |\n");
  cheapest({64, 8, 8}, "50 us");
  cheapest({16, 16, 16, 16}, "1 ms");
  cheapest({4, 2, 2, 2, 2, 2}, "1 ms");
  row("listing the 66,755 programs of 4 levels", "20 ms",
      median_seconds(11, [] { list_programs(reduction_task(4), 8, 100000); }));
  row("a process' own location, once in its life (hwloc)", "-", median_seconds(11, [] { discover_location(); }));
  new_communicator(8, "8 B");
  new_communicator(64 << 10, "64 KiB");
  new_communicator(1 << 20, "1 MiB");
  new_communicator(16 << 20, "16 MiB");
}

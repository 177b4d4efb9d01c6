// How long RailWorker::connect takes towards a host that does not answer.
//
//   black_hole RAIL ADDRESS OTHER_ADDRESS    the rail has ADDRESS, and whatever is sent to OTHER_ADDRESS vanishes
//
// Prints the seconds; exits with 77 where there is no UCX.
#include <arpa/inet.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "tl/ucx/rail_worker.h"
#include "tl/ucx/ucp_library.h"

namespace {

// As it stands in a worker's address.
std::string bytes_of(const char* address) {
  const std::uint32_t number = inet_addr(address);
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace plait;
  using namespace plait::tl;
  if (argc != 4) return 2;
  const Result<const UcpLibrary*> ucp = system_ucp();
  if (!ucp.ok()) return 77;
  topo::Rail rail;
  rail.name = rail.network = argv[1];
  const auto worker = RailWorker::open(**ucp, rail, {});
  if (!worker.ok()) return std::fprintf(stderr, "%s\n", worker.status().message().c_str()), 1;
  std::string there = (*worker)->address();
  const std::size_t at = there.find(bytes_of(argv[2]));
  if (at == std::string::npos) return std::fprintf(stderr, "the worker's address does not hold %s\n", argv[2]), 1;
  there.replace(at, sizeof(std::uint32_t), bytes_of(argv[3]));
  const auto begin = std::chrono::steady_clock::now();
  const auto endpoint = [&] {
    const auto turn = (*worker)->lock();
    return (*worker)->connect(1, there);
  }();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!endpoint.ok()) return std::fprintf(stderr, "%s\n", endpoint.status().message().c_str()), 1;
  std::printf("%.3f\n", took.count());
  std::fflush(stdout);
  std::_Exit(0);  // UCX's own end would wait for the connection
}

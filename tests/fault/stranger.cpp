// Another user of a machine on which a job runs: connects to every port that is listened at on some address, as fast as
// it can, and says nothing, noise, or nothing any more. Prints how often.
//
//   stranger FILE ADDRESS    until the file is gone. IPv4; who listens at all addresses is left alone
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

using std::chrono::steady_clock;

// Of this network namespace.
std::vector<sockaddr_in> listeners(const in_addr& wanted) {
  std::vector<sockaddr_in> found;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    unsigned address = 0, port = 0, state = 0;
    if (std::sscanf(line.c_str(), " %*d: %x:%x %*x:%*x %x", &address, &port, &state) != 3 || state != 10) continue;
    if (address != wanted.s_addr) continue;
    found.push_back({.sin_family = AF_INET,
                     .sin_port = htons(static_cast<std::uint16_t>(port)),
                     .sin_addr = wanted,
                     .sin_zero = {}});
  }
  return found;
}

void visit(const sockaddr_in& address, std::mt19937& random, std::deque<int>& held) {
  constexpr std::size_t most_held = 400;
  const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (stranger < 0) return;
  static_cast<void>(connect(stranger, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  unsigned char noise[200];
  for (unsigned char& byte : noise) byte = static_cast<unsigned char>(random());
  if (random() % 2 == 0) static_cast<void>(send(stranger, noise, random() % sizeof noise, MSG_NOSIGNAL | MSG_DONTWAIT));
  if (random() % 4 == 0) {
    close(stranger);
    return;
  }
  held.push_back(stranger);
  if (held.size() <= most_held) return;
  close(held.front());
  held.pop_front();
}

}  // namespace

int main(int argc, char** argv) {
  in_addr address{};
  if (argc != 3 || inet_pton(AF_INET, argv[2], &address) != 1) return 2;
  const auto end = steady_clock::now() + std::chrono::minutes(3);  // if nobody else ends it
  std::mt19937 random(4711);
  std::deque<int> held;
  long visits = 0;
  while (access(argv[1], F_OK) == 0 && steady_clock::now() < end) {
    const std::vector<sockaddr_in> found = listeners(address);
    for (int round = 0; round < 20; ++round)
      for (const sockaddr_in& listener : found) visit(listener, random, held), ++visits;
    if (found.empty()) usleep(10'000);
  }
  std::printf("stranger: %ld connections\n", visits);
}

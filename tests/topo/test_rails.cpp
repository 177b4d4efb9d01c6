#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "topo/rails.h"

namespace plait::topo {
namespace {

Interface interface(const char* name, std::uint32_t address) {
  Interface made;
  made.name = name;
  made.up = made.running = true;
  made.address = address;
  made.netmask = 0xffffff00;
  return made;
}

std::vector<std::string> used(const std::vector<Rail>& rails) {
  std::vector<std::string> names;
  for (const Rail& rail : rails)
    if (rail.used) names.push_back(rail.name);
  return names;
}

using Names = std::vector<std::string>;

std::vector<Interface> host() {
  std::vector<Interface> all = {interface("br0", 0x0a090001),  interface("eth0", 0x0a000001),
                                interface("eth1", 0x0a000101), interface("eth2", 0x0a000201),
                                interface("lo", 0x7f000001),   interface("usb0", 0xa9fe0001)};
  all[0].bridge = true;
  all[3].running = false;
  all[4].loopback = true;
  return all;
}

TEST(Rails, AreInterfacesThatCanReachOtherNodes) {
  std::vector<Rail> rails = rails_of({}, host());
  ASSERT_EQ(rails.size(), 5u);
  EXPECT_EQ(rails[1].network, "10.0.0.0/24");
  EXPECT_EQ(rails[3].state, "no link");
  ASSERT_TRUE(choose_rails(rails, "all").ok());
  EXPECT_EQ(used(rails), (Names{"eth0", "eth1"}));
}

TEST(Rails, AreChosenByNumberOrName) {
  std::vector<Rail> rails = rails_of({}, host());
  ASSERT_TRUE(choose_rails(rails, "1").ok());
  EXPECT_EQ(used(rails), (Names{"eth0"}));
  rails = rails_of({}, host());
  ASSERT_TRUE(choose_rails(rails, "eth1,eth0").ok());
  EXPECT_EQ(used(rails), (Names{"eth1", "eth0"}));
  rails = rails_of({}, host());
  ASSERT_TRUE(choose_rails(rails, "eth2").ok());
  EXPECT_EQ(used(rails), Names{});
  const Status status = choose_rails(rails, "eth9");
  EXPECT_NE(status.message().find("no rail 'eth9'"), std::string::npos) << status.message();
}

TEST(Rails, OfHcasGoFirst) {
  VerbsPort port;
  port.device = "mlx5_0";
  port.active = true;
  port.gid = "fe80:0000:0000:0000:0002:c903:0001:0002";
  std::vector<Rail> rails = rails_of(std::vector{port}, host());
  ASSERT_TRUE(choose_rails(rails, "all").ok());
  EXPECT_EQ(used(rails), (Names{"mlx5_0:1"}));
  EXPECT_EQ(rails[0].network, "InfiniBand fe80:0000:0000:0000");
}

TEST(Rails, ASecondPortOnANetworkIsAnotherRail) {
  const std::vector<Interface> two = {interface("eth0", 0x0a000001), interface("eth1", 0x0a000002)};
  const std::vector<Rail> rails = rails_of({}, two);
  EXPECT_EQ(rails[0].network, "10.0.0.0/24");
  EXPECT_EQ(rails[1].network, "10.0.0.0/24#2");
}

// As many files as this process may have are open while it lives.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(STDERR_FILENO);
    close(next);
    const rlimit few = {static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST(Rails, AreTakenToBeUpWhereNoFileCanBeOpened) {
  Rail loopback, gone;
  loopback.name = "lo";
  gone.name = "nowhere0";
  EXPECT_TRUE(link_is_up(loopback));
  EXPECT_FALSE(link_is_up(gone));
  const NoMoreFiles none;
  EXPECT_TRUE(link_is_up(loopback));
}

}  // namespace
}  // namespace plait::topo

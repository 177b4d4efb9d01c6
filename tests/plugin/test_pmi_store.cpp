// The client of PMI-1 against a launcher that answers from a script.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "plugin/launcher/launcher_turn.h"
#include "plugin/launcher/pmi_store.h"

namespace plait::plugin {
namespace {

struct Exchange {
  std::string question, answer;  // without their line ends
};

// Answers each question with what the script has for it, in pieces of `piece` bytes, and notes questions that it has
// not.
class Launcher {
 public:
  explicit Launcher(std::vector<Exchange> script, std::size_t piece = 1000)
      : script_(std::move(script)), piece_(piece) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Launcher() { stop(); }
  int descriptor() const { return ends_[0]; }
  std::vector<std::string> stop() {
    if (thread_.joinable()) {
      shutdown(ends_[0], SHUT_WR);
      thread_.join();
      close(ends_[0]);
    }
    return unexpected_;
  }

 private:
  void serve() {
    for (const Exchange& exchange : script_) {
      const std::string question = line();
      if (question != exchange.question) unexpected_.push_back(question);
      if (exchange.answer.empty()) break;  // the launcher is gone
      const std::string answer = exchange.answer + "\n";
      for (std::size_t at = 0; at < answer.size(); at += piece_) {
        const std::string part = answer.substr(at, piece_);
        EXPECT_EQ(write(ends_[1], part.data(), part.size()), static_cast<ssize_t>(part.size()));
      }
    }
    close(ends_[1]);
  }
  std::string line() {
    std::string text;
    for (char next = 0; read(ends_[1], &next, 1) == 1 && next != '\n';) text += next;
    return text;
  }

  std::vector<Exchange> script_;
  std::size_t piece_;
  std::array<int, 2> ends_{};
  std::vector<std::string> unexpected_;
  std::thread thread_;
};

const Exchange greeting{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_17_0"};

TEST(PmiStore, PutsAndGets) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    Launcher launcher(
        {greeting,
         {"cmd=put kvsname=kvs_17_0 key=plait-3 value=1.2.3", "cmd=put_result rc=0 msg=success"},
         {"cmd=get kvsname=kvs_17_0 key=plait-3", "cmd=get_result rc=0 msg=success value=1.2.3"},
         {"cmd=get kvsname=kvs_17_0 key=plait-4", "cmd=get_result rc=-1 msg=key_plait-4_not_found value=unknown"}},
        piece);
    const Result<PmiStore> store = PmiStore::open(launcher.descriptor());
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_TRUE(store->put("plait-3", "1.2.3").ok());
    const Result<std::string> found = store->get("plait-3");
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(*found, "1.2.3");
    EXPECT_FALSE(store->get("plait-4").ok());
    EXPECT_EQ(launcher.stop(), std::vector<std::string>());
  }
}

TEST(PmiStore, AnAnswerToAnotherQuestionIsAFailure) {
  Launcher launcher({{greeting.question, "cmd=maxes kvsname_max=256"}});
  const Result<PmiStore> store = PmiStore::open(launcher.descriptor());
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.status().message().find("cmd=maxes"), std::string::npos) << store.status().message();
}

TEST(PmiStore, APutThatIsRefusedIsAFailure) {
  Launcher launcher({greeting, {"cmd=put kvsname=kvs_17_0 key=k value=v", "cmd=put_result rc=-1 msg=duplicate_key"}});
  const Result<PmiStore> store = PmiStore::open(launcher.descriptor());
  ASSERT_TRUE(store.ok());
  EXPECT_FALSE(store->put("k", "v").ok());
}

TEST(PmiStore, ALauncherThatIsGoneIsAFailure) {
  Launcher launcher({greeting, {"cmd=get kvsname=kvs_17_0 key=k", ""}});
  const Result<PmiStore> store = PmiStore::open(launcher.descriptor());
  ASSERT_TRUE(store.ok());
  EXPECT_FALSE(store->get("k").ok());
}

// Whether something comes within the time.
bool hears(int descriptor, int milliseconds) {
  pollfd heard{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&heard, 1, milliseconds) == 1;
}

void say(int descriptor, std::string_view line) {
  EXPECT_EQ(write(descriptor, line.data(), line.size()), static_cast<ssize_t>(line.size()));
}

// A launcher that hundreds of ranks ask at once may end up in a circle of writers (launcher_turn.h). Ranks of one
// process have one turn.
TEST(PmiStore, AsksOneAfterTheOther) {
  std::array<std::array<int, 2>, 2> ends{};
  std::array<std::thread, 2> ranks;
  std::array<char, 256> question{};
  std::array<std::atomic<bool>, 2> answered{};
  const std::string name = "kvs_" + std::to_string(getpid());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[rank].data()), 0);
    say(ends[rank][1], "cmd=my_kvsname kvsname=" + name + "\n");
    Result<PmiStore> opened = PmiStore::open(ends[rank][0]);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_GT(read(ends[rank][1], question.data(), question.size()), 0);
    ranks[rank] = std::thread([store = *opened, &done = answered[rank]] { done = store.get("absent").ok(); });
    if (rank == 0) {
      EXPECT_TRUE(hears(ends[0][1], 10'000));
    }
  }
  EXPECT_FALSE(hears(ends[1][1], 50));
  say(ends[0][1], "cmd=get_result rc=0 msg=success value=1\n");
  EXPECT_TRUE(hears(ends[1][1], 10'000));
  say(ends[1][1], "cmd=get_result rc=0 msg=success value=1\n");
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ranks[rank].join();
    EXPECT_TRUE(answered[rank]);
    for (const int end : ends[rank]) close(end);
  }
}

// Whoever has the turn may have been stopped.
TEST(PmiStore, NobodyWaitsForATurnForEver) {
  const std::string name = "turn_" + std::to_string(getpid());
  const LauncherTurn first(name, 3);
  const auto begin = std::chrono::steady_clock::now();
  const LauncherTurn second(name, 3, 1);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));
  const LauncherTurn other(name, 4);
}

}  // namespace
}  // namespace plait::plugin

#include "core/log.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace plait {
namespace {

class Log : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override { set_verbosity(Verbosity::warnings); }
  static std::string printed() { return ::testing::internal::GetCapturedStderr(); }
};

TEST_F(Log, PrintsAWarningOnce) {
  warn("log test: one");
  warn("log test: one");
  warn("log test: two");
  EXPECT_EQ(printed(), "plait: warning: log test: one\nplait: warning: log test: two\n");
}

TEST_F(Log, PrintsNoMoreThanAsked) {
  info("unseen");
  debug("unseen");
  set_verbosity(Verbosity::silent);
  warn("log test: silenced");
  set_verbosity(Verbosity::info);
  info("seen");
  info("seen");
  debug("unseen");
  set_verbosity(Verbosity::debug);
  debug("seen");
  EXPECT_EQ(printed(), "plait: info: seen\nplait: info: seen\nplait: debug: seen\n");
}

TEST_F(Log, AWarningThatWasSilencedIsStillToBePrinted) {
  set_verbosity(Verbosity::silent);
  warn("log test: later");
  set_verbosity(Verbosity::warnings);
  warn("log test: later");
  EXPECT_EQ(printed(), "plait: warning: log test: later\n");
}

TEST_F(Log, KeepsAMessageOnOneLine) {
  warn("log test: a\nb\r\nc");
  EXPECT_EQ(printed(), "plait: warning: log test: a b  c\n");
}

TEST_F(Log, LeavesErrnoAlone) {
  errno = 1234;
  warn("log test: errno");
  EXPECT_EQ(errno, 1234);
  printed();
}

TEST_F(Log, PrintsAWarningOnceWhenThreadsRace) {
  std::vector<std::jthread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { warn("log test: race"); });
  threads.clear();
  EXPECT_EQ(printed(), "plait: warning: log test: race\n");
}

}  // namespace
}  // namespace plait

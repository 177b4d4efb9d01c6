// A program whose output is read while it runs.
#include "tuner/commands/child_output.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace plait::tuner {
namespace {

std::string all_of(std::FILE* text) {
  std::string read;
  for (int character = std::fgetc(text); character != EOF; character = std::fgetc(text))
    read += static_cast<char>(character);
  return read;
}

TEST(ChildOutput, HasBothOutputsAndHowItEnded) {
  Result<ChildOutput> child = ChildOutput::of("sh -c 'echo said; echo wrong >&2; exit 3'");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(all_of(child->text()), "said\nwrong\n");
  const int status = child->wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(ChildOutput, WhatIsNotThereEndsByTheShellsWord) {
  Result<ChildOutput> child = ChildOutput::of("/nowhere/no-such-program");
  ASSERT_TRUE(child.ok());
  EXPECT_NE(all_of(child->text()), "");
  EXPECT_NE(child->wait(), 0);
}

// Who goes away does not leave it behind, nor wait for it; one that was moved ends once.
TEST(ChildOutput, EndsWithItsOwner) {
  const auto begin = std::chrono::steady_clock::now();
  {
    Result<ChildOutput> child = ChildOutput::of("sleep 600");
    ASSERT_TRUE(child.ok());
    const ChildOutput moved = std::move(*child);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace plait::tuner

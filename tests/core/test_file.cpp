// Small files: read whole, replaced whole.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "plait_file.XXXXXX").string();
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    folder_ = made;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_;
};

TEST_F(File, ComesBackAsItWasWritten) {
  const std::string text("one\0two\n", 8);
  ASSERT_TRUE(replace_file(path("a"), text).ok());
  EXPECT_EQ(*read_file(path("a"), 100), text);
  ASSERT_TRUE(replace_file(path("a"), "").ok());
  EXPECT_EQ(*read_file(path("a"), 100), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(File, IsRefusedByItsSize) {
  ASSERT_TRUE(replace_file(path("a"), "12345678").ok());
  EXPECT_TRUE(read_file(path("a"), 8).ok());
  EXPECT_FALSE(read_file(path("a"), 7).ok());
  fs::resize_file(path("a"), std::uintmax_t{1} << 40);
  const auto large = read_file(path("a"), 1 << 20);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.status().code(), Code::invalid);
  EXPECT_NE(large.status().message().find("larger than 1 MiB"), std::string::npos) << large.status().message();
}

TEST_F(File, PipesAndFoldersAreNotRead) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& name : {path("pipe"), path("."), path("absent")}) {
    const auto text = read_file(name, 100);
    ASSERT_FALSE(text.ok()) << name;
    EXPECT_NE(text.status().message().find(name), std::string::npos) << text.status().message();
  }
}

TEST_F(File, NothingButARegularFileIsReplaced) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(replace_file(path("pipe"), "text").code(), Code::invalid);
  EXPECT_EQ(replace_file(path("."), "text").code(), Code::invalid);
  EXPECT_EQ(replace_file("/dev/null", "text").code(), Code::invalid);
  EXPECT_EQ(replace_file(path("absent/a"), "text").code(), Code::unavailable);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(files(), 1u);
}

TEST_F(File, ALinkStaysOne) {
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  fs::create_symlink(path("a"), path("link"));
  ASSERT_TRUE(replace_file(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(*read_file(path("a"), 100), "new");
}

TEST_F(File, KeepsItsPermissions) {
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(replace_file(path("a"), "new").ok());
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace plait

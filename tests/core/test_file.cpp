// Small files: read whole, replaced whole; in a folder that only the user writes to.
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

// ---- A folder of the user's own ----

class OwnFolderTest : public File {
 protected:
  // The code of opening a folder; ok where it is open.
  Code opening(const std::string& name, OwnFolder::Missing missing = OwnFolder::Missing::fails) const {
    const auto folder = OwnFolder::open(path(name.c_str()), missing);
    EXPECT_TRUE(folder.ok() || folder.status().message().find(path(name.c_str())) != std::string::npos)
        << folder.status().message();
    return folder.status().code();
  }
  OwnFolder open_own() const { return std::move(OwnFolder::open(path("own"), OwnFolder::Missing::is_made)).value(); }
  fs::perms mode(const std::string& name) const { return fs::status(path(name.c_str())).permissions(); }
};

TEST_F(OwnFolderTest, IsMadeForItsUserAloneWhereItIsMissing) {
  const mode_t mask = umask(0);
  EXPECT_EQ(opening("a/b/own"), Code::unavailable);
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(opening("a/b/own", OwnFolder::Missing::is_made), Code::ok);
  umask(mask);
  for (const char* made : {"a", "a/b", "a/b/own"}) EXPECT_EQ(mode(made), fs::perms::owner_all) << made;
  EXPECT_EQ(opening("a/b/own"), Code::ok);
}

TEST_F(OwnFolderTest, FilesComeBackAsTheyWereWritten) {
  const OwnFolder folder = open_own();
  EXPECT_FALSE(folder.read("a", 100).ok());
  ASSERT_TRUE(folder.replace("a", "old").ok());
  ASSERT_TRUE(folder.replace("a", "new").ok());
  EXPECT_EQ(*folder.read("a", 100), "new");
  EXPECT_FALSE(folder.read("a", 2).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(path("own")), {}), 1);
  EXPECT_EQ(mode("own/a"), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OwnFolderTest, IsNoLinkAndNoFile) {
  fs::create_directory(path("real"));
  fs::permissions(path("real"), fs::perms::owner_all);
  fs::create_directory_symlink(path("real"), path("link"));
  fs::create_directory_symlink(path("nowhere"), path("dangling"));
  ASSERT_TRUE(replace_file(path("file"), "text").ok());
  for (const char* name : {"link", "dangling", "file"})
    for (const auto missing : {OwnFolder::Missing::fails, OwnFolder::Missing::is_made})
      EXPECT_EQ(opening(name, missing), Code::invalid) << name;
  EXPECT_FALSE(fs::exists(path("nowhere")));
  EXPECT_EQ(opening("link/own", OwnFolder::Missing::is_made), Code::ok);  // a link above it is the user's own
}

TEST_F(OwnFolderTest, IsRefusedWhereOthersCouldWriteToIt) {
  fs::create_directory(path("own"));
  for (const auto others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(path("own"), fs::perms::owner_all | others);
    EXPECT_EQ(opening("own"), Code::invalid);
  }
  fs::permissions(path("own"), fs::perms::owner_all | fs::perms::group_read | fs::perms::others_exec);
  EXPECT_EQ(opening("own"), Code::ok);
  if (geteuid() != 0) return;  // who else could give a folder away?
  ASSERT_EQ(chown(path("own").c_str(), 4711, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(opening("own"), Code::invalid);
}

TEST_F(OwnFolderTest, LinksInItAreNotFollowed) {
  const OwnFolder folder = open_own();
  ASSERT_TRUE(replace_file(path("precious"), "precious").ok());
  fs::create_symlink(path("precious"), path("own/a"));
  EXPECT_FALSE(folder.read("a", 100).ok());
  ASSERT_TRUE(folder.replace("a", "text").ok());
  EXPECT_FALSE(fs::is_symlink(path("own/a")));
  EXPECT_EQ(*folder.read("a", 100), "text");
  EXPECT_EQ(*read_file(path("precious"), 100), "precious");
  ASSERT_EQ(mkfifo(path("own/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(folder.read("pipe", 100).ok());
}

// What is put in its place afterwards is not it.
TEST_F(OwnFolderTest, StaysTheOneThatWasOpened) {
  const OwnFolder folder = open_own();
  fs::rename(path("own"), path("moved"));
  fs::create_directory(path("other"));
  fs::create_directory_symlink(path("other"), path("own"));
  ASSERT_TRUE(folder.replace("a", "text").ok());
  EXPECT_TRUE(fs::exists(path("moved/a")));
  EXPECT_TRUE(fs::is_empty(path("other")));
}

}  // namespace
}  // namespace plait

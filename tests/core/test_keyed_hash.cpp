// Against the published values: RFC 7693, appendix B, and the reference's known answers with a key (blake2-kat.h).
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/keyed_hash.h"

namespace plait {
namespace {

std::string hexadecimal(const KeyedHash& hash) {
  std::string text;
  for (const std::byte byte : hash)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> shift & 15];
  return text;
}

std::vector<std::byte> counted(std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(i);
  return result;
}

TEST(KeyedHash, HasThePublishedValuesWithoutAKey) {
  constexpr std::string_view abc = "abc";
  EXPECT_EQ(hexadecimal(keyed_hash({}, std::as_bytes(std::span(abc)))),
            "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982");
  EXPECT_EQ(hexadecimal(keyed_hash({}, {})), "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9");
}

TEST(KeyedHash, HasThePublishedValuesWithAKey) {
  const struct {
    std::size_t bytes;
    const char* hash;
  } known[] = {{0, "48a8997da407876b3d79c0d92325ad3b89cbb754d86ab71aee047ad345fd2c49"},
               {1, "40d15fee7c328830166ac3f918650f807e7e01e177258cdc0a39b11f598066f1"},
               {64, "8975b0577fd35566d750b362b0897a26c399136df07bababbde6203ff2954ed4"},
               {65, "21fe0ceb0052be7fb0f004187cacd7de67fa6eb0938d927677f2398c132317a8"},
               {255, "3fb735061abc519dfe979e54c1ee5bfad0a9d858b3315bad34bde999efd724dd"}};
  for (const auto& one : known) EXPECT_EQ(hexadecimal(keyed_hash(counted(32), counted(one.bytes))), one.hash);
}

TEST(KeyedHash, AnyDifferenceCounts) {
  const KeyedHash hash = keyed_hash(counted(32), counted(7));
  EXPECT_TRUE(same_hash(hash, hash));
  for (std::size_t byte = 0; byte < hash.size(); ++byte) {
    KeyedHash other = hash;
    other[byte] ^= std::byte{0x80};
    EXPECT_FALSE(same_hash(hash, other)) << byte;
  }
}

TEST(KeyedHash, RandomBytesDiffer) {
  KeyedHash one{}, other{};
  ASSERT_TRUE(fill_random(one).ok());
  ASSERT_TRUE(fill_random(other).ok());
  EXPECT_FALSE(same_hash(one, other));
  EXPECT_FALSE(same_hash(one, KeyedHash{}));
}

}  // namespace
}  // namespace plait

// An inbox has a place for each flag and each slice, and none of them twice; announcements are read in their run alone.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "fused/exchange/inbox.h"

namespace plait::fused {
namespace {

Blocks some_blocks(std::size_t count, std::uint64_t row_bytes) {
  return Blocks(count, Block{.offset = 0, .row_bytes = row_bytes, .rows = 3});
}

// Where the places begin, and how long they are.
void expect_apart(const std::map<std::uint64_t, std::uint64_t>& places, std::uint64_t bytes) {
  std::uint64_t end = 2 * sizeof(PostedAnnouncement);
  for (const auto& [begin, length] : places) {
    EXPECT_GE(begin, end);
    EXPECT_EQ(begin % slice_alignment, 0u);
    end = begin + length;
  }
  EXPECT_LE(end, bytes);
}

TEST(Inbox, HasAPlaceForEverything) {
  const std::vector<Blocks> incoming = {some_blocks(5, 100), {}, some_blocks(40, 7), some_blocks(3, 4096)};
  const std::vector<std::uint64_t> notes = {24, 8, 0, 100};
  const std::vector<std::uint8_t> near = {1, 0, 1, 1};
  for (const bool staged : {false, true}) {
    const InboxShape shape = inbox_shape(incoming, notes, near, staged);
    std::map<std::uint64_t, std::uint64_t> places;
    for (std::size_t source = 0; source < incoming.size(); ++source) {
      if (near[source] == 0) continue;
      for (const std::uint32_t run : {0u, 1u})
        if (notes[source] > 0) places[shape.parts[source].notes_at + note_offset(run, notes[source])] = notes[source];
      places[shape.parts[source].flags_at] = incoming[source].size() * sizeof(std::atomic<std::uint32_t>);
      EXPECT_EQ(shape.parts[source].slices_at != 0, staged);
      if (staged) places[shape.parts[source].slices_at] = packed(incoming[source]).back();
    }
    EXPECT_EQ(places.size(), staged ? 10u : 7u);
    expect_apart(places, shape.bytes);
  }
}

TEST(Inbox, PackedSlicesStandApart) {
  EXPECT_EQ(packed({{.offset = 9, .row_bytes = 10, .rows = 7}, {.offset = 0, .row_bytes = 64, .rows = 1}}),
            (std::vector<std::uint64_t>{0, 128, 192}));
  EXPECT_EQ(packed({}), (std::vector<std::uint64_t>{0}));
}

TEST(Inbox, AnAnnouncementIsReadInItsRunAlone) {
  PostedAnnouncement posted;
  Announcement said;
  EXPECT_FALSE(posted.read(1, said));
  posted.post({.run = 3, .well = 0, .complaint = {.words = {1, 2, 3, 4, 5}}});
  EXPECT_FALSE(posted.read(1, said));
  ASSERT_TRUE(posted.read(3, said));
  EXPECT_EQ(said.well, 0u);
  EXPECT_EQ(said.complaint.words[4], 5);
}

}  // namespace
}  // namespace plait::fused

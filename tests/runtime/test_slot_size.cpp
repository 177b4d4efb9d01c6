#include "runtime/team/slot_size.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace plait::runtime {
namespace {

int wish(const std::vector<std::size_t>& lengths, int self) { return wished_class(lengths, self); }

TEST(WishedClass, HoldsEqualMessages) {
  EXPECT_EQ(wish({8, 8, 8, 8}, 0), 0);
  EXPECT_EQ(wish({9, 9, 9, 9}, 0), 1);
  EXPECT_EQ(wish({1000, 1000, 1000, 1000}, 0), 7);
  EXPECT_EQ(wish({1024, 1024, 1024, 1024}, 0), 7) << "a power of two fits without waste";
}

TEST(WishedClass, IsTheShortestWhereSlotsOfAllWouldHoldMoreThanAFewMessagesNeed) {
  std::vector<std::size_t> lengths(64, 0);
  lengths[7] = lengths[9] = 512;
  EXPECT_EQ(wish(lengths, 0), 0) << "two of a length that 64 slots would have to hold";
  lengths.assign(4, 0);
  lengths[1] = 512;
  EXPECT_EQ(wish(lengths, 0), 6);
}

// The same by one length as by lengths that differ a little.
TEST(WishedClass, DoesNotHingeOnMessagesBeingQuiteEqual) {
  for (const int ranks : {2, 3, 4, 8, 64, 1000})
    for (std::size_t length = 2; length < 40'000; length = length * 5 / 4 + 1) {
      std::vector<std::size_t> lengths(static_cast<std::size_t>(ranks), length);
      const int equal = wish(lengths, 0);
      lengths.back() = length - 1;
      EXPECT_EQ(wish(lengths, 0), equal) << ranks << " ranks, " << length << " bytes";
    }
}

TEST(WishedClass, IsTheShortestWhereOneMessageOfManyIsLong) {
  std::vector<std::size_t> lengths(64, 0);
  lengths[7] = 10000;
  EXPECT_EQ(wish(lengths, 0), 0);
}

TEST(WishedClass, DoesNotLookAtWhatStaysHere) { EXPECT_EQ(wish({4000, 8, 8}, 0), 0); }

TEST(WishedClass, IsTheShortestForMessagesThatFitNoSlot) {
  EXPECT_EQ(wish({std::size_t{1} << 40, std::size_t{1} << 40}, 0), 0);
}

void learn_equal(SlotSize& size, int ranks, std::size_t bytes, int calls) {
  for (int call = 0; call < calls; ++call)
    size.learn({.ranks = ranks, .for_host = 0, .slot_bytes = bytes * static_cast<std::size_t>(ranks)});
}

TEST(SlotSize, GrowsOnlyWhenAllOfTheLastCallsWishIt) {
  SlotSize size(4);
  learn_equal(size, 4, slot_bytes(0), 1);
  EXPECT_EQ(size.bytes(), slot_bytes(0));
  learn_equal(size, 4, slot_bytes(7), 3);
  EXPECT_EQ(size.bytes(), slot_bytes(0));
  learn_equal(size, 4, slot_bytes(7), 1);
  EXPECT_EQ(size.bytes(), slot_bytes(7));
}

TEST(SlotSize, IsWhatAllRanksWish) {
  for (int wished = 0; wished < slot_classes; ++wished) {
    SlotSize size(2);
    learn_equal(size, 2, slot_bytes(wished), 4);
    EXPECT_EQ(size.bytes(), slot_bytes(wished));
  }
}

int turns_of_the_host(SlotSize& size) {
  int turns = 0;
  for (; size.is_hosts(); size.note_host_call()) ++turns;
  return turns;
}

TEST(SlotSize, TheHostHasMoreAndMoreTurnsWhileMostRanksWishIt) {
  SlotSize size(4);
  EXPECT_EQ(turns_of_the_host(size), 0);
  for (const int turns : {7, 15, 31, 63, 63}) {
    size.learn({.ranks = 4, .for_host = 3, .slot_bytes = 64});
    EXPECT_EQ(turns_of_the_host(size), turns);
  }
  size.learn({.ranks = 4, .for_host = 2, .slot_bytes = 64});
  EXPECT_EQ(turns_of_the_host(size), 0);
  size.learn({.ranks = 4, .for_host = 4, .slot_bytes = 64});
  EXPECT_EQ(turns_of_the_host(size), 7);
}

// Of a gatherv: what goes beside its plan costs, so that it is seldom where nothing changes.
int turns_without_learning(SlotSize& size) {
  int turns = 0;
  for (; !size.learns(); size.note_own_call()) ++turns;
  return turns;
}

TEST(SlotSize, OfGathervIsAskedForAfterMoreAndMoreCalls) {
  SlotSize size(4, Learns::now_and_then);
  EXPECT_TRUE(size.learns());
  for (const int turns : {1, 3, 7, 15, 31, 63, 127, 255, 255}) {
    size.learn({.ranks = 4, .for_host = 2, .slot_bytes = 64});
    EXPECT_FALSE(size.is_hosts());
    EXPECT_EQ(turns_without_learning(size), turns);
  }
  for (const int turns : {7, 15, 31, 63, 127, 255, 255}) {
    size.learn({.ranks = 4, .for_host = 3, .slot_bytes = 64});
    EXPECT_EQ(turns_of_the_host(size), turns);
    EXPECT_TRUE(size.learns()) << "the next one that runs here is to see whether that still holds";
  }
  size.learn({.ranks = 4, .for_host = 0, .slot_bytes = 64});
  EXPECT_EQ(turns_without_learning(size), 1);
  EXPECT_EQ(size.bytes(), slot_bytes(usual_slot_class));
}

TEST(SlotSize, OfOthersIsAskedForInEachCall) {
  SlotSize size(4);
  size.learn({.ranks = 4, .for_host = 0, .slot_bytes = 64});
  EXPECT_TRUE(size.learns());
}

TEST(Wish, IsForTheHostByTheMeanLength) {
  const std::vector<std::size_t> lengths = {1000, 0, 100};
  const auto wishes_host = [&](std::size_t from, std::size_t to) {
    const Collective collective = Collective::alltoallv;
    HostRow row{.collectives = set_of(collective), .of = HostRow::Of::message, .from = from, .to = to};
    const HostEntries entries = {{collective, {row}}};
    return wish_for(lengths, 0, collective, HostSizes(entries, {.ranks = 3, .between_nodes = false}, true)).host;
  };
  EXPECT_TRUE(wishes_host(50, 51));
  EXPECT_FALSE(wishes_host(51, HostRow::no_limit));
  EXPECT_FALSE(wishes_host(0, 50));
}

TEST(SlotSize, IsShorterWhereTheRanksAreMany) {
  SlotSize few(2), many(128);
  learn_equal(few, 2, slot_bytes(slot_classes - 1), 4);
  learn_equal(many, 128, slot_bytes(slot_classes - 1), 4);
  EXPECT_GT(few.bytes(), many.bytes());
  EXPECT_LE(many.bytes() * 128, 64u * 1024);
}

std::size_t learned(int ranks, std::size_t bytes) {
  SlotSize size(ranks);
  const int wished = wish(std::vector<std::size_t>(static_cast<std::size_t>(ranks), bytes), 0);
  learn_equal(size, ranks, slot_bytes(wished), 4);
  return size.bytes();
}

TEST(SlotSize, HoldsWhatARanksSlotsHaveRoomFor) {
  for (const auto& [ranks, bytes] : {std::pair(16, 4000), {64, 1000}, {128, 500}, {100, 640}, {256, 240}}) {
    const std::size_t slot = learned(ranks, static_cast<std::size_t>(bytes));
    EXPECT_GE(slot, static_cast<std::size_t>(bytes) + slot_header_bytes) << ranks;
    EXPECT_LE(slot * static_cast<std::size_t>(ranks), 64U * 1024) << ranks;
    EXPECT_EQ(slot % 8, 0U) << ranks;
  }
}

TEST(SlotSize, IsTheShortestWhereNoSlotsHaveRoom) {
  EXPECT_EQ(learned(64, 1024), slot_bytes(0));
  EXPECT_EQ(learned(256, 256), slot_bytes(0));
  EXPECT_EQ(SlotSize(1 << 20).bytes(), slot_bytes(0)) << "less holds no length";
}

}  // namespace
}  // namespace plait::runtime

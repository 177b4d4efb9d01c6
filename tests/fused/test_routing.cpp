// Which rows pass between ranks, and how they are cut: each choice has one row, in the order of experts and tokens; no
// piece is of two experts, and both ends cut alike.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "fused/moe/pieces.h"
#include "fused/moe/routing.h"

namespace plait::fused {
namespace {

TEST(Routing, SortsByExpertAndToken) {
  Routing routing({.entries = 8, .capacity = 4, .first_experts = {0, 2, 2, 3}});
  const std::vector<std::int32_t> experts = {1, 2, 0, -1, 1, 2, 0, 1};
  Complaint complaint;
  // Rank 0 would get five rows.
  ASSERT_TRUE(routing.sort(experts.data(), complaint));
  EXPECT_EQ(moe_complaint_text(complaint), "experts: 5 rows for experts of rank 0: expected at most 4, the capacity");
  const std::vector<std::int32_t> fewer = {1, 2, 0, -1, 1, 2, 0, -1};
  ASSERT_FALSE(routing.sort(fewer.data(), complaint));
  EXPECT_EQ(routing.rows(0), 4);
  EXPECT_EQ(routing.rows(1), 0);
  EXPECT_EQ(routing.rows(2), 2);
  EXPECT_EQ(std::vector<std::int64_t>(routing.counts(0), routing.counts(0) + 2), (std::vector<std::int64_t>{2, 2}));
  std::vector<std::int64_t> entries;
  for (std::int64_t row = 0; row < 4; ++row) entries.push_back(routing.entry(0, row));
  EXPECT_EQ(entries, (std::vector<std::int64_t>{2, 6, 0, 4}));
  EXPECT_EQ(routing.entry(2, 1), 5);
  EXPECT_EQ(routing.place(6).owner, 0);
  EXPECT_EQ(routing.place(6).row, 1);
  EXPECT_EQ(routing.place(3).owner, Routing::dropped);
}

TEST(Routing, NamesAnExpertThatThereIsNot) {
  Routing routing({.entries = 2, .capacity = 4, .first_experts = {0, 2}});
  Complaint complaint;
  for (const std::int32_t wrong : {2, -2, 1 << 30}) {
    const std::vector<std::int32_t> experts = {0, wrong};
    ASSERT_TRUE(routing.sort(experts.data(), complaint));
    EXPECT_EQ(moe_complaint_text(complaint), "experts[1]: " + std::to_string(wrong) + ": expected -1, for none, to 1");
  }
}

TEST(Routing, NamesAListThatIsMissing) {
  for (const char* name : {"x", "experts", "weights"})
    EXPECT_EQ(moe_complaint_text(missing_list(name)), std::string(name) + ": NULL");
}

TEST(Pieces, HaveEveryRowOnceAndOneExpert) {
  std::mt19937 random(3);
  const auto draw = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 300; ++round) {
    Pieces::Shape shape{.experts = draw(6), .capacity = 0, .piece_rows = draw(20) + 1};
    std::vector<std::int64_t> counts;
    for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
      counts.push_back(draw(3) == 0 ? 0 : draw(90));
      shape.capacity += counts.back();
    }
    Pieces pieces(shape);
    pieces.cut(counts.data());
    EXPECT_LE(static_cast<std::int64_t>(pieces.all().size()), Pieces::most(shape));
    EXPECT_EQ(pieces.rows(), shape.capacity);
    std::int64_t row = 0;
    std::size_t number = 0;
    for (std::int64_t expert = 0; expert < shape.experts; ++expert)
      for (const std::int64_t end = row + counts[static_cast<std::size_t>(expert)]; row < end; ++number) {
        const Piece& piece = pieces.all()[number];
        EXPECT_EQ(piece.expert, expert);
        EXPECT_EQ(piece.rows.begin, row);
        EXPECT_LE(piece.rows.length(), shape.piece_rows);
        EXPECT_LE(piece.rows.end, end);
        for (; row < piece.rows.end; ++row) EXPECT_EQ(pieces.piece_of(expert, row), number);
      }
    EXPECT_EQ(number, pieces.all().size());
  }
}

}  // namespace
}  // namespace plait::fused

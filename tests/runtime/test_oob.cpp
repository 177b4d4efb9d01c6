// What every Oob promises, shown of that of ranks in one process, on which the runtime's other tests stand.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/team/single_copy.h"
#include "tests/runtime/in_process_oob.h"

namespace plait::runtime {
namespace {

std::string text_of(const Status& status) { return status.ok() ? "" : status.message(); }

class Oobs : public testing::TestWithParam<int> {};

TEST_P(Oobs, GathersInTheOrderOfRanks) {
  InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    std::vector<int> all(static_cast<std::size_t>(oob.ranks()), -1), expected(all.size());
    std::iota(expected.begin(), expected.end(), 100);
    const int mine = 100 + oob.rank();
    const Status status = oob.gather_all(&mine, sizeof mine, all.data(), "gather");
    return all == expected ? text_of(status) : "not in order";
  }),
            "");
}

TEST_P(Oobs, ReducesAndTells) {
  InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    const int ranks = oob.ranks();
    std::array<int, 2> sums{};
    if (Status met = reduce_all(oob, std::array<int, 2>{1, oob.rank()}, sums, Op::sum, "sum"); !met.ok())
      return met.message();
    std::array<double, 1> least{};
    if (Status met = reduce_all(oob, std::array<double, 1>{0.5 - oob.rank()}, least, Op::min, "least"); !met.ok())
      return met.message();
    std::uint64_t told = oob.rank() == 0 ? 4242 : 0;
    if (Status met = oob.tell_all(&told, sizeof told, "tell"); !met.ok()) return met.message();
    return sums[0] == ranks && sums[1] == ranks * (ranks - 1) / 2 && least[0] == 1.5 - ranks && told == 4242 ? ""
                                                                                                             : "wrong";
  }),
            "");
}

TEST_P(Oobs, WhoWithdrawsIsNamedByAllOthers) {
  InProcessJob job(GetParam());
  const int gone = GetParam() / 2;
  EXPECT_EQ(job.run([gone](Oob& oob) -> std::string {
    if (oob.rank() == gone) {
      oob.withdraw();
      return "";
    }
    const Status met = oob.meet("meet");
    const std::string name = "rank " + std::to_string(gone) + " is";
    return met.code() == Code::peer_failed && met.message().find(name) != std::string::npos ? "" : "not told";
  }),
            "");
}

TEST_P(Oobs, GoOnTogetherOrNotAtAll) {
  InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    if (Status all = oob.go_on_together({}); !all.ok()) return all.message();
    const bool lacks = oob.rank() == oob.ranks() - 1;
    const Status some = oob.go_on_together(lacks ? Status(Code::unavailable, "no memory") : Status());
    return some.code() == Code::unavailable ? "" : "one went on alone";
  }),
            "");
}

// What the slowest rank finds holds for all.
TEST_P(Oobs, RanksAgreeOnTheSingleCopy) {
  InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    const Result<SingleCopySizes> sizes =
        agree_on_single_copy(oob, {1024u << (oob.rank() % 3), oob.rank() == 0 ? never : 4096});
    if (!sizes.ok()) return sizes.status().message();
    const std::uint64_t largest = 1024u << std::min(oob.ranks() - 1, 2);
    return sizes->kernel_from == largest && sizes->mapped_from == never ? "" : "not the largest";
  }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Oobs, testing::Values(2, 3, 16, 1024));

}  // namespace
}  // namespace plait::runtime

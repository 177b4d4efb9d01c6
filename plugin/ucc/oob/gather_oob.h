// What ranks do together out of band (runtime/oob/oob.h), where all that they have is an all-gather.
//
// Each step is one of a block of 64 bytes from each rank: whether it goes on, and what it brings, if there is room;
// what is longer follows in a second one. A rank that withdraws waits for the others here: they have no other way to
// hear of it. Nothing is left that could tell of a failure later: the channels themselves do that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/layer.h"
#include "plugin/ucc/oob/gathering.h"
#include "runtime/oob/oob.h"

namespace plait::plugin {

class GatherOob final : public Oob {
 public:
  // `exchange` outlives it. Throws where memory is short.
  explicit GatherOob(Gathering& gathering);

  int rank() const override { return gathering_.rank(); }
  int ranks() const override { return gathering_.ranks(); }
  Status meet(std::string_view what) override;
  Status gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) override;
  Status tell_all(void* data, std::size_t bytes, std::string_view what) override;
  // Teams of these ranks are set up once: none has failed before all have come.
  Status gather_all_unless(const std::function<Status()>& failed, const void* mine, std::size_t bytes, void* all,
                           std::string_view what) override;
  // Rank 0 holds all of them at once.
  void gather_texts(const std::string& mine, const std::function<void(int rank, std::string text)>& take) override;
  Status reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                    std::string_view what) override;
  void withdraw() noexcept override;
  Status go_on_together(const Status& mine) noexcept override;
  void abandon() noexcept override {}
  void leave_word(int) noexcept override {}
  bool word_left() override { return false; }
  std::unique_ptr<FailureNotice> make_notice(std::uint64_t number, std::vector<int> near) override;

 private:
  struct Block {
    std::uint32_t missing = 0;
    std::array<std::byte, 60> data{};
  };
  static_assert(sizeof(Block) == 64);
  // After a step: which rank does not go on, or that it failed for all; negative: none.
  static constexpr int nobody = -1, broken = -2;

  int step(const Block& mine) noexcept;
  Status gather(const void* mine, std::size_t bytes, std::byte* all, std::string_view what);

  Gathering& gathering_;
  std::vector<Block> blocks_;  // of all ranks, made beforehand
};

}  // namespace plait::plugin

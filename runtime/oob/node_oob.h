// Steps through the memory that the ranks of a node share: each leaves there what it has, the node's first rank
// exchanges that with the other nodes' first ones by the host's messages, and leaves there what all have. A step wakes
// each rank once or twice, where a collective of the host wakes it in each of its rounds: with many ranks a core that
// is what a set-up takes (docs/scale.md).
//
// The first ranks' exchange is Bruck's all-gather (Bruck et al., Efficient Algorithms for All-to-All Communications in
// Multiport Message-Passing Systems, 1997, section 4): in round k of ceil(log2 nodes) each sends what it has to the one
// 2^k nodes before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/reduction.h"
#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "topo/hierarchy.h"

namespace plait::runtime {

class NodeOob final : public Oob {
 public:
  // What a node's ranks share for it: zeros at the beginning.
  static constexpr std::size_t memory_bytes = 4096 + 2 * (std::size_t{128} << 10);
  // So that there is room for a number of each.
  static constexpr int most_ranks = 16384;

  // For all ranks of `base`, which are where `hierarchy` says, know each other's messages, and have come so far that
  // none waits for another one's call. `memory` is this rank's view of the node's. Both outlive this. Throws where
  // memory is short; afterwards it needs none.
  NodeOob(Oob& base, const Hierarchy& hierarchy, std::span<std::byte> memory);
  ~NodeOob() override;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  Status meet(std::string_view what) override;
  Status gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) override;
  Status tell_all(void* data, std::size_t bytes, std::string_view what) override;
  Status reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                    std::string_view what) override;
  Status go_on_together(const Status& mine) noexcept override;
  void withdraw() noexcept override;
  void abandon() noexcept override { base_.abandon(); }

  Status gather_all_unless(const std::function<Status()>& failed, const void* mine, std::size_t bytes, void* all,
                           std::string_view what) override {
    return base_.gather_all_unless(failed, mine, bytes, all, what);
  }
  void gather_texts(const std::string& mine, const std::function<void(int rank, std::string text)>& take) override {
    base_.gather_texts(mine, take);
  }
  void leave_word(int rank) noexcept override { base_.leave_word(rank); }
  bool word_left() override { return base_.word_left(); }
  std::unique_ptr<FailureNotice> make_notice(std::uint64_t number, std::vector<int> near) override {
    return base_.make_notice(number, std::move(near));
  }
  Status part(std::optional<int> colour, std::unique_ptr<Oob>& made, std::string_view what) override {
    return base_.part(colour, made, what);
  }
  HostMessages* messages() override { return base_.messages(); }

 private:
  struct Memory;
  enum class Way { gather, tell, reduce };
  // Of a piece that the memory has room for.
  struct Step {
    Way way;
    std::size_t bytes;  // of each rank
    Reducer reducer;
  };

  bool leads() const { return local_ == 0; }
  std::size_t members(std::size_t node) const { return first_[node + 1] - first_[node]; }
  std::size_t row_bytes(const Step& step, std::size_t node) const;
  std::size_t offset(const Step& step, std::size_t distance) const;
  std::size_t nodes() const { return first_.size() - 1; }
  std::byte* slot(const Step& step, std::size_t local) const;
  const std::byte* result() const;
  // False: the step has failed.
  bool run(const Step& step, const void* mine);
  bool lead(const Step& step);
  void fold(const Step& step, std::byte* row) const;
  void unfold(const Step& step, std::byte* result) const;
  bool exchange(const Step& step);
  int leader_at(std::size_t distance) const;
  void leave_rows(std::int64_t missing) noexcept;
  void note_missing(int rank) noexcept;
  template <class Done>
  void wait(std::atomic<std::uint32_t>& word, Done&& done);
  Status failed(Code code, std::string_view what, int missing) const noexcept;
  Status gone(std::string_view what) noexcept;

  Oob& base_;
  Memory& memory_;
  const Hierarchy hierarchy_;
  const int rank_, ranks_;
  std::vector<std::size_t> first_;  // vrank of each node, and the ranks' number
  std::size_t node_ = 0, local_ = 0;
  std::uint32_t steps_ = 0;
  bool left_ = false;                  // a step has failed: what others may still wait for is told
  std::unique_ptr<std::byte[]> rows_;  // of the first rank: a row of each node, from its own on
};

}  // namespace plait::runtime

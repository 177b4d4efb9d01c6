// A collective of a UCC team: read once, posted as often as the program likes.
#pragma once

#include <ucc/api/ucc.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "plugin/layer.h"
#include "plugin/ucc/team.h"
#include "runtime/execution/lists.h"
#include "runtime/progress/operation.h"

namespace plait::plugin {

class UccOperation final : public Operation {
 public:
  explicit UccOperation(UccTeam& team) : team_(team) {}
  void tell() noexcept override;

  // UCC_ERR_NOT_SUPPORTED where another one is to take it; the same on all ranks.
  ucc_status_t prepare(const ucc_coll_args_t& args) noexcept;
  void post() noexcept;
  ucc_status_t turn() noexcept;
  // False where it is still under way (UCC gave it up when its time was over): then it is not to be used again.
  bool clear() noexcept;

 private:
  ucc_status_t prepare_alone(const char* unfit);
  void post_alone() noexcept;
  bool rest() noexcept;
  void note_left(const Request& request, const char* why) noexcept;
  void send_from_copy();
  void copy_sent() noexcept;
  void rewind();

  UccTeam& team_;
  Lists lists_;
  ucc_datatype_t averaged_ = 0;  // of a UCC_OP_AVG; 0: it is none
  std::vector<std::byte> sent_;  // of pieces in place, as they were before
  bool sends_copy_ = false;
  bool nothing_ = false;  // no rank has data
  std::uint32_t idle_turns_ = 0;
  bool posted_ = false;
  std::atomic<bool> told_{false};
};

}  // namespace plait::plugin

// How the ranks meet at the begin of a set-up. Where it replaces another one, a rank may have failed in a call which
// the others have finished: it does not come, but has told them so by what is being replaced.

#include <sched.h>

#include <memory>
#include <string>
#include <string_view>

#include "plugin/attempt.h"
#include "plugin/bootstrap_steps.h"
#include "plugin/cooperation.h"
#include "plugin/host.h"
#include "plugin/layer.h"
#include "plugin/trials.h"
#include "runtime/trial/learned.h"
#include "topo/shape.h"

namespace plait::plugin::bootstrap {

// Of a rank that failed in a call which this one has finished.
Status Bootstrap::failure_meanwhile() {
  before_->notice.look(comm());
  if (!before_->notice.heard().ok()) return before_->notice.heard();
  return before_->connections.shm != nullptr ? before_->connections.shm->peer_failure() : Status();
}

Status Bootstrap::gather_cards(const Card& mine, std::vector<Card>& cards) {
  const Status failed(Code::peer_failed, "the ranks could not exchange their locations");
  const int bytes = static_cast<int>(sizeof mine);
  // Left to the host where a rank does not come.
  auto gathered = std::make_unique<std::vector<Card>>(static_cast<std::size_t>(communicator_.ranks) + 1, mine);
  Card *own = gathered->data(), *all = own + 1;
  if (before_ == nullptr) {
    if (Status met = gather_all(own, bytes, all, comm(), "exchange their locations"); !met.ok()) return met;
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    if (host().iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm(), &request) != MPI_SUCCESS) return failed;
    for (int done = 0; done == 0; sched_yield()) {
      if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return failed;
      Status failure = done != 0 ? Status() : failure_meanwhile();
      if (failure.ok()) continue;
      connections_.messages.leave();
      static_cast<void>(gathered.release());
      return failure;
    }
  }
  met_ = true;
  cards.assign(all, all + communicator_.ranks);
  return {};
}

bool Bootstrap::tells_lessons() const {
  bool known = false;
  const Status looked = attempt([&]() -> Status {
    known = communicator_.rank == 0 && trials_wanted() && has_earlier_lessons();
    return {};
  });
  return looked.ok() && known;
}

// What rank 0 has read: no other needs the file, and all know the same.
Status Bootstrap::share_lessons() {
  if (!lessons_told_) return {};
  std::string text;
  const Status found = attempt([&]() -> Status {
    if (communicator_.rank == 0) text = lessons_text(earlier_lessons(shape_text(hierarchy_, siblings_)));
    return {};
  });
  if (!found.ok()) text.clear();
  int bytes = static_cast<int>(text.size());
  constexpr std::string_view what = "share what is known of trials";
  if (Status met = tell_all(&bytes, static_cast<int>(sizeof bytes), comm(), what); !met.ok()) return met;
  if (bytes == 0) return {};
  text.resize(static_cast<std::size_t>(bytes));
  if (Status met = tell_all(text.data(), bytes, comm(), what); !met.ok()) return met;
  known_ = parse_lessons(text);
  return {};
}

}  // namespace plait::plugin::bootstrap

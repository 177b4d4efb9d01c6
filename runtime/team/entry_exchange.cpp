// How the ranks meet at the begin of a set-up. Where it replaces another one, a rank may have failed in a call which
// the others have finished: it does not come, but has told them so by what is being replaced.

#include <string>
#include <string_view>

#include "core/attempt.h"
#include "runtime/layer.h"
#include "runtime/team/set_up_steps.h"
#include "runtime/trial/learned.h"
#include "runtime/trial/trials.h"
#include "topo/shape.h"

namespace plait::runtime {

// Of a rank that failed in a call which this one has finished.
Status SetUp::failure_meanwhile() {
  before_->look_at_notice();
  if (!before_->notice->heard().ok()) return before_->notice->heard();
  return before_->connections.peer_failure();
}

Status SetUp::gather_entries(const Entry& mine, std::vector<Entry>& entries) {
  constexpr std::string_view what = "exchange their locations";
  entries.resize(static_cast<std::size_t>(ranks()));
  Status met = before_ == nullptr ? oob().gather_all(&mine, sizeof mine, entries.data(), what)
                                  : oob().gather_all_unless([this] { return failure_meanwhile(); }, &mine, sizeof mine,
                                                            entries.data(), what);
  if (!met.ok()) return met;
  met_ = true;
  return {};
}

bool SetUp::tells_tuning_records() const {
  bool known = false;
  const Status looked = attempt([&]() -> Status {
    known = rank() == 0 && trials_wanted() && has_earlier_tuning_records();
    return {};
  });
  return looked.ok() && known;
}

// What rank 0 has read: no other needs the file, and all know the same.
Status SetUp::share_tuning_records() {
  if (!tuning_records_told_) return {};
  std::string text;
  const Status found = attempt([&]() -> Status {
    if (rank() == 0) text = tuning_records_text(earlier_tuning_records(shape_text(hierarchy_, siblings_)));
    return {};
  });
  if (!found.ok()) text.clear();
  int bytes = static_cast<int>(text.size());
  constexpr std::string_view what = "share what is known of trials";
  if (Status met = oob().tell_all(&bytes, sizeof bytes, what); !met.ok()) return met;
  if (bytes == 0) return {};
  text.resize(static_cast<std::size_t>(bytes));
  if (Status met = oob().tell_all(text.data(), text.size(), what); !met.ok()) return met;
  known_ = parse_tuning_records(text);
  return {};
}

}  // namespace plait::runtime

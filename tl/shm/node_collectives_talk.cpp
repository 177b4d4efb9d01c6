// Shared-memory collectives whose data only others than the processor may touch: the slots carry words.
#include "tl/shm/node_collectives.h"

namespace plait::tl::detail {

// A round is an operation, and so is the work: who has finished that one touches no memory of others any more.
bool NodeCollectives::run_talk(bool& moved) {
  while (way_ == Way::talking)
    if (!run_round(moved)) return false;
  if (way_ == Way::working) return run_work(moved);
  return moved = true;
}

// True when the round is over; `way_` says what comes then.
bool NodeCollectives::run_round(bool& moved) {
  if (!published_) {
    if (!slot_is_free(control_slots)) return false;
    std::byte* word = control_blocks_[self_].content(operation_, NodeTalk::word_bytes, Pace::in_step);
    const Result<bool> spoken = talk_->speak(talk_round_, NodeTalk::Word(word, NodeTalk::word_bytes));
    note(spoken.status());
    if (!spoken.ok() || !*spoken) return false;
    publish();
    published_ = moved = true;
  }
  if (!all_arrived([](std::size_t) { return true; })) return false;
  moved = true;
  for (std::size_t member = 0; member < members(); ++member)
    words_[member] = control_block(member).content(operation_, NodeTalk::word_bytes, Pace::in_step);
  const Result<NodeTalk::Then> heard = talk_->hear(talk_round_++, words_);
  note(heard.status());
  if (!heard.ok()) return false;
  finish();
  published_ = false;
  arrived_ = 0;
  if (*heard == NodeTalk::Then::speak) return true;
  if (*heard == NodeTalk::Then::end) {
    way_ = Way::at_once;  // nothing is left to be waited for
    return true;
  }
  way_ = Way::working;
  if (!begin_work()) return false;
  note(talk_->begin_work());
  return failure_.ok();
}

bool NodeCollectives::run_work(bool& moved) {
  const Result<bool> done = talk_->work();
  note(done.status());
  if (!done.ok() || !*done) return false;
  end_work();
  ++steps_.on_devices;
  leave();
  return run_leaving(moved);
}

// Whoever has failed: what this rank has begun ends before the others may have their memory back.
void NodeCollectives::abandon_talk() {
  talk_->abandon();
  end_work();
}

}  // namespace plait::tl::detail

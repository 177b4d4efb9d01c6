#include "tl/split_channel.h"

#include <algorithm>
#include <utility>

namespace plait::tl {
namespace {

class SplitChannel final : public Channel {
 public:
  SplitChannel(std::unique_ptr<Channel> short_messages, std::unique_ptr<Channel> long_messages,
               std::uint64_t short_bytes)
      : short_(std::move(short_messages)), long_(std::move(long_messages)), short_bytes_(short_bytes) {}

  ChannelKind kind() const override { return long_->kind(); }
  int active() const override { return short_->active() + long_->active(); }
  Result<bool> start(Transfer& transfer) override {
    if (transfer.bytes <= short_bytes_) return short_->start(transfer);
    transfer.last_of_lane = true;  // those that follow it may be short
    return long_->start(transfer);
  }
  Result<bool> progress(std::vector<Transfer*>& completed) override {
    bool moved = false;
    for (Channel* channel : {short_.get(), long_.get()}) {
      if (channel->active() == 0) continue;
      const Result<bool> progressed = channel->progress(completed);
      if (!progressed.ok()) return progressed;
      moved |= *progressed;
    }
    return moved;
  }
  bool arm(WakeUp& wake_up) override {
    bool all = true;
    for (Channel* channel : {short_.get(), long_.get()})
      if (channel->active() > 0 && !channel->arm(wake_up)) all = false;
    return all;
  }
  void make_room(const BoundSchedule& schedule, std::uint64_t longer_than) override {
    short_->make_room(schedule, longer_than);
    long_->make_room(schedule, std::max(longer_than, short_bytes_));
  }
  void disarm() override {
    short_->disarm();
    long_->disarm();
  }
  void announce_failure(const Status& cause) override {
    short_->announce_failure(cause);
    long_->announce_failure(cause);
  }
  void abandon(const Status& cause) override {
    short_->abandon(cause);
    long_->abandon(cause);
  }

 private:
  std::unique_ptr<Channel> short_, long_;
  std::uint64_t short_bytes_;
};

}  // namespace

std::unique_ptr<Channel> make_split_channel(std::unique_ptr<Channel> short_messages,
                                            std::unique_ptr<Channel> long_messages, std::uint64_t short_bytes) {
  return std::make_unique<SplitChannel>(std::move(short_messages), std::move(long_messages), short_bytes);
}

}  // namespace plait::tl

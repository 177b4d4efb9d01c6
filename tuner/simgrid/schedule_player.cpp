#include "tuner/simgrid/schedule_player.h"

namespace plait::tuner {

Status SchedulePlayer::play() {
  progress_.begin();
  post();
  while (!requests_.empty()) {
    int at = 0;
    MPI_Waitany(static_cast<int>(requests_.size()), requests_.data(), &at, MPI_STATUS_IGNORE);
    const auto index = static_cast<std::size_t>(at);
    const Work work = works_[index];
    requests_[index] = requests_.back();
    works_[index] = works_.back();
    requests_.pop_back();
    works_.pop_back();
    progress_.ended(work);
    post();
  }
  return progress_.outcome();
}

void SchedulePlayer::post() {
  for (const Post& one : progress_.posts()) {
    requests_.emplace_back();
    works_.push_back(one.work);
    const int bytes = static_cast<int>(one.bytes);
    if (one.sends)
      MPI_Isend(memory_.sent, bytes, MPI_BYTE, one.peer, one.tag, MPI_COMM_WORLD, &requests_.back());
    else
      MPI_Irecv(memory_.received, bytes, MPI_BYTE, one.peer, one.tag, MPI_COMM_WORLD, &requests_.back());
  }
  progress_.posts().clear();
}

}  // namespace plait::tuner

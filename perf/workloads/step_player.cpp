#include "perf/workloads/step_player.h"

#include <algorithm>
#include <map>
#include <utility>

namespace plait::perf::workloads {
namespace {

std::map<std::string, std::size_t> places_of(const plan::step::Step& step) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < step.tasks.size(); ++i) places[step.tasks[i].name] = i;
  return places;
}

}  // namespace

Result<std::unique_ptr<StepPlayer>> StepPlayer::of(const plan::step::Step& step, const PlayOptions& options,
                                                   MPI_Comm communicator) {
  for (const plan::step::Task& task : step.tasks)
    if (task.collective && !PostedOperation::can_post(*task.collective))
      return Status(Code::unsupported,
                    "task \"" + task.name + "\": no " + std::string(plan::name(*task.collective)) + " is posted");
  return std::unique_ptr<StepPlayer>(new StepPlayer(step, options, communicator));
}

// Computation is over once its task is left. An operation of the step before that this step posts before the task has
// been waited for there, and the wait of `after` and of the task's own iteration before is one for the last request.
StepPlayer::StepPlayer(const plan::step::Step& step, const PlayOptions& options, MPI_Comm communicator)
    : parts_(step.tasks.size()), computation_(options.computation, [this] { test_all(); }) {
  const std::map<std::string, std::size_t> places = places_of(step);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const plan::step::Task& task = step.tasks[i];
    parts_[i].seconds = task.seconds * options.stretch;
    if (task.collective)
      parts_[i].operation = std::make_unique<PostedOperation>(task, static_cast<int>(i), options.check, communicator);
  }
  const auto add = [&](std::size_t task, const std::string& name, bool of_previous) {
    const std::size_t place = places.at(name);
    PostedOperation* operation = parts_[place].operation.get();
    if (operation != nullptr && (!of_previous || place > task)) parts_[task].needs.push_back(operation);
  };
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (const std::string& name : step.tasks[i].after) add(i, name, false);
    for (const std::string& name : step.tasks[i].after_previous) add(i, name, true);
  }
}

void StepPlayer::wait_for(const Part& part) {
  const double begin = MPI_Wtime();
  for (PostedOperation* operation : part.needs) operation->wait();
  if (part.operation) part.operation->wait();
  waited_ += MPI_Wtime() - begin;
}

void StepPlayer::test_all() {
  requests_.clear();
  for (const Part& part : parts_) requests_.push_back(part.operation ? part.operation->request() : MPI_REQUEST_NULL);
  completed_.resize(requests_.size());
  int count = 0;
  MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].operation) parts_[i].operation->request() = requests_[i];
}

IterationTime StepPlayer::iteration() {
  const double begin = MPI_Wtime();
  waited_ = 0;
  for (Part& part : parts_) {
    wait_for(part);
    if (part.operation) {
      part.operation->post(iteration_);
    } else {
      computation_.run(part.seconds);
    }
  }
  ++iteration_;
  return {MPI_Wtime() - begin, waited_};
}

void StepPlayer::finish() {
  for (Part& part : parts_)
    if (part.operation) part.operation->wait();
}

std::uint64_t StepPlayer::wrong() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts_)
    if (part.operation) sum += part.operation->wrong();
  return sum;
}

}  // namespace plait::perf::workloads

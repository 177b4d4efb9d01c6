// A step's operation as a plain MPI program has it: buffers of its own, a non-blocking call or the start of a
// persistent one, a wait, and a look at the result.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/step/step_file.h"

namespace plait::perf::workloads {

// How much of the data is renewed for each iteration and looked at behind it.
enum class Check { few_elements, all_elements };

// A request under way must not be moved: operations are neither copied nor moved. Errors of MPI end the job.
class PostedOperation {
 public:
  // All-to-all, all-reduce, all-gather, reduce-scatter-block and broadcast, from rank 0, of 32-bit integers, which are
  // summed up. `number` sets the data of operations apart.
  PostedOperation(const plan::step::Task& task, int number, Check check, MPI_Comm communicator);
  ~PostedOperation();
  PostedOperation(const PostedOperation&) = delete;
  PostedOperation& operator=(const PostedOperation&) = delete;

  static bool can_post(plan::Collective collective);

  // Waits for the iteration before, where that has not been waited for: the buffers are the same.
  void post(int iteration);
  void wait();
  // MPI_REQUEST_NULL or inactive where nothing is under way; MPI_Testsome may complete it.
  MPI_Request& request() { return request_; }
  bool under_way() const { return iteration_ != idle; }

  // Results that were not what they must be.
  std::uint64_t wrong() const { return wrong_; }

 private:
  static constexpr int idle = -1;

  std::int32_t element(int rank, std::size_t index) const;  // of the rank's input
  std::int32_t expected(std::size_t index) const;
  void make_persistent();
  void call();
  void fill();
  void look();
  std::size_t stride() const;

  plan::Collective collective_;
  int number_, rank_ = 0, ranks_ = 0;
  std::size_t count_;  // as the call's
  Check check_;
  bool persistent_;
  MPI_Comm communicator_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int iteration_ = idle;
  std::uint64_t wrong_ = 0;
  std::vector<std::int32_t> input_, output_;
};

}  // namespace plait::perf::workloads

#include "tests/differential/completion.h"

#include <algorithm>
#include <array>
#include <vector>

namespace plait::test {
namespace {

// Copies of the handles in any order, among them two of messages to this process itself; put back when all are
// complete.
class Mixture {
 public:
  Mixture(std::span<MPI_Request* const> requests, Random& random) : places_(requests.begin(), requests.end()) {
    MPI_Irecv(&received_, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &own_[0]);
    MPI_Isend(&sent_, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &own_[1]);
    for (MPI_Request& own : own_) places_.push_back(&own);
    for (std::size_t i = places_.size(); i > 1; --i) std::swap(places_[i - 1], places_[random.below(i)]);
    for (const MPI_Request* place : places_) handles_.push_back(*place);
  }
  ~Mixture() {
    for (std::size_t i = 0; i < places_.size(); ++i) *places_[i] = handles_[i];
  }
  std::vector<MPI_Request>& handles() { return handles_; }
  int count() const { return static_cast<int>(handles_.size()); }
  bool arrived() const { return received_ == sent_; }

 private:
  std::vector<MPI_Request*> places_;
  std::vector<MPI_Request> handles_;
  std::array<MPI_Request, 2> own_{};
  int sent_ = 4711, received_ = 0;
};

bool wait_each(Mixture& mixture) {
  bool well = true;
  for (MPI_Request& request : mixture.handles()) well &= MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  return well;
}

bool test_each(Mixture& mixture) {
  bool well = true;
  for (MPI_Request& request : mixture.handles())
    for (int done = 0; done == 0;) {
      MPI_Status status;
      well &= MPI_Request_get_status(request, &done, &status) == MPI_SUCCESS;
      int tested = 0;
      well &= MPI_Test(&request, &tested, &status) == MPI_SUCCESS && (tested != 0 || done == 0);
      done = tested;
    }
  return well;
}

bool wait_any(Mixture& mixture) {
  bool well = true;
  for (int left = mixture.count(); left > 0; --left) {
    int index = MPI_UNDEFINED;
    well &= MPI_Waitany(mixture.count(), mixture.handles().data(), &index, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    well &= index != MPI_UNDEFINED;
  }
  return well;
}

bool test_any(Mixture& mixture) {
  bool well = true;
  for (int left = mixture.count(); left > 0;) {
    int index = MPI_UNDEFINED, done = 0;
    well &= MPI_Testany(mixture.count(), mixture.handles().data(), &index, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    if (done != 0) --left;
  }
  return well;
}

using Some = int (*)(int, MPI_Request[], int*, int[], MPI_Status[]);
bool some(Mixture& mixture, Some function) {
  bool well = true;
  std::vector<int> indices(mixture.handles().size());
  for (int left = mixture.count(); left > 0;) {
    int count = 0;
    well &=
        function(mixture.count(), mixture.handles().data(), &count, indices.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
    if (count == MPI_UNDEFINED) return false;
    left -= count;
  }
  return well;
}

bool test_all(Mixture& mixture) {
  bool well = true;
  for (int done = 0; done == 0;)
    well &= MPI_Testall(mixture.count(), mixture.handles().data(), &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  return well;
}

}  // namespace

bool complete(std::span<MPI_Request* const> requests, Random& random) {
  Mixture mixture(requests, random);
  bool well = false;
  switch (random.below(8)) {
    case 0:
      well = wait_each(mixture);
      break;
    case 1:
      well = test_each(mixture);
      break;
    case 2:
      well = wait_any(mixture);
      break;
    case 3:
      well = test_any(mixture);
      break;
    case 4:
      well = some(mixture, MPI_Waitsome);
      break;
    case 5:
      well = some(mixture, MPI_Testsome);
      break;
    case 6:
      well = test_all(mixture);
      break;
    default: {
      std::vector<MPI_Status> statuses(mixture.handles().size());
      well = MPI_Waitall(mixture.count(), mixture.handles().data(), statuses.data()) == MPI_SUCCESS;
    }
  }
  return well && mixture.arrived();
}

}  // namespace plait::test

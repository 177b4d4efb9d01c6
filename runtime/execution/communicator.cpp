#include "runtime/execution/communicator.h"

namespace plait::runtime {

Communicator::Communicator(Progress& mover) : progress(mover) {}

Communicator::~Communicator() = default;

}  // namespace plait::runtime

// A program's step as a Chakra execution trace, and back (docs/record.md).
//
// Computations are COMP_NODEs, operations COMM_COLL_NODEs. A task's `after` are its data_deps; the computation before
// it, where it does not wait for that anyway, is its ctrl_deps, which other tools need and the nodes' order says to us.
// What Chakra has no place for are attributes of ours, so that a step comes back as it was.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "plan/step/trace.h"

namespace plait::plan::step {

// Nodes go by their dependencies, and by id where those leave it open. Metadata, and what takes no time, is left out:
// what waits for it waits for what it waited for. A barrier is a computation. `ranks`: of communicators whose nodes do
// not say it; 0: nobody knows. Fails (invalid) with the node and what was expected, also where it has sends, receives
// or memory.
Result<Trace> parse_chakra(std::string_view text, int ranks);

// Fails (invalid) where the ranks of a communicator are needed and nobody knows them: comm_size counts what a rank
// gives to all of them.
Result<std::string> chakra_text(const Trace& trace, int ranks);

}  // namespace plait::plan::step

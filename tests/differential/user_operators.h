// User-defined operators and the types that they are for.
#pragma once

#include <vector>

#include "tests/differential/basic.h"

namespace plait::test {

void append_user_basics(std::vector<Basic>& basics);
void free_user_basics();

}  // namespace plait::test

// Sizes and alignments that no allocator can serve.
#pragma once

namespace plait::tests {

// Asks every function of the allocator for them; the number of answers that are not the C library's: NULL and ENOMEM (a
// wrong alignment: EINVAL), std::bad_alloc, and what was allocated before is still there. Prints a line for each.
int wrong_answers_to_absurd_sizes();

}  // namespace plait::tests

// A kernel that forbids single copies from some time on.
#pragma once

// From now on this process may neither read nor write the memory of others.
void deny_single_copies();

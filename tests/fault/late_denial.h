// A kernel that forbids single copies, and an MPI that fails to pack, from some time on.
#pragma once

// From now on this process may neither read nor write the memory of others.
void deny_single_copies();

// From now on the host MPI packs nothing for this process.
void deny_packing();

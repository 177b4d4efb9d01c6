/* What a team does not take, and what is given up. NULL, or what is wrong. */
#pragma once

#include "collectives.h"

/* Types and operators that are not ours are refused, on all ranks alike. */
const char* refuses(const struct place* place);
/* The first rank gives a barrier up that the others do not post. Afterwards the team is good for being destroyed. */
const char* gives_up(const struct place* place);

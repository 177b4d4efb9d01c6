/* Whether an address lies in memory that peers can map: as the kernel says. */
#ifndef PLAIT_TESTS_IN_ARENA_H
#define PLAIT_TESTS_IN_ARENA_H

#ifdef __cplusplus
extern "C"
#endif
    int
    in_arena(const void* address);

#endif

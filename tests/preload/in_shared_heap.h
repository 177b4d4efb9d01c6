/* Whether an address lies in memory that peers can map: as the kernel says. */
#ifndef PLAIT_TESTS_IN_SHARED_HEAP_H
#define PLAIT_TESTS_IN_SHARED_HEAP_H

#ifdef __cplusplus
extern "C"
#endif
    int
    in_shared_heap(const void* address);

#endif

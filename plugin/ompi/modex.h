/* Words that each process of a job tells all others in Open MPI's exchange of addresses (the modex), and finds of them
 * afterwards without a message to any. For C and C++. */
#ifndef PLAIT_PLUGIN_OMPI_MODEX_H
#define PLAIT_PLUGIN_OMPI_MODEX_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Once Open MPI's runtime has started, and before the exchange. False: it does not take the word. */
bool plait_ompi_tell_all(const char* key, uint32_t value);

/* Whether the exchange brings all words to all nodes: else the question would cost each rank a message to each other
 * one. The same on all ranks. */
bool plait_ompi_may_ask(void);

/* After the exchange: whether that rank of MPI_COMM_WORLD has told so. Precondition: plait_ompi_may_ask(). */
bool plait_ompi_rank_told(int world_rank, const char* key, uint32_t value);

#ifdef __cplusplus
}
#endif

#endif

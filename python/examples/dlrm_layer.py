"""The embedding layer of a recommendation model, trained: bags of all tables to the ranks that own the samples, and
their gradients back into the tables. The tables are spread over the ranks; each result is checked against numpy.

    mpirun -n 4 -x LD_PRELOAD=libplait.so python3 dlrm_layer.py
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import plait_fused

BATCH, DIM, TABLES, ROWS, STEPS, RATE = 64, 48, 3, 500, 5, 0.05
comm = MPI.COMM_WORLD


def lookups(rank, step):
    """Of a rank's tables: bags of 0 to 9 indices for every sample of the batch."""
    random = np.random.default_rng([rank, step])
    lengths = random.integers(0, 10, TABLES * BATCH)
    return random.integers(0, ROWS, lengths.sum()), np.concatenate([[0], np.cumsum(lengths)])


def bags(tables, indices, offsets):
    """In numpy, {sample, table, dim}; and the table and bag of each index."""
    table, bag = np.divmod(np.repeat(np.arange(TABLES * BATCH), np.diff(offsets)), BATCH)
    sums = np.zeros((BATCH, TABLES, DIM))
    np.add.at(sums, (bag, table), tables[table, indices])
    return sums, table, bag


# All ranks know all tables, so that each can check what it gets. A rank's own are one array, table after table.
every = [np.random.default_rng(rank).standard_normal((TABLES, ROWS, DIM)).astype(np.float32)
         for rank in range(comm.size)]
own = every[comm.rank]
expected = [one.astype(np.float64) for one in every]
mine = plait_fused.share_of(BATCH, comm)
gradients = plait_fused.empty((mine.stop - mine.start, TABLES * comm.size, DIM))
worst = 0.0

with plait_fused.Embedding(comm, list(own), BATCH, DIM) as forward, \
        plait_fused.EmbeddingBack(comm, list(own), gradients, BATCH, DIM) as back:
    for step in range(STEPS):
        indices, offsets = lookups(comm.rank, step)
        pooled = forward.run(indices, offsets)
        # The layers above would give these: here those of the sum of all squares, halved.
        gradients[:] = pooled
        back.run(indices, offsets, factor=-RATE)

        for rank in range(comm.size):
            indices, offsets = lookups(rank, step)
            sums, table, bag = bags(expected[rank], indices, offsets)
            of_rank = slice(rank * TABLES, (rank + 1) * TABLES)
            worst = max(worst, np.abs(pooled[:, of_rank] - sums[mine]).max(initial=0) / np.abs(sums).max())
            np.add.at(expected[rank], (table, indices), -RATE * sums[bag, table])
        worst = max(worst, np.abs(own - expected[comm.rank]).max() / np.abs(own).max())

worst = comm.allreduce(worst, op=MPI.MAX)
if comm.rank == 0:
    print(f"dlrm_layer: {STEPS} steps on {comm.size} ranks, largest difference {worst:.1e}: "
          f"{'right' if worst < 1e-4 else 'wrong'}")
sys.exit(int(worst >= 1e-4))

"""plait_fused.py's own part: what it refuses, and where; outputs that the node's ranks can map; plans freed and left."""

import gc
import sys

import numpy as np
from mpi4py import MPI

import plait_fused

comm = MPI.COMM_WORLD
failures = 0


def expect(right, what):
    global failures
    if not right:
        failures += 1
        print(f"rank {comm.rank}: wrong: {what}", flush=True)


def refused(words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except plait_fused.Error as error:
        expect(all(word in str(error) for word in words), f"it says: {error}")
    else:
        expect(False, f"{words} was not refused")


BATCH, DIM = 12, 8
tables = [np.ones((5, DIM), np.float32), np.ones((7, DIM), np.float32)]
indices, offsets = np.zeros(2 * BATCH, np.int64), np.arange(2 * BATCH + 1)
last = comm.size - 1

with plait_fused.Embedding(comm, tables, BATCH, DIM) as plan:
    expect(plan.description["staged"] == 0, f"outputs are not mapped: {plan.description}")
    plan.output[:] = -1
    bad = indices.copy()
    if comm.rank == last:
        bad[3] = 99
    refused([f"indices[3]: 99: expected a row of table 0", f"(on rank {last})"], plan.run, bad, offsets)
    expect((plan.output == -1).all(), "a refused run has touched the output")
    # Narrower integers, and what is no array, are converted.
    plan.run(list(indices), offsets.astype(np.int32))
    expect((plan.output == 1).all(), "the bags are not of one row each")
    # A start that is refused leaves the run under way alone. Its indices, converted, are pages of their own: to read them
    # once they are given back is to crash.
    many, ends = np.full(100_000, 4, np.int32), np.minimum(5_000 * np.arange(2 * BATCH + 1), 100_000)
    tables[0][4], tables[1][4] = 2, 2
    plan.start(many, ends)
    refused(["has not been waited for"], plan.start, indices, offsets)
    gc.collect()
    sums = plan.wait()
    expect(np.isin(sums, [0, 10_000]).all() and sums.any(), "a run whose plan was started twice")
    tables[0][4], tables[1][4] = 1, 1
    plan.run(indices, offsets)
    kept = plan.output
del plan
gc.collect()
kept += 1
expect((kept == 2).all(), "the output went with its plan")

refused(["dim: 0: expected 1 to"], plait_fused.Embedding, comm, [np.ones((5, 0), np.float32)], BATCH, 0)
refused(["tables: float64"], plait_fused.Embedding, comm, [np.ones((5, DIM))], BATCH, DIM)
refused(["tables[0]", "without gaps"], plait_fused.Embedding, comm, [np.ones((5, 2 * DIM), np.float32)[:, ::2]], BATCH, DIM)
refused(["tables[1]: shape"], plait_fused.Embedding, comm, [tables[0], np.ones((7, 3), np.float32)], BATCH, DIM)
refused(["gradients: shape"], plait_fused.EmbeddingBack, comm, tables, np.ones((1, 2, 3), np.float32), BATCH, DIM)
refused(["options"], plait_fused.Gemv, comm, np.ones((4, 4), np.float32), options="speed=9")
gemv = plait_fused.Gemv(comm, np.ones((4, 4), np.int8), scales=np.full(4, 0.5, np.float32))
refused(["x: shape"], gemv.run, np.ones(3))
expect((gemv.run(np.ones((1, 4))) == 2 * comm.size).all(), "int8 with scales")
refused(["not been started"], gemv.wait)
# This one is left to MPI_Finalize.

failures = comm.allreduce(failures)
if comm.rank == 0:
    print(f"fused_errors: {comm.size} ranks, {'right' if failures == 0 else 'wrong'}")
sys.exit(int(failures != 0))

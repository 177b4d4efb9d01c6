"""plait_fused.py's own part: what it refuses, and where; outputs that the node's ranks can map; plans freed and left."""

import gc
import sys
import weakref

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


def on_last(wrong, right):
    return wrong if comm.rank == last else right


def refused_of_last(words, missing, call, *arguments, **named):
    """The last rank hears what is wrong with its own, the others that it lacks this."""
    refused([f"(on rank {last})", on_last(words, f"{missing}: NULL")], call, *arguments, **named)


BATCH, DIM = 12, 8
last = comm.size - 1
tables = [np.ones((5, DIM), np.float32), np.ones((7, DIM), np.float32)]
indices, offsets = np.zeros(2 * BATCH, np.int64), np.arange(2 * BATCH + 1)

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

# A plan that is forgotten keeps what its run is given until that ends.
forgotten = plait_fused.Gemv(comm, np.ones((4, 4), np.float32))
forgotten.start(np.ones((1, 4)))
forgotten = weakref.ref(forgotten)
gc.collect()
expect(forgotten() is not None, "a plan went while its run was under way")
if forgotten() is not None:
    expect((forgotten().wait() == 4 * comm.size).all(), "a product of a plan that was forgotten")
    gc.collect()
    expect(forgotten() is None, "a plan stays for ever")

# What one rank gives wrong is an error of all: of the constructor,
ones, two = np.ones((4, 4), np.float32), np.ones((3, 2), np.float32)
at_last = f"(on rank {last})"
refused(["weights: float64", at_last], plait_fused.Gemv, comm, ones.astype(on_last(float, np.float32)))
refused(["weights: 1 dimensions", at_last], plait_fused.GemmReduceScatter, comm, on_last(ones[0].copy(), ones), 8)
refused(["weights: 0 dimensions", at_last], plait_fused.AllGatherGemm, comm, on_last(None, ones), 8)
refused(["output: shape", at_last], plait_fused.Gemv, comm, ones, output=on_last(plait_fused.empty((2, 4)), None))
refused(["options: None", at_last], plait_fused.Gemv, comm, ones, options=on_last(None, ""))
refused(["tables[1]: shape", at_last], plait_fused.Embedding, comm, [tables[0], on_last(two, tables[1])], BATCH, DIM)
refused(["tables: None", at_last], plait_fused.Embedding, comm, on_last(None, tables), BATCH, DIM)
refused(["batch: 1.5", at_last], plait_fused.Embedding, comm, tables, on_last(1.5, BATCH), DIM)
refused(["rows: None", at_last], plait_fused.AllGatherGemm, comm, ones, on_last(None, 8))
refused(["mode: 'most'", at_last], plait_fused.Embedding, comm, tables, BATCH, DIM, mode=on_last("most", "sum"))
gradients = plait_fused.empty((plait_fused.share_of(BATCH, comm).stop - plait_fused.share_of(BATCH, comm).start,
                               2 * comm.size, DIM))
refused(["scales: 1 arrays", at_last], plait_fused.Embedding, comm, [one.astype(np.int8) for one in tables], BATCH, DIM,
        scales=[np.ones(len(one), np.float32) for one in tables][:on_last(1, 2)])
refused(["gradients: float64", at_last], plait_fused.EmbeddingBack, comm, tables,
        on_last(gradients.astype(float), gradients), BATCH, DIM)
refused(["weights[0]: shape", at_last], plait_fused.MoeDispatch, comm, [on_last(two, ones)], 3, 2, 4, 4, 6)

sealed, sealed_table = np.ones((1, 4), np.float32), tables[0].copy()
sealed.flags.writeable = sealed_table.flags.writeable = False
refused(["output: it is read-only", at_last], plait_fused.Gemv, comm, ones, output=on_last(sealed, None))
refused(["tables[0]: it is read-only", at_last], plait_fused.EmbeddingBack, comm, [on_last(sealed_table, tables[0]), tables[1]],
        gradients, BATCH, DIM)

# and of a run, which leaves the plan as it was. The lengths of lists are for this module alone to know.
with plait_fused.Gemv(comm, ones) as plan:
    refused_of_last("x: shape (3,): expected (1, 4)", "x", plan.run, on_last(np.ones(3), np.ones((1, 4))))
    refused_of_last("x: could not convert", "x", plan.run, on_last([["y"] * 4], np.ones((1, 4))))
    expect((plan.run(np.ones((1, 4))) == 4 * comm.size).all(), "a product after refused ones")
with plait_fused.Embedding(comm, tables, BATCH, DIM, weighted=True) as plan:
    factors = np.full(2 * BATCH, 2, np.float32)
    refused_of_last(f"offsets: {2 * BATCH} numbers: expected {2 * BATCH + 1}", "offsets", plan.run, indices,
                    on_last(offsets[:-1], offsets), factors)
    refused_of_last("weights: 3 numbers", "weights", plan.run, indices, offsets, on_last(factors[:3], factors))
    refused_of_last("indices: invalid", "indices", plan.run, on_last(["first"], indices), offsets, factors)
    expect((plan.run(indices, offsets, factors) == 2).all(), "bags after refused ones")
gradients[:] = 1
with plait_fused.EmbeddingBack(comm, tables, gradients, BATCH, DIM) as plan:
    refused_of_last("offsets: 1 numbers", "offsets", plan.run, indices, on_last([0], offsets), factor=1)
    refused_of_last("factor: must be", "offsets", plan.run, indices, offsets, factor=on_last("much", 1))
    expect(all((table == 1).all() for table in tables), "a refused run has touched a table")
    plan.run(indices, offsets, factor=1)
    expect(all((table[0] == 1 + BATCH).all() for table in tables), "gradients after refused ones")
x, chosen, rows = np.ones((3, 4)), np.zeros((3, 2), np.int32), np.ones((comm.size, 6, 4), np.float32)
with plait_fused.MoeDispatch(comm, [ones], 3, 2, 4, 4, 6) as plan:
    refused_of_last("x: shape", "x", plan.run, on_last(x[:2], x), chosen)
    refused_of_last("experts: shape", "experts", plan.run, x, on_last(chosen[0], chosen))
    expect((plan.run(x, chosen) == 4).all() or comm.rank > 0, "rows after refused ones")
with plait_fused.MoeCombine(comm, [ones], 3, 2, 4, 4, 6) as plan:
    refused_of_last("weights: shape (2,): expected (3, 2)", "weights", plan.run, rows, chosen,
                    on_last(np.ones(2), np.ones((3, 2))))
    expect((plan.run(rows, chosen, np.ones((3, 2))) == 8).all(), "sums after refused ones")

# Where nothing is looked at, there may be nothing.
with plait_fused.Embedding(comm, on_last([], tables[:1]), BATCH, DIM) as plan:
    expect((plan.run(*on_last((None, None), (indices[:BATCH], offsets[:BATCH + 1]))) == 1 + BATCH).all(), "no tables")
with plait_fused.Gemv(comm, ones[:, :on_last(0, 4)].copy()) as plan:
    expect((plan.run(on_last(None, np.ones((1, 4)))) == 4 * last).all(), "no depth")

failures = comm.allreduce(failures)
if comm.rank == 0:
    print(f"fused_errors: {comm.size} ranks, {'right' if failures == 0 else 'wrong'}")
sys.exit(int(failures != 0))

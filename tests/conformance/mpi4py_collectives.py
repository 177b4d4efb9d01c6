#!/usr/bin/python3
"""Every collective of MPI 3.1 through mpi4py: numpy buffers and pickled objects, blocking and non-blocking, derived types,
operators of the program's own, several communicators. Each result is compared with what it must be; rank 0 then prints a
digest of all results of all ranks, which another MPI or library must reproduce.

  mpirun -n N /usr/bin/python3 mpi4py_collectives.py [ROUNDS]     (default 3)

mpi4py 3.1 has no persistent collectives.
"""
import hashlib
import sys

import numpy as np
from mpi4py import MPI

SIZES = (0, 1, 17, 1000, 40000)  # elements
digest = hashlib.sha256()
checked = {}


def check(name, found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or not np.array_equal(found, expected):
        sys.stderr.write(f"wrong: {name} at rank {MPI.COMM_WORLD.rank}: {found.ravel()[:8]}, not {expected.ravel()[:8]}\n")
        MPI.COMM_WORLD.Abort(1)
    digest.update(name.encode() + found.tobytes())
    checked[name] = checked.get(name, 0) + 1


def done(comm, name, form, *arguments):
    """Calls comm.Name or comm.Iname, and ends it."""
    if form == "blocking":
        getattr(comm, name)(*arguments)
    else:
        getattr(comm, "I" + name[0].lower() + name[1:])(*arguments).Wait()


def data_of(rank, count, kind="d"):
    return (np.arange(count) % 97 + 3 * rank + 1).astype(kind)


def stack(comm, count):
    return np.array([data_of(rank, count) for rank in range(comm.size)]).reshape(comm.size, count)


# ---- Buffers ----


def rooted(comm, form, count, root):
    everything = stack(comm, count)
    mine = everything[comm.rank]
    there = comm.rank == root

    buffer = mine.copy() if there else np.zeros(count)
    done(comm, "Bcast", form, buffer, root)
    check(f"bcast {form}", buffer, everything[root])

    gathered = np.zeros((comm.size, count)) if there else None
    done(comm, "Gather", form, mine, gathered, root)
    if there:
        check(f"gather {form}", gathered, everything)

    mine_back = np.zeros(count)
    done(comm, "Scatter", form, everything if there else None, mine_back, root)
    check(f"scatter {form}", mine_back, mine)

    total = np.zeros(count) if there else None
    done(comm, "Reduce", form, mine, total, MPI.SUM, root)
    if there:
        check(f"reduce {form}", total, everything.sum(axis=0))


def rooted_vectors(comm, form, count, root):
    counts = [count // (rank + 1) + rank for rank in range(comm.size)]
    starts = [sum(counts[:rank]) + 2 * rank for rank in range(comm.size)]
    length = sum(counts) + 2 * comm.size
    there = comm.rank == root
    mine = data_of(comm.rank, counts[comm.rank])
    expected = np.full(length, -1.0)
    for rank in range(comm.size):
        expected[starts[rank]:starts[rank] + counts[rank]] = data_of(rank, counts[rank])

    gathered = np.full(length, -1.0)
    done(comm, "Gatherv", form, mine, [gathered, counts, starts, MPI.DOUBLE] if there else None, root)
    if there:
        check(f"gatherv {form}", gathered, expected)

    part = np.zeros(counts[comm.rank])
    done(comm, "Scatterv", form, [expected, counts, starts, MPI.DOUBLE] if there else None, part, root)
    check(f"scatterv {form}", part, mine)

    everywhere = np.full(length, -1.0)
    done(comm, "Allgatherv", form, mine, [everywhere, counts, starts, MPI.DOUBLE])
    check(f"allgatherv {form}", everywhere, expected)


def reductions(comm, form, count):
    everything = stack(comm, count)
    mine = everything[comm.rank]
    for op, function in ((MPI.SUM, np.sum), (MPI.MAX, np.max), (MPI.MIN, np.min)):
        total = np.zeros(count)
        done(comm, "Allreduce", form, mine, total, op)
        check(f"allreduce {form}", total, function(everything, axis=0))
    total = mine.copy()
    done(comm, "Allreduce", form, MPI.IN_PLACE, total, MPI.SUM)
    check(f"allreduce in place {form}", total, everything.sum(axis=0))

    so_far = np.zeros(count)
    done(comm, "Scan", form, mine, so_far, MPI.SUM)
    check(f"scan {form}", so_far, everything[:comm.rank + 1].sum(axis=0))
    before = np.zeros(count)
    done(comm, "Exscan", form, mine, before, MPI.SUM)
    check(f"exscan {form}", before, everything[:comm.rank].sum(axis=0) if comm.rank else np.zeros(count))

    wide = np.array([data_of(rank, count * comm.size) for rank in range(comm.size)])
    block = np.zeros(count)
    done(comm, "Reduce_scatter_block", form, wide[comm.rank], block, MPI.SUM)
    check(f"reduce_scatter_block {form}", block, wide.sum(axis=0).reshape(comm.size, count)[comm.rank])
    counts = [count + (2 * rank if rank % 2 else 0) for rank in range(comm.size)]
    long = np.array([data_of(rank, sum(counts)) for rank in range(comm.size)])
    part = np.zeros(counts[comm.rank])
    done(comm, "Reduce_scatter", form, long[comm.rank], part, counts, MPI.SUM)
    begin = sum(counts[:comm.rank])
    check(f"reduce_scatter {form}", part, long.sum(axis=0)[begin:begin + counts[comm.rank]])


def exchanges(comm, form, count):
    size, rank = comm.size, comm.rank
    everywhere = np.zeros((size, count))
    done(comm, "Allgather", form, data_of(rank, count), everywhere)
    check(f"allgather {form}", everywhere, stack(comm, count))

    def piece(source, destination, length):
        return data_of(source * size + destination, length)

    sent = np.array([piece(rank, other, count) for other in range(size)])
    received = np.zeros((size, count))
    done(comm, "Alltoall", form, sent, received)
    check(f"alltoall {form}", received, np.array([piece(other, rank, count) for other in range(size)]))

    to = [count // 2 + (rank + other) % 3 for other in range(size)]  # symmetrical: what others send to this rank as well
    at = [sum(to[:other]) for other in range(size)]
    sent = np.concatenate([piece(rank, other, to[other]) for other in range(size)])
    expected = np.concatenate([piece(other, rank, to[other]) for other in range(size)])
    received = np.zeros(sum(to))
    done(comm, "Alltoallv", form, [sent, to, at, MPI.DOUBLE], [received, to, at, MPI.DOUBLE])
    check(f"alltoallv {form}", received, expected)
    received = np.zeros(sum(to))
    in_bytes, types = [8 * start for start in at], [MPI.DOUBLE] * size
    done(comm, "Alltoallw", form, [sent, to, in_bytes, types], [received, to, in_bytes, types])
    check(f"alltoallw {form}", received, expected)


def neighbours(comm, form, count):
    ring = comm.Create_cart([comm.size], periods=[True])
    low, high = ring.Shift(0, 1)
    received = np.zeros((2, count))
    done(ring, "Neighbor_allgather", form, data_of(ring.rank, count), received)
    check(f"neighbor_allgather {form}", received, [data_of(low, count), data_of(high, count)])
    ring.Free()


# ---- Types and operators of the program's own ----


def columns(comm, form, count):
    """Every third column of a matrix: a type with holes; and one whose extent is less than what it spans."""
    rows, width = max(count // 50, 1), 6
    column = MPI.DOUBLE.Create_vector(rows, 1, width).Create_resized(0, 8)
    column.Commit()
    matrix = np.full((rows, width), -1.0)
    if comm.rank == 0:
        matrix[:, 1] = data_of(1, rows)
        matrix[:, 2] = data_of(2, rows)
    done(comm, "Bcast", form, [matrix.ravel()[1:], 2, column], 0)
    expected = np.full((rows, width), -1.0)
    expected[:, 1], expected[:, 2] = data_of(1, rows), data_of(2, rows)
    check(f"bcast of columns {form}", matrix, expected)

    table = np.zeros((rows, comm.size))
    across = MPI.DOUBLE.Create_vector(rows, 1, comm.size).Create_resized(0, 8)
    across.Commit()
    done(comm, "Allgather", form, [data_of(comm.rank, rows), rows, MPI.DOUBLE], [table, 1, across])
    check(f"allgather into columns {form}", table, stack(comm, rows).T)
    across.Free()
    column.Free()


def affine(inputs, results, _):
    """(a, b) after (c, d): x -> a x + b, not commutative."""
    first = np.frombuffer(inputs, dtype="d").reshape(-1, 2)
    second = np.frombuffer(results, dtype="d").reshape(-1, 2)
    second[:] = np.stack([first[:, 0] * second[:, 0], first[:, 0] * second[:, 1] + first[:, 1]], axis=1)


def larger(inputs, results, _):
    first, second = np.frombuffer(inputs, dtype="d"), np.frombuffer(results, dtype="d")
    np.maximum(first, second, out=second)


def own_operators(comm, count):
    maps = [np.stack([np.full(count, 1.0 + rank % 2), data_of(rank, count)], axis=1) for rank in range(comm.size)]
    expected = maps[-1]
    for rank in reversed(range(comm.size - 1)):
        first = maps[rank]
        expected = np.stack([first[:, 0] * expected[:, 0], first[:, 0] * expected[:, 1] + first[:, 1]], axis=1)
    pair = MPI.DOUBLE.Create_contiguous(2)
    pair.Commit()
    op = MPI.Op.Create(affine, commute=False)
    found = np.zeros((count, 2))
    comm.Allreduce([maps[comm.rank], count, pair], [found, count, pair], op)
    check("allreduce, operator not commutative", found, expected)
    found = np.zeros((count, 2))
    comm.Reduce([maps[comm.rank], count, pair], [found, count, pair] if comm.rank == 0 else None, op, 0)
    if comm.rank == 0:
        check("reduce, operator not commutative", found, expected)
    op.Free()
    pair.Free()
    op = MPI.Op.Create(larger, commute=True)
    found = np.zeros(count)
    comm.Allreduce(data_of(comm.rank, count), found, op)
    check("allreduce, operator commutative", found, stack(comm, count).max(axis=0))
    op.Free()


# ---- Objects ----


def objects(comm, root):
    mine = {"rank": comm.rank, "text": "x" * (comm.rank * 100), "list": list(range(comm.rank))}
    everyone = [{"rank": r, "text": "x" * (r * 100), "list": list(range(r))} for r in range(comm.size)]
    there = comm.rank == root

    def same(name, found, expected):
        check(name, np.frombuffer(repr(found).encode(), dtype="u1"), np.frombuffer(repr(expected).encode(), dtype="u1"))

    same("bcast of objects", comm.bcast(mine if there else None, root), everyone[root])
    same("gather of objects", comm.gather(mine, root), everyone if there else None)
    same("scatter of objects", comm.scatter(everyone if there else None, root), mine)
    same("allgather of objects", comm.allgather(mine), everyone)
    same("alltoall of objects", comm.alltoall([(comm.rank, other) for other in range(comm.size)]),
         [(other, comm.rank) for other in range(comm.size)])
    same("reduce of objects", comm.reduce([comm.rank], MPI.SUM, root), list(range(comm.size)) if there else None)
    same("allreduce of objects", comm.allreduce(comm.rank, MPI.MAX), comm.size - 1)
    same("scan of objects", comm.scan(comm.rank + 1), (comm.rank + 1) * (comm.rank + 2) // 2)
    same("exscan of objects", comm.exscan(1), comm.rank if comm.rank else None)


# ---- Many at once ----


def many_at_once(comm, count):
    """Outstanding together, among the program's own messages, ended in any order."""
    inputs = [data_of(comm.rank + step, count) for step in range(8)]
    outputs = [np.zeros(count) for _ in inputs]
    requests = [comm.Iallreduce(source, target) for source, target in zip(inputs, outputs)]
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    from_left = np.zeros(count)
    requests += [comm.Irecv(from_left, left), comm.Isend(inputs[0], right), comm.Ibarrier()]
    while MPI.Request.Waitany(requests) != MPI.UNDEFINED:
        pass
    check("message among collectives", from_left, data_of(left, count))
    for step, target in enumerate(outputs):
        check("iallreduce, many", target, sum(data_of(rank + step, count) for rank in range(comm.size)))


def work(comm, rounds):
    for turn in range(rounds):
        root = turn % comm.size
        for form in ("blocking", "nonblocking"):
            for count in SIZES:
                rooted(comm, form, count, root)
                rooted_vectors(comm, form, count, root)
                reductions(comm, form, count)
                exchanges(comm, form, count)
                columns(comm, form, count)
                comm.Barrier() if form == "blocking" else comm.Ibarrier().Wait()
            neighbours(comm, form, 17)
        own_operators(comm, 100)
        objects(comm, root)
        many_at_once(comm, 1000)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    world = MPI.COMM_WORLD
    half = world.Split(world.rank % 2, -world.rank)
    copy = world.Dup()
    for comm in (world, half, copy, MPI.COMM_SELF):
        work(comm, rounds)
    half.Free()
    copy.Free()
    digests = world.gather((digest.hexdigest(), sum(checked.values())), 0)
    if world.rank == 0:
        together = hashlib.sha256("".join(text for text, _ in digests).encode()).hexdigest()
        print(f"kinds {len(checked)}, results {sum(count for _, count in digests)}, digest {together}: right")


if __name__ == "__main__":
    main()

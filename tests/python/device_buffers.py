"""mpi4py's calls with buffers on the device, of all, of some and of one rank, in every form; what is on the device stays there: the
processor that touches it ends the job."""

import sys

import numpy as np
from mpi4py import MPI

from device_array import DRIVER, DeviceArray

comm = MPI.COMM_WORLD
failures = 0


def expect(right, what):
    global failures
    if not right:
        failures += 1
        print(f"rank {comm.rank}: wrong: {what}", flush=True)


def values_of(buffer):
    return buffer.values if isinstance(buffer, DeviceArray) else buffer


def buffers(where, count, dtype):
    """(to send, to receive): on the device of all ranks, of the odd ones, or one of both."""
    mine = (np.arange(count) % 7 + comm.rank).astype(dtype)
    got = np.zeros(count, dtype)
    send_there = where == "all" or (where == "odd" and comm.rank % 2) or where == "sends"
    receive_there = where == "all" or (where == "odd" and comm.rank % 2)
    return DeviceArray(mine) if send_there else mine, DeviceArray(got) if receive_there else got


for where in ("all", "odd", "sends", "none"):
    for dtype in (np.int32, np.float64):
        for count in (1, 1000, 200_000):
            send, receive = buffers(where, count, dtype)
            ramp, everybody = np.arange(count) % 7, sum(range(comm.size))
            what = f"{where}, {count} of {np.dtype(dtype)}"
            comm.Allreduce(send, receive)
            expect((values_of(receive) == ramp * comm.size + everybody).all(), f"allreduce, {what}")
            comm.Iallreduce(send, receive, op=MPI.MAX).Wait()
            expect((values_of(receive) == ramp + comm.size - 1).all(), f"iallreduce, {what}")
            comm.Bcast(send, root=comm.size - 1)
            expect((values_of(send) == ramp + comm.size - 1).all(), f"bcast, {what}")
            comm.Allreduce(MPI.IN_PLACE, send)
            expect((values_of(send) == (ramp + comm.size - 1) * comm.size).all(), f"allreduce in place, {what}")

copies = DRIVER.fake_cuda_copies()
expect(copies > 0, "the driver has copied nothing")
failures = comm.allreduce(failures)
if comm.rank == 0:
    print(f"device_buffers: {'wrong' if failures else 'all right'}")
sys.exit(int(failures > 0))

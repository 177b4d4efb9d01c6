"""plait_fused with arrays on the device, by either protocol, of all ranks and of some: what comes of it is numpy's result, and what cannot be
used is an error on all ranks. What is on the device stays there: the processor that touches it ends the job."""

import ctypes
import sys

import numpy as np
from mpi4py import MPI

import plait_fused
from device_array import DRIVER, DeviceArray

comm = MPI.COMM_WORLD
failures = 0


def expect(right, what):
    global failures
    if not right:
        failures += 1
        print(f"rank {comm.rank}: wrong: {what}", flush=True)


class Capsuled:
    """A DeviceArray as DLPack knows one, and no other protocol. uint16 are its bfloat16."""

    KINDS = {"i": 0, "u": 1, "f": 2}
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    def __init__(self, values):
        self.array = DeviceArray(values)
        sides = self.array.shape
        code, bits = (4, 16) if values.dtype == np.uint16 else (self.KINDS[values.dtype.kind], 8 * values.dtype.itemsize)
        self.lists = (ctypes.c_int64 * len(sides))(*sides), (ctypes.c_int64 * len(sides))(
            *[stride // values.dtype.itemsize for stride in values.strides])
        self.tensor = plait_fused._DlTensor(self.array.address, 2, 0, len(sides), code, bits, 1, *self.lists, 0)

    @property
    def values(self):
        return self.array.values

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        expect(stream == 1, "the stream that a tensor is taken for")
        return self.new(ctypes.addressof(self.tensor), b"dltensor", None)


class LikeTorch(Capsuled):
    """Both protocols, as PyTorch's tensors have them: to the first bfloat16 is bytes without a meaning, and to older ones nothing."""

    @property
    def __cuda_array_interface__(self):
        if self.array.dtype != np.uint16:
            return self.array.__cuda_array_interface__
        if comm.rank % 2:
            raise KeyError("torch.bfloat16")
        return {**self.array.__cuda_array_interface__, "typestr": "<V2"}


class ReadOnly(DeviceArray):
    @property
    def __cuda_array_interface__(self):
        return {**super().__cuda_array_interface__, "data": (self.address, True)}


def is_here(array):
    return isinstance(array, np.ndarray)


def values_of(array):
    return array if is_here(array) else array.values


def numbers(*shape, seed):
    """The same on all ranks that ask for it; small integers, so that all sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def bfloat16(values):
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def check_embedding(place, what):
    batch, dim, rows = 13, 8, 20
    own = numbers(rows, dim, seed=comm.rank)
    share = plait_fused.share_of(batch, comm)
    output = place(np.zeros((share.stop - share.start, comm.size, dim), np.float32))
    with plait_fused.Embedding(comm, [place(bfloat16(own))], batch, dim, output=output) as plan:
        for round_ in range(2):
            all_rows = [np.random.default_rng(100 * round_ + rank).integers(0, rows, 3 * batch) for rank in range(comm.size)]
            plan.run(place(all_rows[comm.rank]), place(np.arange(0, 3 * batch + 1, 3)))
            expected = [numbers(rows, dim, seed=rank)[all_rows[rank]].reshape(batch, 3, dim).sum(axis=1) for rank in range(comm.size)]
            expect((values_of(output) == np.stack(expected, axis=1)[share]).all(), f"embedding, {what}")
        return plan.description.get("on") == "devices"


def check_products(place, what):
    rows, columns, depth = 23, 70, 9
    weights = numbers(rows, depth, seed=10 + comm.rank)
    output = place(np.zeros((2, rows), np.float32))
    with plait_fused.Gemv(comm, place(weights), columns=2, output=output) as plan:
        plan.run(place(numbers(2, depth, seed=20 + comm.rank)))
        expected = sum(numbers(2, depth, seed=20 + rank) @ numbers(rows, depth, seed=10 + rank).T for rank in range(comm.size))
        expect((values_of(output) == expected).all(), f"gemv, {what}")
        there = plan.description.get("on") == "devices"
    share = plait_fused.share_of(rows, comm)
    output = place(np.zeros((share.stop - share.start, columns), np.float32))
    with plait_fused.GemmReduceScatter(comm, place(numbers(depth, columns, seed=30 + comm.rank)), rows, output=output) as plan:
        plan.run(place(numbers(rows, depth, seed=40 + comm.rank)))
        expected = sum(numbers(rows, depth, seed=40 + rank) @ numbers(depth, columns, seed=30 + rank) for rank in range(comm.size))
        expect((values_of(output) == expected[share]).all(), f"gemm_reduce_scatter, {what}")
        there = there and plan.description.get("on") == "devices"
    output = place(np.zeros((rows, columns), np.float32))
    with plait_fused.AllGatherGemm(comm, place(numbers(depth, columns, seed=70 + comm.rank)), rows, output=output) as plan:
        x = numbers(rows, depth, seed=80)
        plan.run(place(x[share]))
        expect((values_of(output) == x @ numbers(depth, columns, seed=70 + comm.rank)).all(), f"all_gather_gemm, {what}")
        return there and plan.description.get("on") == "devices"


def check_experts(place, what):
    """Each rank's token t chooses rank t's expert."""
    depth, columns = 6, 10
    weights, tokens = place(numbers(depth, columns, seed=50 + comm.rank)), comm.size
    rows = numbers(comm.size, 1, depth, seed=60 + comm.rank)
    output = place(np.zeros((tokens, columns), np.float32))
    chosen = np.arange(tokens, dtype=np.int32).reshape(tokens, 1)
    with plait_fused.MoeCombine(comm, [weights], tokens, 1, depth, columns, 1, output=output) as plan:
        plan.run(place(rows), place(chosen), place(np.full((tokens, 1), 2, np.float32)))
        expected = [2 * numbers(comm.size, 1, depth, seed=60 + rank)[comm.rank, 0] @ numbers(depth, columns, seed=50 + rank)
                    for rank in range(comm.size)]
        expect((values_of(output) == np.stack(expected)).all(), f"moe_combine, {what}")
        return plan.description.get("on") == "devices"


def check_refused():
    """Of the constructor, and of a run."""
    good = DeviceArray(numbers(4, 3, seed=1))
    for bad in (DeviceArray(np.zeros((4, 3))), Capsuled(np.zeros((3, 4), np.float32).T), Capsuled(np.zeros((4, 3), np.int64))):
        try:
            plait_fused.Gemv(comm, bad if comm.rank == comm.size - 1 else good)
            expect(False, "weights that cannot be used")
        except plait_fused.Error as error:
            expect(f"(on rank {comm.size - 1})" in str(error), f"the text of an error: {error}")
    output = np.zeros((1, 4), np.float32)
    try:
        plait_fused.Gemv(comm, good, output=(DeviceArray if comm.rank else ReadOnly)(output))
        expect(False, "an output that cannot be written")
    except plait_fused.Error as error:
        expect(str(error).startswith("output: it is read-only") and "(on rank 0)" in str(error), f"the text of an error: {error}")
    with plait_fused.Gemv(comm, good) as plan:
        try:
            plan.run(DeviceArray(np.zeros((1, 3), np.float64 if comm.rank == 0 else np.float32)))
            expect(False, "an x that cannot be used")
        except plait_fused.Error as error:
            expect("(on rank 0)" in str(error), f"the text of an error: {error}")
            expect(comm.rank != 0 or str(error).startswith("x: on a GPU: float64: expected float32"), f"the text of an error: {error}")


for name, place in (("interface", DeviceArray), ("dlpack", Capsuled), ("odd ranks", DeviceArray if comm.rank % 2 else np.asarray)):
    for check in (check_embedding, check_products, check_experts):
        expect(check(place, name) == (name != "odd ranks"), f"whether it ran on the devices: {check.__name__}, {name}")
expect(check_embedding(LikeTorch, "bfloat16 of PyTorch"), "whether bfloat16 of PyTorch ran on the devices")
check_refused()

expect(DRIVER.fake_cuda_kernels() > 0, "no kernel ran")
failures = comm.allreduce(failures)
if comm.rank == 0:
    print(f"fused_device: {'wrong' if failures else 'all right'}")
sys.exit(int(failures > 0))

"""Plait's fused operators for numpy arrays and mpi4py communicators.

Each class is a plan of include/plait/plait_fused.h, whose words are the contract: made once by all ranks of a
communicator together, run as often as needed, one run at a time. A plan keeps the arrays that it was made with, and
until wait() those that a run was given; runs return the plan's output, which the next run writes again.

The job preloads libplait.so:  mpirun -n 4 -x LD_PRELOAD=libplait.so python3 program.py

Elements: float32; uint16, which are bfloat16's bits; int8 with a float32 scale a row.
"""

import ctypes
import json

import numpy as np
from mpi4py import MPI

__all__ = ["AllGatherGemm", "Embedding", "EmbeddingBack", "Error", "GemmReduceScatter", "Gemv", "MoeCombine",
           "MoeDispatch", "empty", "share_of"]

_TYPES = {np.dtype(np.float32): 0, np.dtype(np.uint16): 1, np.dtype(np.int8): 2}
_MODES = {"sum": 0, "mean": 1}
_i64, _pointer, _f32 = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float


class Error(RuntimeError):
    """What a call refused: its text names the argument, and the rank where it is another's."""


def _load():
    library = ctypes.CDLL(None)
    if not hasattr(library, "plait_fused_free"):
        raise ImportError("libplait.so is not loaded: run the job with LD_PRELOAD=libplait.so")
    library.plait_alloc.restype = _pointer
    library.plait_alloc.argtypes = [ctypes.c_size_t]
    library.plait_free.restype = None
    library.plait_free.argtypes = [_pointer]
    library.plait_fused_describe.restype = ctypes.c_char_p
    library.plait_fused_describe.argtypes = [_pointer]
    return library


_library = _load()


# ---- Memory ----


class _Block:
    """Memory from plait_alloc(), given back with the last array that lies in it."""

    def __init__(self, bytes):
        self.address = _library.plait_alloc(max(bytes, 1))
        if not self.address:
            raise MemoryError(f"plait_alloc of {bytes} bytes")
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (bytes,), "data": (self.address, False)}

    def __del__(self):
        if getattr(self, "address", None):
            _library.plait_free(self.address)


def empty(shape, dtype=np.float32):
    """An array that the ranks of the node can map, so that they write their parts of an output straight into it."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    return np.asarray(_Block(count * dtype.itemsize)).view(dtype).reshape(shape)


def share_of(rows, comm):
    """Which rows are this rank's: a slice. The first ranks have one more where they are no multiple of the ranks."""
    even, more = divmod(rows, comm.size)
    begin = even * comm.rank + min(more, comm.rank)
    return slice(begin, begin + even + (comm.rank < more))


# ---- Arguments ----


def _address(array):
    return None if array is None else array.ctypes.data


def _in_place(name, array, dtypes, shape=None):
    """An array that Plait reads or writes where it lies: nothing is converted."""
    if array is None:
        return None
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        raise Error(f"{name}: expected a numpy array without gaps, row by row")
    if array.dtype not in [np.dtype(one) for one in dtypes]:
        raise Error(f"{name}: {array.dtype}: expected {' or '.join(np.dtype(one).name for one in dtypes)}")
    if shape is not None and array.shape != tuple(shape):
        raise Error(f"{name}: shape {array.shape}: expected {tuple(shape)}")
    return array


def _given(array, dtype):
    """What a run reads: converted only where it is something else."""
    return None if array is None else np.ascontiguousarray(array, dtype=dtype)


def _list_of(addresses):
    return (_pointer * max(len(addresses), 1))(*addresses)


def _handle(comm):
    kind = ctypes.c_int if MPI._sizeof(MPI.Comm) == 4 else _pointer
    return kind.from_address(MPI._addressof(comm))


# ---- Plans ----


class _Plan:
    """What all operators share. One is a name, a shape and the arguments of create() and start() behind it."""

    name = ""  # plait_fused_NAME_create

    def __init__(self, comm, shape, places, options, keeps):
        self._plan, self._keeps, self._run = _pointer(), keeps, None
        create = getattr(_library, f"plait_fused_{self.name}_create")
        arguments = [_pointer(one) if not isinstance(one, ctypes.Array) else one for one in places]
        self._check(create(_handle(comm), ctypes.byref(shape), *arguments, options.encode(), ctypes.byref(self._plan)))

    def _check(self, code):
        if code != MPI.SUCCESS:
            raise Error(MPI.Get_error_string(code))

    def _start(self, arrays, *arguments):
        # A run that is under way keeps its own arrays where this one is refused for it.
        self._check(getattr(_library, f"plait_fused_{self.name}_start")(self._plan, *arguments))
        self._run = arrays

    def wait(self):
        """Ends a run: what it brings."""
        try:
            self._check(_library.plait_fused_wait(self._plan))
        finally:
            self._run = None
        return self.output

    def run(self, *arguments, **named):
        """start() and wait()."""
        self.start(*arguments, **named)
        return self.wait()

    @property
    def description(self):
        return json.loads(_library.plait_fused_describe(self._plan))

    def free(self):
        """Collective, in the same order as for other plans; left out, MPI_Finalize does it."""
        if self._plan:
            self._check(_library.plait_fused_free(ctypes.byref(self._plan)))
        self._keeps = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()


# ---- Embeddings ----


class _EmbeddingShape(ctypes.Structure):
    _fields_ = [("batch", _i64), ("dim", _i64), ("tables", _i64), ("rows", _pointer), ("data", _pointer),
                ("scales", _pointer), ("type", ctypes.c_int), ("mode", ctypes.c_int), ("weighted", ctypes.c_int)]


class _Bags(_Plan):
    """Both directions of an embedding: `tables` of this rank, {rows, dim} each."""

    def _shape(self, tables, batch, dim, mode, weighted, scales):
        dtype = tables[0].dtype if tables else np.dtype(np.float32)
        for number, table in enumerate(tables):
            _in_place(f"tables[{number}]", table, [dtype], [len(table), dim])
            if scales is not None:
                _in_place(f"scales[{number}]", scales[number], [np.float32], [len(table)])
        if dtype not in _TYPES:
            raise Error(f"tables: {dtype}: expected float32, uint16 (bfloat16) or int8")
        self._data = _list_of([_address(table) for table in tables])
        self._scales = _list_of([_address(one) for one in scales]) if scales is not None else None
        self._rows = np.array([len(table) for table in tables], dtype=np.int64)
        return _EmbeddingShape(batch, dim, len(tables), _address(self._rows), ctypes.addressof(self._data),
                               ctypes.addressof(self._scales) if self._scales is not None else None,
                               _TYPES[dtype], _MODES[mode], weighted)

    def _start_bags(self, indices, offsets, weights, *more):
        indices, offsets, weights = _given(indices, np.int64), _given(offsets, np.int64), _given(weights, np.float32)
        self._start((indices, offsets, weights), _pointer(_address(indices)), _i64(indices.size),
                    _pointer(_address(offsets)), _pointer(_address(weights)), *more)


class Embedding(_Bags):
    """Embedding bags and all-to-all: output[sample, table] of this rank's samples and all ranks' tables."""

    name = "embedding"

    def __init__(self, comm, tables, batch, dim, *, mode="sum", weighted=False, scales=None, output=None, options=""):
        samples, all_tables = share_of(batch, comm), comm.allreduce(len(tables))
        shape = (samples.stop - samples.start, all_tables, dim)
        self.output = empty(shape) if output is None else _in_place("output", output, [np.float32], shape)
        super().__init__(comm, self._shape(tables, batch, dim, mode, weighted, scales), [_address(self.output)],
                         options, (tables, scales))

    def start(self, indices, offsets, weights=None):
        """`offsets`: tables * batch + 1 numbers; bag b of table t begins at offsets[t * batch + b]."""
        self._start_bags(indices, offsets, weights)


class EmbeddingBack(_Bags):
    """Gradients' all-to-all and table[index] += factor * weight * gradient, where the tables lie (float32 or uint16)."""

    name = "embedding_back"
    output = None  # the tables are

    def __init__(self, comm, tables, gradients, batch, dim, *, mode="sum", weighted=False, options=""):
        samples, all_tables = share_of(batch, comm), comm.allreduce(len(tables))
        _in_place("gradients", gradients, [np.float32], (samples.stop - samples.start, all_tables, dim))
        shape = self._shape(tables, batch, dim, mode, weighted, None)
        super().__init__(comm, shape, [ctypes.addressof(self._data), _address(gradients)], options, (tables, gradients))

    def start(self, indices, offsets, weights=None, *, factor):
        """`factor`: -learning rate, say."""
        self._start_bags(indices, offsets, weights, _f32(factor))


# ---- Products ----


class _ProductShape(ctypes.Structure):
    _fields_ = [("rows", _i64), ("depth", _i64), ("columns", _i64), ("type", ctypes.c_int), ("data", _pointer),
                ("scales", _pointer)]  # a matrix product's ends before the scales


class _Product(_Plan):
    """Of weights that stay: `output` is made where none is given."""

    def _make(self, comm, weights, sizes, output, shape, options, dtypes, scales=None):
        _in_place("weights", weights, dtypes)
        self.output = empty(shape) if output is None else _in_place("output", output, [np.float32], shape)
        shape = _ProductShape(*sizes, _TYPES[weights.dtype], _address(weights), _address(scales))
        super().__init__(comm, shape, [_address(self.output)], options, (weights, scales))

    def start(self, x):
        x = _given(x, np.float32)
        if x.shape != self._x:
            raise Error(f"x: shape {x.shape}: expected {self._x}")
        self._start((x,), _pointer(_address(x)))


class Gemv(_Product):
    """Product and all-reduce: output[column] = sum over ranks of W_r @ x_r[column]; `weights` {rows, depth_r}."""

    name = "gemv"

    def __init__(self, comm, weights, columns=1, *, scales=None, output=None, options=""):
        rows, depth = weights.shape
        self._x = (columns, depth)
        self._make(comm, weights, (rows, depth, columns), output, (columns, rows), options,
                   [np.float32, np.uint16, np.int8], _in_place("scales", scales, [np.float32], [rows]))


class GemmReduceScatter(_Product):
    """Product and reduce-scatter: this rank's rows of the sum over ranks of x_r @ W_r; `weights` {depth_r, columns}."""

    name = "gemm_reduce_scatter"

    def __init__(self, comm, weights, rows, *, output=None, options=""):
        (depth, columns), own = weights.shape, share_of(rows, comm)
        self._x = (rows, depth)
        self._make(comm, weights, (rows, depth, columns), output, (own.stop - own.start, columns), options, [np.float32])


class AllGatherGemm(_Product):
    """All-gather and product: x @ W_r, of all rows of x, of which each rank has a share; `weights` {depth, columns_r}."""

    name = "all_gather_gemm"

    def __init__(self, comm, weights, rows, *, output=None, options=""):
        (depth, columns), own = weights.shape, share_of(rows, comm)
        self._x = (own.stop - own.start, depth)
        self._make(comm, weights, (rows, depth, columns), output, (rows, columns), options, [np.float32])


# ---- Layers of experts ----


class _MoeShape(ctypes.Structure):
    _fields_ = [("tokens", _i64), ("choices", _i64), ("experts", _i64), ("depth", _i64), ("columns", _i64),
                ("capacity", _i64), ("type", ctypes.c_int), ("data", _pointer)]


class _Moe(_Plan):
    """Of a list of this rank's experts' weights, {depth, columns} each; room for `capacity` rows a pair of ranks."""

    def _make(self, comm, weights, sizes, capacity, output, shape, places, options):
        tokens, choices, depth, columns = sizes
        for number, one in enumerate(weights):
            _in_place(f"weights[{number}]", one, [np.float32], [depth, columns])
        self._data = _list_of([_address(one) for one in weights])
        self.output = empty(shape) if output is None else _in_place("output", output, [np.float32], shape)
        self._chosen = (tokens, choices)
        shape = _MoeShape(tokens, choices, len(weights), depth, columns, capacity, 0, ctypes.addressof(self._data))
        super().__init__(comm, shape, [_address(self.output), *places], options, (weights, self._data))

    def _start_rows(self, x, experts, *more):
        x, experts = _given(x, np.float32), _given(experts, np.int32)
        if x.shape != self._x or experts.shape != self._chosen:
            raise Error(f"x, experts: shapes {x.shape}, {experts.shape}: expected {self._x}, {self._chosen}")
        self._start((x, experts, *more), *[_pointer(_address(one)) for one in (x, experts, *more)])


class MoeDispatch(_Moe):
    """Tokens to the experts that they have chosen, and these experts' products: output[rank][row]; `counts[rank][expert]`
    says how many rows each rank has for each of this rank's experts, one expert's after the other's."""

    name = "moe_dispatch"

    def __init__(self, comm, weights, tokens, choices, depth, columns, capacity, *, output=None, options=""):
        self._x = (tokens, depth)
        self.counts = np.zeros((comm.size, len(weights)), np.int64)
        self._make(comm, weights, (tokens, choices, depth, columns), capacity, output, (comm.size, capacity, columns),
                   [_address(self.counts)], options)

    def start(self, x, experts):
        """`experts`: {tokens, choices} numbers among all ranks' experts; -1 drops a choice."""
        self._start_rows(x, experts)


class MoeCombine(_Moe):
    """Experts' products of the rows that a dispatch left, and the weighted sum of its choices for each token."""

    name = "moe_combine"

    def __init__(self, comm, weights, tokens, choices, depth, columns, capacity, *, output=None, options=""):
        self._x = (comm.size, capacity, depth)
        self._make(comm, weights, (tokens, choices, depth, columns), capacity, output, (tokens, columns), [], options)

    def start(self, x, experts, weights):
        """`x`: rows as the dispatch of the same choices leaves them; `weights`: {tokens, choices} factors."""
        self._start_rows(x, experts, _given(weights, np.float32))

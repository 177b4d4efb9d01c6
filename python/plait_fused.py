"""Plait's fused operators for numpy arrays, arrays of GPUs, and mpi4py communicators.

Each class is a plan of include/plait/plait_fused.h, whose words are the contract: made once by all ranks of a
communicator together, run as often as needed, one run at a time. A plan keeps the arrays that it was made with, and
until wait() those that a run was given; runs return the plan's output, which the next run writes again.

What one rank gives and this module refuses is an error on all of them, as what the plan itself refuses is: of the
constructor, or of wait(). A run's arguments that cannot be used reach the plan as NULL, which is what other ranks hear.

The job preloads libplait.so:  mpirun -n 4 -x LD_PRELOAD=libplait.so python3 program.py

Elements: float32; uint16, which are bfloat16's bits; int8 with a float32 scale a row.

Wherever an array is read or written in its place, or given to a run, it may be one on a GPU: of CuPy, PyTorch or others,
known by its __cuda_array_interface__ or __dlpack__ (bfloat16 too). Nothing of such an array is converted. Plait's work
comes after what the program has given its default stream; what others have to do with an array must be done before.
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


def _share_length(rows, comm):
    own = share_of(rows, comm)
    return own.stop - own.start


# ---- Arguments ----


class _OnDevice:
    """An array on a GPU, as far as a plan looks at it; it keeps the array."""

    def __init__(self, owner, address, shape, dtype, strides, is_read_only=False):
        self.owner, self.address, self.shape, self.dtype = owner, address, tuple(shape), dtype
        self.is_read_only = is_read_only
        self.size = int(np.prod(self.shape, dtype=np.int64))
        dense = [int(np.prod(self.shape[place + 1 :], dtype=np.int64)) for place in range(len(self.shape))]
        # Of a side of one element any stride will do, and of nothing all.
        self.is_dense = strides is None or self.size == 0 or all(
            length == 1 or stride == step for length, stride, step in zip(self.shape, strides, dense))

    def __len__(self):
        return self.shape[0]


class _DlTensor(ctypes.Structure):
    """The begin of DLPack's DLManagedTensor."""

    _fields_ = [("data", _pointer), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("dimensions", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(_i64)),
                ("strides", ctypes.POINTER(_i64)), ("offset", ctypes.c_uint64)]


_DL_ON_DEVICE = (2, 13)  # memory of CUDA's, and what the driver moves
_DL_KINDS = {0: "i", 1: "u", 2: "f"}
_DL_BFLOAT = 4
_DEFAULT_STREAM = 1


def _by_interface(array, described):
    dtype = np.dtype(described["typestr"])
    strides = described.get("strides")
    if strides is not None:
        strides = [stride // dtype.itemsize if stride % dtype.itemsize == 0 else -1 for stride in strides]
    address, is_read_only = described["data"]
    return _OnDevice(array, address, described["shape"], dtype, strides, is_read_only)


def _by_dlpack(array):
    capsule = array.__dlpack__(stream=_DEFAULT_STREAM)
    unpack = ctypes.pythonapi.PyCapsule_GetPointer
    unpack.restype, unpack.argtypes = _pointer, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DlTensor.from_address(unpack(capsule, b"dltensor"))
    if tensor.lanes != 1 or (tensor.code not in _DL_KINDS and (tensor.code, tensor.bits) != (_DL_BFLOAT, 16)):
        raise Error("its elements are of no kind that a plan knows")
    dtype = np.dtype(f"{_DL_KINDS.get(tensor.code, 'u')}{tensor.bits // 8}")
    sides = range(tensor.dimensions)
    strides = [tensor.strides[side] for side in sides] if tensor.strides else None
    return _OnDevice((array, capsule), (tensor.data or 0) + tensor.offset, [tensor.shape[side] for side in sides], dtype, strides)


def _seen(array):
    """An array on a GPU as what it is there; everything else as it is."""
    if array is None or isinstance(array, (np.ndarray, _OnDevice)):
        return array
    try:
        described = getattr(array, "__cuda_array_interface__", None)
    except (AttributeError, KeyError, TypeError, RuntimeError):  # PyTorch's of bfloat16, or that want gradients
        described = None
    # Bytes without a meaning, as what bfloat16 is to others.
    is_opaque = described is not None and np.dtype(described["typestr"]).kind == "V"
    if described is not None and not (is_opaque and hasattr(array, "__dlpack__")):
        return _by_interface(array, described)
    if hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] in _DL_ON_DEVICE:
        return _by_dlpack(array)
    return array


def _address(array):
    array = _seen(array)
    if array is None:
        return None
    return array.address if isinstance(array, _OnDevice) else array.ctypes.data


def _in_place(name, array, dtypes, shape=None, is_written=False):
    """An array that Plait reads or writes where it lies: nothing is converted."""
    if array is None:
        return None
    given, array = array, _seen(array)
    there = isinstance(array, _OnDevice)
    if not there and not isinstance(array, np.ndarray) or not (array.is_dense if there else array.flags.c_contiguous):
        raise Error(f"{name}: expected a numpy array, or one on a GPU, without gaps, row by row")
    if array.dtype not in [np.dtype(one) for one in dtypes]:
        raise Error(f"{name}: {array.dtype}: expected {' or '.join(np.dtype(one).name for one in dtypes)}")
    if shape is not None and array.shape != tuple(shape):
        raise Error(f"{name}: shape {array.shape}: expected {tuple(shape)}")
    if is_written and (array.is_read_only if there else not array.flags.writeable):
        raise Error(f"{name}: it is read-only: expected an array that can be written")
    return given


def _whole(**numbers):
    for name, value in numbers.items():
        if not hasattr(value, "__index__"):
            raise Error(f"{name}: {value!r}: expected a whole number")


def _list(name, arrays):
    if not hasattr(arrays, "__iter__"):
        raise Error(f"{name}: {arrays!r}: expected a list of arrays")
    return tuple(_seen(array) for array in arrays)


def _words(options):
    if not isinstance(options, str):
        raise Error(f"options: {options!r}: expected a string")
    return options.encode()


def _matrix(name, array, dtypes):
    dimensions = len(array.shape) if isinstance(array, _OnDevice) else np.ndim(array)
    if dimensions != 2:
        raise Error(f"{name}: {dimensions} dimensions: expected 2")
    return _in_place(name, array, dtypes)


def _output(output, shape):
    """The given one, or one that is made. Of a size that is none the plan complains."""
    return empty(np.maximum(shape, 0)) if output is None else _in_place("output", output, [np.float32], shape, is_written=True)


class _Given:
    """What a run reads, kept until its end. What cannot be used is passed on as NULL, so that the plan complains to all
    ranks, and what was wrong is said by wait()."""

    def __init__(self):
        self.arrays, self.wrong = [], None

    def take(self, name, convert):
        try:
            return convert()
        except Exception as error:  # of whatever kind: the others wait for this rank
            self.wrong = self.wrong or f"{name}: {error}"
            return None

    def array(self, name, array, dtype, shape=None, size=None):
        """Converted only where it is something else, and not on a GPU. Not looked at where nothing of it is used."""

        def convert():
            made = _seen(array)
            if isinstance(made, _OnDevice):
                _in_place("on a GPU", made, [dtype])
            else:
                made = np.ascontiguousarray(made, dtype=dtype)
            if shape is not None and made.shape != shape:
                raise Error(f"shape {made.shape}: expected {shape}")
            if size is not None and made.size != size:
                raise Error(f"{made.size} numbers: expected {size}")
            return made

        if array is None or size == 0 or (shape is not None and 0 in shape):
            return None
        self.arrays.append(self.take(name, convert))
        return self.arrays[-1]


def _agreed(comm, prepare):
    """What `prepare` returns. Where it fails on a rank, all ranks have the first one's error: none goes on alone."""
    made = wrong = cause = None
    try:
        made = prepare()
    except Exception as error:  # of whatever kind: the others wait for this rank
        wrong, cause = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}", error
    for rank, text in enumerate(comm.allgather(wrong)):
        if text is not None:
            raise Error(f"{text} (on rank {rank})") from cause
    return made


def _list_of(addresses):
    return (_pointer * max(len(addresses), 1))(*addresses)


def _handle(comm):
    kind = ctypes.c_int if MPI._sizeof(MPI.Comm) == 4 else _pointer
    return kind.from_address(MPI._addressof(comm))


# ---- Plans ----


class _Plan:
    """What all operators share. One is a name, a shape and the arguments of create() and start() behind it."""

    name = ""  # plait_fused_NAME_create
    _under_way = set()  # plans whose run is, and that Plait works on though they be forgotten

    def __init__(self, comm, options, prepare):
        """`prepare` makes of what this rank gives: the shape, addresses behind it, and what the plan keeps in use."""
        self._plan, self._run, self._rank = _pointer(), None, comm.rank
        words, (shape, places, self._keeps) = _agreed(comm, lambda: (_words(options), prepare()))
        create = getattr(_library, f"plait_fused_{self.name}_create")
        self._check(create(_handle(comm), ctypes.byref(shape), *map(_pointer, places), words, ctypes.byref(self._plan)))

    def _check(self, code):
        if code != MPI.SUCCESS:
            raise Error(MPI.Get_error_string(code))

    def _start(self, given, *arguments):
        # A run that is under way keeps its own arrays where this one is refused for it.
        self._check(getattr(_library, f"plait_fused_{self.name}_start")(self._plan, *arguments))
        self._run = given
        self._under_way.add(self)

    def wait(self):
        """Ends a run: what it brings."""
        code = _library.plait_fused_wait(self._plan)
        given, self._run = self._run, None
        self._under_way.discard(self)
        if given is not None and given.wrong is not None:
            raise Error(f"{given.wrong} (on rank {self._rank})")
        self._check(code)
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
        self._under_way.discard(self)

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

    changes_tables = False

    @staticmethod
    def _meet(comm, tables):
        """The tables, and how many all ranks have."""
        tables = _agreed(comm, lambda: _list("tables", tables))
        return tables, comm.allreduce(len(tables))

    def _shape(self, tables, batch, dim, mode, weighted, scales):
        if mode not in _MODES:
            raise Error(f"mode: {mode!r}: expected {' or '.join(_MODES)}")
        if scales is not None and len(scales) != len(tables):
            raise Error(f"scales: {len(scales)} arrays: expected {len(tables)}, a table each")
        scales = None if scales is None else _list("scales", scales)
        self._weighted, self._ends = weighted, len(tables) * batch + 1
        dtype = getattr(tables[0], "dtype", None) if tables else np.dtype(np.float32)
        for number, table in enumerate(tables):
            _in_place(f"tables[{number}]", table, [dtype], [len(table), dim], is_written=self.changes_tables)
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
        given = _Given()
        if not self._rows.size:  # nothing is looked at
            indices = offsets = weights = None
        rows = given.array("indices", indices, np.int64)
        count = 0 if indices is None else 1 if rows is None else rows.size
        ends = given.array("offsets", offsets, np.int64, size=self._ends)
        factors = given.array("weights", weights, np.float32, size=count) if self._weighted else None
        factor = [given.take("factor", lambda: _f32(one)) for one in more]
        if None in factor:  # the plan takes any
            factor, ends = [_f32()], None
        self._start(given, _pointer(_address(rows)), _i64(count), _pointer(_address(ends)),
                    _pointer(_address(factors)), *factor)


class Embedding(_Bags):
    """Embedding bags and all-to-all: output[sample, table] of this rank's samples and all ranks' tables."""

    name = "embedding"

    def __init__(self, comm, tables, batch, dim, *, mode="sum", weighted=False, scales=None, output=None, options=""):
        tables, all_tables = self._meet(comm, tables)

        def prepare():
            _whole(batch=batch, dim=dim)
            self.output = _output(output, (_share_length(batch, comm), all_tables, dim))
            shape = self._shape(tables, batch, dim, mode, weighted, scales)
            return shape, [_address(self.output)], (tables, scales)

        super().__init__(comm, options, prepare)

    def start(self, indices, offsets, weights=None):
        """`offsets`: tables * batch + 1 numbers; bag b of table t begins at offsets[t * batch + b]. `weights`: as many
        as indices. A rank without tables may give None."""
        self._start_bags(indices, offsets, weights)


class EmbeddingBack(_Bags):
    """Gradients' all-to-all and table[index] += factor * weight * gradient, where the tables lie (float32 or uint16)."""

    name = "embedding_back"
    output = None  # the tables are
    changes_tables = True

    def __init__(self, comm, tables, gradients, batch, dim, *, mode="sum", weighted=False, options=""):
        tables, all_tables = self._meet(comm, tables)

        def prepare():
            _whole(batch=batch, dim=dim)
            _in_place("gradients", gradients, [np.float32], (_share_length(batch, comm), all_tables, dim))
            shape = self._shape(tables, batch, dim, mode, weighted, None)
            return shape, [ctypes.addressof(self._data), _address(gradients)], (tables, gradients)

        super().__init__(comm, options, prepare)

    def start(self, indices, offsets, weights=None, *, factor):
        """`factor`: -learning rate, say."""
        self._start_bags(indices, offsets, weights, factor)


# ---- Products ----


class _ProductShape(ctypes.Structure):
    _fields_ = [("rows", _i64), ("depth", _i64), ("columns", _i64), ("type", ctypes.c_int), ("data", _pointer),
                ("scales", _pointer)]  # a matrix product's ends before the scales


class _Product(_Plan):
    """Of weights that stay: `output` is made where none is given."""

    def _make(self, comm, options, weights, dtypes, scales, output, read):
        """`read`, of the weights' sides: the shape's rows, depth and columns, and the shapes of x and of the output."""

        def prepare():
            matrix = _seen(weights)
            sizes, self._x, made = read(*_matrix("weights", matrix, dtypes).shape)
            self.output = _output(output, made)
            _in_place("scales", scales, [np.float32], sizes[:1])
            shape = _ProductShape(*sizes, _TYPES[matrix.dtype], _address(matrix), _address(scales))
            return shape, [_address(self.output)], (matrix, scales)

        super().__init__(comm, options, prepare)

    def start(self, x):
        given = _Given()
        x = given.array("x", x, np.float32, self._x)
        self._start(given, _pointer(_address(x)))


class Gemv(_Product):
    """Product and all-reduce: output[column] = sum over ranks of W_r @ x_r[column]; `weights` {rows, depth_r}."""

    name = "gemv"

    def __init__(self, comm, weights, columns=1, *, scales=None, output=None, options=""):
        def read(rows, depth):
            _whole(columns=columns)
            return (rows, depth, columns), (columns, depth), (columns, rows)

        self._make(comm, options, weights, [np.float32, np.uint16, np.int8], scales, output, read)


class GemmReduceScatter(_Product):
    """Product and reduce-scatter: this rank's rows of the sum over ranks of x_r @ W_r; `weights` {depth_r, columns}."""

    name = "gemm_reduce_scatter"

    def __init__(self, comm, weights, rows, *, output=None, options=""):
        def read(depth, columns):
            _whole(rows=rows)
            return (rows, depth, columns), (rows, depth), (_share_length(rows, comm), columns)

        self._make(comm, options, weights, [np.float32], None, output, read)


class AllGatherGemm(_Product):
    """All-gather and product: x @ W_r, of all rows of x, of which each rank has a share; `weights` {depth, columns_r}."""

    name = "all_gather_gemm"

    def __init__(self, comm, weights, rows, *, output=None, options=""):
        def read(depth, columns):
            _whole(rows=rows)
            return (rows, depth, columns), (_share_length(rows, comm), depth), (rows, columns)

        self._make(comm, options, weights, [np.float32], None, output, read)


# ---- Layers of experts ----


class _MoeShape(ctypes.Structure):
    _fields_ = [("tokens", _i64), ("choices", _i64), ("experts", _i64), ("depth", _i64), ("columns", _i64),
                ("capacity", _i64), ("type", ctypes.c_int), ("data", _pointer)]


class _Moe(_Plan):
    """Of a list of this rank's experts' weights, {depth, columns} each; room for `capacity` rows a pair of ranks."""

    def _make(self, comm, options, weights, sizes, output, read):
        """`read`, of the number of this rank's experts: the shapes of x and of the output, and addresses behind it."""
        tokens, choices, depth, columns, capacity = sizes

        def prepare():
            _whole(tokens=tokens, choices=choices, depth=depth, columns=columns, capacity=capacity)
            experts = _list("weights", weights)
            for number, one in enumerate(experts):
                _in_place(f"weights[{number}]", one, [np.float32], [depth, columns])
            self._data, self._chosen = _list_of([_address(one) for one in experts]), (tokens, choices)
            self._x, made, places = read(len(experts))
            self.output = _output(output, made)
            shape = _MoeShape(tokens, choices, len(experts), depth, columns, capacity, 0, ctypes.addressof(self._data))
            return shape, [_address(self.output), *places], (experts, self._data)

        super().__init__(comm, options, prepare)

    def _start_rows(self, x, experts, *weights):
        given = _Given()
        arrays = [given.array("x", x, np.float32, self._x), given.array("experts", experts, np.int32, self._chosen)]
        arrays += [given.array("weights", one, np.float32, self._chosen) for one in weights]
        self._start(given, *[_pointer(_address(one)) for one in arrays])


class MoeDispatch(_Moe):
    """Tokens to the experts that they have chosen, and these experts' products: output[rank][row]; `counts[rank][expert]`
    says how many rows each rank has for each of this rank's experts, one expert's after the other's."""

    name = "moe_dispatch"

    def __init__(self, comm, weights, tokens, choices, depth, columns, capacity, *, output=None, options=""):
        def read(experts):
            self.counts = np.zeros((comm.size, experts), np.int64)
            return (tokens, depth), (comm.size, capacity, columns), [_address(self.counts)]

        self._make(comm, options, weights, (tokens, choices, depth, columns, capacity), output, read)

    def start(self, x, experts):
        """`experts`: {tokens, choices} numbers among all ranks' experts; -1 drops a choice."""
        self._start_rows(x, experts)


class MoeCombine(_Moe):
    """Experts' products of the rows that a dispatch left, and the weighted sum of its choices for each token."""

    name = "moe_combine"

    def __init__(self, comm, weights, tokens, choices, depth, columns, capacity, *, output=None, options=""):
        def read(experts):
            # Without experts no rows come here.
            return (comm.size if experts else 0, capacity, depth), (tokens, columns), []

        self._make(comm, options, weights, (tokens, choices, depth, columns, capacity), output, read)

    def start(self, x, experts, weights):
        """`x`: rows as the dispatch of the same choices leaves them; `weights`: {tokens, choices} factors."""
        self._start_rows(x, experts, weights)

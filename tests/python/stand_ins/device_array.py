"""What arrays of CuPy and PyTorch are to MPI: memory of a device with a `__cuda_array_interface__`, here of the tests' own driver
(tests/fake_cuda), which ends a process whose processor touches it. Arithmetic is numpy's, through the driver's second mapping."""

import ctypes
import time

import numpy as np

DRIVER = ctypes.CDLL("libcuda.so.1")
DRIVER.fake_cuda_data.restype = ctypes.c_void_p
DRIVER.fake_cuda_data.argtypes = [ctypes.c_void_p]
DRIVER.cuMemFree_v2.argtypes = [ctypes.c_ulonglong]


def _succeed(result):
    if result != 0:
        raise RuntimeError(f"the driver's error {result}")


def _begin():
    context = ctypes.c_void_p()
    _succeed(DRIVER.cuInit(0))
    _succeed(DRIVER.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    _succeed(DRIVER.cuCtxSetCurrent(context))
    time.sleep(0.02)  # a real driver takes longer to give out its first memory, and is noticed by then


_begin()


class DeviceArray:
    def __init__(self, values):
        values = np.asarray(values)
        self.shape, self.dtype = values.shape, values.dtype
        address = ctypes.c_ulonglong()
        _succeed(DRIVER.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(values.nbytes, 1))))
        self.address = address.value
        memory = (ctypes.c_byte * values.nbytes).from_address(DRIVER.fake_cuda_data(self.address))
        self.values = np.frombuffer(memory, self.dtype).reshape(self.shape)
        self.values[...] = values

    def __del__(self):
        if hasattr(self, "address"):
            DRIVER.cuMemFree_v2(self.address)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "strides": None, "version": 3}

    def __getitem__(self, place):
        return type(self)(self.values[place])

    def __setitem__(self, place, value):
        self.values[place] = _values_of(value)

    def __float__(self):
        return float(self.values)

    def __matmul__(self, other):
        return type(self)(self.values @ _values_of(other))

    def __mul__(self, other):
        return type(self)((self.values * _values_of(other)).astype(self.dtype))

    def __truediv__(self, other):
        return type(self)((self.values / _values_of(other)).astype(self.dtype))

    def __sub__(self, other):
        return type(self)(self.values - _values_of(other))

    def __isub__(self, other):
        self.values -= _values_of(other)
        return self


def _values_of(other):
    return other.values if isinstance(other, DeviceArray) else other

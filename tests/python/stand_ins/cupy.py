"""As much of CuPy as python/examples calls, on the tests' own driver."""

from types import SimpleNamespace

import numpy as np
from device_array import DeviceArray


def asarray(values):
    return DeviceArray(values)


linalg = SimpleNamespace(norm=lambda array: np.linalg.norm(array.values))
cuda = SimpleNamespace(
    Device=lambda number: SimpleNamespace(use=lambda: None),
    runtime=SimpleNamespace(getDeviceCount=lambda: 1),
    get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
)

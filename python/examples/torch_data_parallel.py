"""Data-parallel descent with PyTorch: each rank has some of the samples on its GPU and computes the gradient of their squared
errors; the gradients of all are summed where they lie. The tensors go to mpi4py as they are, memory of the GPU: the MPI need
not know it (Debian's does not), Plait does. Checked against numpy, and that all ranks end with the same bits.

    mpirun -n 4 -x LD_PRELOAD=libplait.so python3 torch_data_parallel.py
"""

import sys

import numpy as np
import torch
from mpi4py import MPI

SAMPLES, FEATURES, OUTPUTS, STEPS, RATE = 1000, 20, 5, 40, 0.5
comm = MPI.COMM_WORLD
on_node = comm.Split_type(MPI.COMM_TYPE_SHARED)
torch.cuda.set_device(on_node.rank % torch.cuda.device_count())

# All ranks draw all samples, to check with; a program would load its own alone.
random = np.random.default_rng(5)
inputs = random.standard_normal((SAMPLES, FEATURES)).astype(np.float32)
targets = (inputs @ random.standard_normal((FEATURES, OUTPUTS))).astype(np.float32)

own = slice(comm.rank * SAMPLES // comm.size, (comm.rank + 1) * SAMPLES // comm.size)
x = torch.as_tensor(inputs[own], device="cuda")
y = torch.as_tensor(targets[own], device="cuda")

# Rank 0's first weights are everybody's.
begin = random.standard_normal((FEATURES, OUTPUTS)).astype(np.float32)
weights = torch.as_tensor(begin if comm.rank == 0 else np.zeros_like(begin), device="cuda")
torch.cuda.synchronize()
comm.Bcast(weights)

for _ in range(STEPS):
    gradient = x.T @ (x @ weights - y)
    # MPI knows of no streams: what it is to send must have been computed.
    torch.cuda.synchronize()
    comm.Allreduce(MPI.IN_PLACE, gradient)
    weights -= gradient * (RATE / SAMPLES)

expected = begin.astype(np.float64)
for _ in range(STEPS):
    expected -= inputs.T @ (inputs @ expected - targets) * (RATE / SAMPLES)

found = weights.cpu().numpy()
difference = comm.allreduce(np.abs(found - expected).max() / np.abs(expected).max(), op=MPI.MAX)
same = comm.allreduce(found.tobytes() == comm.bcast(found.tobytes()), op=MPI.LAND)
right = difference < 1e-5 and same
if comm.rank == 0:
    print(f"torch_data_parallel: {STEPS} steps on {comm.size} ranks, largest difference {difference:.1e}, "
          f"{'the same' if same else 'other'} bits on all: {'right' if right else 'wrong'}")
sys.exit(int(not right))

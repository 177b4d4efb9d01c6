"""The largest eigenvalue of a symmetric matrix by power iteration, with CuPy: each rank has some rows of the matrix on its
GPU, multiplies them with the vector, and all gather the product. The arrays go to mpi4py as they are, memory of the GPU:
the MPI need not know it (Debian's does not), Plait does. Checked against numpy.

    mpirun -n 4 -x LD_PRELOAD=libplait.so python3 cupy_power_iteration.py
"""

import sys

import cupy as cp
import numpy as np
from mpi4py import MPI

ROWS, STEPS = 500, 60
comm = MPI.COMM_WORLD
on_node = comm.Split_type(MPI.COMM_TYPE_SHARED)
cp.cuda.Device(on_node.rank % cp.cuda.runtime.getDeviceCount()).use()

# All ranks draw the whole matrix, to check with; a program would make its own rows alone. One eigenvalue is far above the others.
random = np.random.default_rng(3)
matrix = random.standard_normal((ROWS, ROWS)) / ROWS**0.5
matrix = (matrix + matrix.T) / 2 + np.full((ROWS, ROWS), 4.0 / ROWS)

counts = [ROWS // comm.size + (rank < ROWS % comm.size) for rank in range(comm.size)]
begin = sum(counts[: comm.rank])
own_rows = cp.asarray(matrix[begin : begin + counts[comm.rank]])
vector = cp.asarray(np.ones(ROWS))
product = cp.asarray(np.zeros(ROWS))

for _ in range(STEPS):
    own_part = own_rows @ vector
    # MPI knows of no streams: what it is to send must have been computed.
    cp.cuda.get_current_stream().synchronize()
    comm.Allgatherv(own_part, [product, counts])
    length = float(cp.linalg.norm(product))
    vector = product / length

# The same by a reduction: each rank's part of the vector's product with the matrix, and with itself.
own_vector = vector[begin : begin + counts[comm.rank]]
sums = cp.asarray(np.zeros(2))
sums[0] = own_vector @ (own_rows @ vector)
sums[1] = own_vector @ own_vector
cp.cuda.get_current_stream().synchronize()
comm.Allreduce(MPI.IN_PLACE, sums)
quotient = float(sums[0]) / float(sums[1])

expected = np.linalg.eigvalsh(matrix)[-1]
difference = max(abs(length - expected), abs(quotient - expected)) / expected
difference = comm.allreduce(difference, op=MPI.MAX)
right = difference < 1e-9
if comm.rank == 0:
    print(f"cupy_power_iteration: {STEPS} steps on {comm.size} ranks, largest difference {difference:.1e}: "
          f"{'right' if right else 'wrong'}")
sys.exit(int(not right))

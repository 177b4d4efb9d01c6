"""A decode step of a transformer's feed-forward layer, tensor parallel: the first weights are cut by rows, so that each
rank has its own part of the hidden vector, and the second by columns, so that the ranks' products are summed. That
product and its all-reduce are one fused operator. Checked against numpy.

    mpirun -n 4 -x LD_PRELOAD=libplait.so python3 tensor_parallel_decode.py
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import plait_fused

MODEL, HIDDEN, SEQUENCES, STEPS = 256, 1024, 4, 10
comm = MPI.COMM_WORLD

# All ranks draw the whole weights, to check with; a program would load its own part alone.
random = np.random.default_rng(7)
up = random.standard_normal((HIDDEN, MODEL)).astype(np.float32) / np.sqrt(MODEL, dtype=np.float32)
down = random.standard_normal((MODEL, HIDDEN)).astype(np.float32) / np.sqrt(HIDDEN, dtype=np.float32)
token = random.standard_normal((SEQUENCES, MODEL)).astype(np.float32)

part = plait_fused.share_of(HIDDEN, comm)
own_up, own_down = up[part], np.ascontiguousarray(down[:, part])
expected = token.astype(np.float64)
worst = 0.0

with plait_fused.Gemv(comm, own_down, columns=SEQUENCES) as layer:
    for _ in range(STEPS):
        hidden = np.maximum(token @ own_up.T, 0)  # this rank's part of every sequence's
        token = token + layer.run(hidden)         # the same on all ranks, to the bit
        token /= np.linalg.norm(token, axis=1, keepdims=True)

        expected = expected + np.maximum(expected @ up.T, 0) @ down.T
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        worst = max(worst, np.abs(token - expected).max() / np.abs(expected).max())

same = comm.allreduce(token.tobytes() == comm.bcast(token.tobytes()), op=MPI.LAND)
worst = comm.allreduce(worst, op=MPI.MAX)
right = worst < 1e-5 and same
if comm.rank == 0:
    print(f"tensor_parallel_decode: {STEPS} steps on {comm.size} ranks, largest difference {worst:.1e}, "
          f"{'the same' if same else 'other'} bits on all: {'right' if right else 'wrong'}")
sys.exit(int(not right))

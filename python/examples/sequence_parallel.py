"""A feed-forward layer, sequence parallel: outside of it each rank has its own tokens; the first product gathers all
tokens as they come, and the second one's sums go to the ranks that own them. Checked against numpy.

    mpirun -n 4 -x LD_PRELOAD=libplait.so python3 sequence_parallel.py
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import plait_fused

TOKENS, MODEL, HIDDEN, LAYERS = 200, 96, 256, 3
comm = MPI.COMM_WORLD

# All ranks draw everything, to check with; a program would have its own part alone.
random = np.random.default_rng(11)
up = random.standard_normal((MODEL, HIDDEN)).astype(np.float32) / np.sqrt(MODEL, dtype=np.float32)
down = random.standard_normal((HIDDEN, MODEL)).astype(np.float32) / np.sqrt(HIDDEN, dtype=np.float32)
tokens = random.standard_normal((TOKENS, MODEL)).astype(np.float32)

mine, part = plait_fused.share_of(TOKENS, comm), plait_fused.share_of(HIDDEN, comm)
own_up, own_down = np.ascontiguousarray(up[:, part]), down[part]
own, expected = tokens[mine], tokens.astype(np.float64)

with plait_fused.AllGatherGemm(comm, own_up, TOKENS) as first, \
        plait_fused.GemmReduceScatter(comm, own_down, TOKENS) as second:
    for _ in range(LAYERS):
        hidden = np.maximum(first.run(own), 0)  # all tokens, this rank's part of the hidden vectors
        own = own + second.run(hidden)          # this rank's tokens
        expected = expected + np.maximum(expected @ up, 0) @ down

worst = comm.allreduce(np.abs(own - expected[mine]).max(initial=0) / np.abs(expected).max(), op=MPI.MAX)
if comm.rank == 0:
    print(f"sequence_parallel: {LAYERS} layers on {comm.size} ranks, largest difference {worst:.1e}: "
          f"{'right' if worst < 1e-5 else 'wrong'}")
sys.exit(int(worst >= 1e-5))

"""A layer of a mixture of experts: each token goes to the two experts that suit it best, wherever they are, through
their first product, an activation and their second one, and gets the weighted sum back. Tokens beyond what there is
room for lose a choice. Checked against numpy.

    mpirun -n 4 -x LD_PRELOAD=libplait.so python3 moe_layer.py
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import plait_fused

TOKENS, MODEL, HIDDEN, EXPERTS, CHOICES, STEPS = 60, 48, 96, 3, 2, 4
comm = MPI.COMM_WORLD
capacity = int(1.25 * TOKENS * CHOICES / comm.size) + 1  # rows from one rank to another

# All ranks draw all experts, to check with; a program would load its own alone.
random = np.random.default_rng(5)
up = random.standard_normal((comm.size * EXPERTS, MODEL, HIDDEN)).astype(np.float32) / 7
down = random.standard_normal((comm.size * EXPERTS, HIDDEN, MODEL)).astype(np.float32) / 10
gate = random.standard_normal((MODEL, comm.size * EXPERTS)).astype(np.float32)
own = slice(comm.rank * EXPERTS, (comm.rank + 1) * EXPERTS)
tokens = np.random.default_rng([6, comm.rank]).standard_normal((TOKENS, MODEL)).astype(np.float32)
worst, dropped = 0.0, 0


def choose(tokens):
    """The best experts and their weights; what is over the capacity of a rank is dropped."""
    scores = tokens @ gate
    experts = np.argsort(-scores, axis=1)[:, :CHOICES].astype(np.int32)
    weights = np.exp(np.take_along_axis(scores, experts, 1) - scores.max(axis=1, keepdims=True))
    for rank in range(comm.size):
        over = np.flatnonzero(experts.ravel() // EXPERTS == rank)[capacity:]
        experts.ravel()[over] = -1
    return experts, weights / weights.sum(axis=1, keepdims=True)


sizes = TOKENS, CHOICES
with plait_fused.MoeDispatch(comm, list(up[own]), *sizes, MODEL, HIDDEN, capacity) as dispatch, \
        plait_fused.MoeCombine(comm, list(down[own]), *sizes, HIDDEN, MODEL, capacity) as combine:
    for _ in range(STEPS):
        experts, weights = choose(tokens)
        dropped += np.count_nonzero(experts < 0)
        expected = tokens.astype(np.float64)
        for token, choice in np.argwhere(experts >= 0):
            of = experts[token, choice]
            expected[token] += weights[token, choice] * (np.maximum(tokens[token] @ up[of], 0) @ down[of])

        rows = dispatch.run(tokens, experts)
        np.maximum(rows, 0, out=rows)
        tokens = tokens + combine.run(rows, experts, weights)
        worst = max(worst, np.abs(tokens - expected).max() / np.abs(expected).max())

worst, dropped = comm.allreduce(worst, op=MPI.MAX), comm.allreduce(dropped)
if comm.rank == 0:
    print(f"moe_layer: {STEPS} steps on {comm.size} ranks, {dropped} choices dropped, largest difference {worst:.1e}: "
          f"{'right' if worst < 1e-5 else 'wrong'}")
sys.exit(int(worst >= 1e-5))

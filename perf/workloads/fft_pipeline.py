#!/usr/bin/python3
"""Two-dimensional Fourier transforms of a stack of images spread over the ranks, with mpi4py: while one image is
transposed by a non-blocking all-to-all, the next one's rows are transformed. A program of the usual kind, which knows
nothing of Plait.

  mpirun -n 8 [-x LD_PRELOAD=libplait.so] /usr/bin/python3 fft_pipeline.py [--size N] [--images K] [--ahead A] [--sweeps S]

Each rank has N/ranks rows of each image, and N/ranks columns of its transform. One image of each sweep, another one each
time, is gathered and compared with numpy's own transform of it. Prints one JSON object: the seconds of each sweep over
the stack, of the slowest rank, the least and the median. Exits with 3 where a transform is wrong.
"""
import argparse
import json
import statistics
import sys

import numpy as np
from mpi4py import MPI

TOLERANCE = 1e-9  # of the largest coefficient


class Image:
    """One image's buffers: rows to the ranks that have the columns."""

    def __init__(self, world, size, number):
        self.world, self.ranks = world, world.size
        self.rows = size // world.size
        self.number = number
        self.out = np.empty((self.ranks, self.rows, self.rows), dtype=complex)
        self.back = np.empty_like(self.out)
        self.request = None

    def input_of(self, rank, sweep):
        generator = np.random.default_rng([sweep, self.number, rank])
        return generator.standard_normal((self.rows, self.rows * self.ranks))

    def begin(self, sweep):
        """Transforms the rows and sends rank r its columns of them."""
        rows = np.fft.fft(self.input_of(self.world.rank, sweep), axis=1)
        self.out[:] = rows.reshape(self.rows, self.ranks, self.rows).swapaxes(0, 1)
        self.request = self.world.Ialltoall(self.out, self.back)

    def end(self):
        """This rank's columns of the transform."""
        self.request.Wait()
        return np.fft.fft(self.back.reshape(self.rows * self.ranks, self.rows), axis=0)

    def is_right(self, columns, sweep):
        whole = np.concatenate([self.input_of(rank, sweep) for rank in range(self.ranks)])
        expected = np.fft.fft2(whole)[:, self.world.rank * self.rows:(self.world.rank + 1) * self.rows]
        return bool(np.abs(columns - expected).max() <= TOLERANCE * np.abs(expected).max())


def sweep_over(images, ahead, sweep):
    """The transform of one of the images, this rank's part."""
    kept = None
    for k, image in enumerate(images):
        image.begin(sweep)
        if k >= ahead:
            columns = images[k - ahead].end()
            kept = columns if k - ahead == sweep % len(images) else kept
    for image in images[max(0, len(images) - ahead):]:
        columns = image.end()
        kept = columns if image.number == sweep % len(images) else kept
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512, help="rows and columns of an image")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--ahead", type=int, default=2, help="images whose transposition may be under way")
    parser.add_argument("--sweeps", type=int, default=8)
    options = parser.parse_args()
    world = MPI.COMM_WORLD
    if options.size % world.size != 0:
        parser.error(f"--size: expected a multiple of the {world.size} ranks")
    images = [Image(world, options.size, number) for number in range(options.images)]
    seconds, right = [], True
    for sweep in range(options.sweeps + 1):
        world.Barrier()
        begin = MPI.Wtime()
        kept = sweep_over(images, options.ahead, sweep)
        seconds.append(world.allreduce(MPI.Wtime() - begin, MPI.MAX))
        right = right and images[sweep % len(images)].is_right(kept, sweep)
    right = world.allreduce(right, MPI.LAND)
    if world.rank == 0:
        print(json.dumps({"step": "fft_pipeline", "iterations": seconds[1:], "min": min(seconds[1:]),
                          "median": statistics.median(seconds[1:]), "right": right}), flush=True)
    return 0 if right else 3


if __name__ == "__main__":
    sys.exit(main())

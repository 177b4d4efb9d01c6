#!/usr/bin/python3
"""PETSc's pipelined conjugate gradients (KSPPIPECG: one MPI_Iallreduce an iteration, beside the preconditioner and the
matrix product), through petsc4py, on the five-point Laplacian of a square. The solver and its calls of MPI are PETSc's.

  mpirun -n 8 [-x LD_PRELOAD=libplait.so] /usr/bin/python3 pipelined_cg.py [--size N] [--solver pipecg|cg|...] [--solves S]

Prints one JSON object: how many iterations a solve has, and their seconds, of the slowest rank, in the mean of each
solve; the least and the median. Exits with 3 where the solution is not the one that the right-hand side was made from.
"""
import argparse
import glob
import json
import statistics
import sys

sys.path += glob.glob("/usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages")  # where Debian has petsc4py
import petsc4py  # noqa: E402

petsc4py.init([])
from mpi4py import MPI  # noqa: E402
from petsc4py import PETSc  # noqa: E402

TOLERANCE = 1e-8  # of the residual


def laplacian(size):
    grid = PETSc.DMDA().create([size, size], stencil_width=1, comm=PETSc.COMM_WORLD)
    matrix = grid.createMatrix()
    (left, right), (low, high) = grid.getRanges()
    row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
    for j in range(low, high):
        for i in range(left, right):
            row.index = (i, j)
            for di, dj, value in ((0, 0, 4.0), (-1, 0, -1.0), (1, 0, -1.0), (0, -1, -1.0), (0, 1, -1.0)):
                if 0 <= i + di < size and 0 <= j + dj < size:
                    column.index = (i + di, j + dj)
                    matrix.setValueStencil(row, column, value)
    matrix.assemble()
    return matrix


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=128, help="unknowns in each direction")
    parser.add_argument("--solver", default="pipecg", help="a KSP type of PETSc")
    parser.add_argument("--solves", type=int, default=5)
    options = parser.parse_args()
    world = MPI.COMM_WORLD
    matrix = laplacian(options.size)
    wanted, right_side = matrix.createVecs()
    wanted.setRandom()
    matrix.mult(wanted, right_side)
    solver = PETSc.KSP().create(PETSc.COMM_WORLD)
    solver.setOperators(matrix)
    solver.setType(options.solver)
    solver.getPC().setType("jacobi")
    solver.setTolerances(rtol=TOLERANCE, max_it=100000)
    solution = wanted.duplicate()
    seconds = []
    for _ in range(options.solves + 1):
        solution.set(0)
        world.Barrier()
        begin = MPI.Wtime()
        solver.solve(right_side, solution)
        seconds.append(world.allreduce(MPI.Wtime() - begin, MPI.MAX))
    iterations, converged = solver.getIterationNumber(), solver.getConvergedReason() > 0
    solution.axpy(-1, wanted)
    error = solution.norm() / wanted.norm()
    each = [one / max(1, iterations) for one in seconds[1:]]
    if world.rank == 0:
        print(json.dumps({"step": f"{options.solver} of PETSc", "iterations_of_a_solve": iterations, "iterations": each, "min": min(each),
                          "median": statistics.median(each), "error": error}), flush=True)
    return 0 if converged and error < 1e-4 else 3


if __name__ == "__main__":
    sys.exit(main())

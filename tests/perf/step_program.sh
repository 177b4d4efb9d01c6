#!/bin/sh
# step_program plays every step of perf/workloads with and without Plait, and finds all results right; what it refuses;
# and the foreign programs beside it, where they are installed. Exits 77 (skipped) where no two ranks can be started.
# usage: step_program.sh LAUNCH STEP_PROGRAM LIBRARY WORKLOADS
launch=$1
program=$2
library=$3
workloads=$4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$launch" 2 -- /bin/true >/dev/null 2>&1 || exit 77
start() { "$launch" 2 -- "$@"; }
. "$(dirname "$0")/checks.sh"

# plays RANKS STEP ARGUMENT...: with and without Plait.
plays() {
  ranks=$1
  shift
  for with in PLAIT_DISABLE=1 PLAIT_DISABLE=0; do
    json=$("$launch" "$ranks" "$with" LD_PRELOAD="$library" -- "$program" "$@") || fail "$with $*: exit code $?"
    case $json in
      *'"iterations":['*'"median":'*) ;;
      *) fail "$with $*: $json" ;;
    esac
  done
}

refuses "cannot be read" "$folder/none"
echo '{"plait_step": 1, "name": "x", "tasks": [{"name": "a", "collective": "scatter", "bytes": 64}]}' >"$folder/scatter"
refuses 'task "a": no scatter is posted' "$folder/scatter"

for step in "$workloads"/*.json; do
  grep -q plait_step "$step" || continue # a machine
  plays 4 "$step" --iterations 2 --warm-up 0 --stretch 0.02
done

# All collectives, odd numbers of ranks and elements, everything looked at; buffers that the next step wants back early.
cat >"$folder/all" <<'STEP'
{"plait_step": 1, "name": "all", "tasks": [
  {"name": "alltoall", "collective": "alltoall", "bytes": 1204},
  {"name": "gather", "collective": "allgather", "bytes": 70004, "after_previous": ["scatter"]},
  {"name": "first", "seconds": 0.003, "after": ["alltoall"], "after_previous": ["sum", "alltoall"]},
  {"name": "sum", "collective": "allreduce", "bytes": 300004, "after": ["first"]},
  {"name": "bcast", "collective": "bcast", "bytes": 50000},
  {"name": "second", "seconds": 0.003, "after": ["gather", "sum"]},
  {"name": "scatter", "collective": "reduce_scatter_block", "bytes": 4004, "after": ["second"]}]}
STEP
for ranks in 1 3 5; do
  plays $ranks "$folder/all" --check --iterations 5
  plays $ranks "$folder/all" --check --iterations 5 --test 0.0005
done
plays 2 "$folder/all" --check --compute work --test 0.0005

# foreign SCRIPT ARGUMENT...: checks its own results.
foreign() {
  for with in PLAIT_DISABLE=1 PLAIT_DISABLE=0; do
    "$launch" 4 "$with" LD_PRELOAD="$library" -- /usr/bin/python3 "$workloads/$@" >/dev/null || fail "$with $*: exit code $?"
  done
}
if /usr/bin/python3 -c 'import mpi4py, numpy' 2>/dev/null && ! ldd "$program" | grep -q mpich; then
  foreign fft_pipeline.py --size 128 --sweeps 4
  ls /usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages/petsc4py >/dev/null 2>&1 &&
    foreign pipelined_cg.py --size 32 --solves 1
fi

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

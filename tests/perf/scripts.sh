#!/bin/sh
# perf/peers and perf/mix on one node, briefly, and what they refuse. Exits 77 (skipped) without build/release.
# usage: scripts.sh SOURCE_FOLDER
cd "$1" || exit 1
. tests/cli/common.sh
[ -x build/release/plait ] && [ -x build/release/mix_replay ] || exit 77
mpirun --allow-run-as-root --oversubscribe -n 2 true >/dev/null 2>&1 || exit 77

refused "expected all, or some of node2" perf/peers --where frob
refused "expected all, or some of tuned" perf/peers --where node2 --peers frob
refused "none of them runs there" perf/peers --where cluster2x2 --peers sm
refused "expected some of allgather" perf/peers --where node2 --collectives frob
refused "expected bytes" perf/peers --where node2 --sizes x
refused "expected a positive number" perf/peers --where node2 --seconds 0
refused "expected all, or some of" perf/mix --mixes frob
refused "expected all, or some of cluster4x2" perf/mix --where frob

refused "--layouts: expected some of sharded, replicated" perf/pipeline --layouts frob

refused "--networks: expected some of unequal" perf/workloads/measure --networks frob
refused "--kinds: 'schedule'" perf/workloads/measure --kinds schedule

refused "openmpi or mpich" scripts/cluster run --name none --per-node 1 --mpi frob -- true
refused "for Open MPI" scripts/cluster run --name none --per-node 1 --mpi mpich --mca coll tuned -- true

refused "--settings: 'frob'" perf/peers --where node2 --settings frob
refused "--settings: 'frob'" perf/mix --settings frob
refused "usage: perf/spine" perf/spine --frob

prints "node16" perf/peers --list
prints "cores16-shared" perf/peers --list
[ "$(nproc)" -ge 16 ] || refused "expected 16 processing units, a rank each" perf/peers --where cores16
# Without time there is a table without rows.
prints "| --- |" perf/peers --where node2 --peers tuned --collectives allreduce --sizes 8 --within 0
prints "| allreduce | 8 B |" perf/peers --where node2 --peers tuned,sm --collectives allreduce --sizes 8 --seconds 0.01
# Each table says what it was made with, and how to make it again.
prints "best peer ÷ Plait" perf/peers --where node2 --peers tuned --collectives allreduce --sizes 8 --seconds 0.01
has "$output" "Settings: the defaults"
has "$output" "--peers tuned --collectives allreduce"
prints "PLAIT_TRIAL=0" perf/peers --where node2 --peers tuned --collectives allreduce --sizes 8 --seconds 0.01 --settings plans
prints "**LAMMPS peptide**" perf/mix --where node2 --mixes lammps-peptide --seconds 0.01 --shorten 50
has "$output" "Settings: the defaults"

# What a fused operator takes, and the same as objects.
rows=$(mktemp)
prints "On average" perf/fused --batches 64 --tables 4 --megabytes 8 --rounds 3 --results "$rows"
prints '"batch": 64' cat "$rows"
prints "On average" perf/fused_gemv --rows 256 --depth 64 --columns 1 --rounds 3
prints "On average" perf/fused_gemm --operators all_gather --rows 128 --depths 64 --rounds 3
rm -f "$rows"

# A pipeline of two stages, with both kinds of transfers: pipeline_run checks what arrives.
if [ -x build/release/pipeline_run ]; then
  for layout in sharded replicated; do
    prints '"road":"plait","schedule":"eager-1f1b-delayed"' env LD_PRELOAD="$PWD/build/release/libplait.so" mpirun \
      --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n 4 build/release/pipeline_run --stages 2 \
      --micro-batches 3 --bytes 64K --repeats 1 --roads host,plait --layout "$layout"
  done
fi

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

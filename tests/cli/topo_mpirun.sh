#!/bin/sh
# plait topo under mpirun: one report for the whole job. Exits 77 (skipped) where mpirun cannot start two ranks.
# usage: topo_mpirun.sh PLAIT MPIEXEC FAKE_NVML
plait=$1
fake=$(dirname "$3")
. "$(dirname "$0")/common.sh"
jobs_or_skip "$2"

text=$("$mpiexec" -n 4 "$plait" topo) || fail "plait topo exits $?"
json=$("$mpiexec" -n 3 "$plait" topo --json) || fail "plait topo --json exits $?"
other=$("$mpiexec" -n 2 "$plait" topo --synthetic "core:4 pu:1") || fail "--synthetic exits $?"

# A GPU a rank, as launchers give them out, of two that are linked to each other.
ranks_with_gpus=$(LD_LIBRARY_PATH="$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$mpiexec" -n 2 sh -c \
  'CUDA_VISIBLE_DEVICES=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} exec "$0" topo' "$plait") || fail "with GPUs it exits $?"
has "$ranks_with_gpus" "GPU 1, island 0"
has "$ranks_with_gpus" "GPUs of node 0"

has "$text" "job: 4 ranks on 1 node"
has "$text" "MPI: "
has "$json" '"mpi": "'
has "$text" "vrank order: ranks 0-3"
has "$text" "machine of node 0"
has "$json" '"ranks": 3'
has "$json" '"vrank_order"'
[ "$(printf '%s\n' "$text" | grep -c '^job:')" -eq 1 ] || fail "not one report: $text"
[ "$(printf '%s\n' "$other" | grep -c '^Machine')" -eq 1 ] || fail "not one machine: $other"
[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

#!/bin/sh
# plait topo under mpirun: one report for the whole job. Exits 77 (skipped) where mpirun cannot start two ranks.
# usage: topo_mpirun.sh PLAIT MPIEXEC
plait=$1
. "$(dirname "$0")/common.sh"
jobs_or_skip "$2"

text=$("$mpiexec" -n 4 "$plait" topo) || fail "plait topo exits $?"
json=$("$mpiexec" -n 3 "$plait" topo --json) || fail "plait topo --json exits $?"
other=$("$mpiexec" -n 2 "$plait" topo --synthetic "core:4 pu:1") || fail "--synthetic exits $?"

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

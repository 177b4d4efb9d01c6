#!/bin/sh
# plait topo under mpirun: one report for the whole job. Exits 77 (skipped) where mpirun cannot start two ranks.
# usage: topo_mpirun.sh PLAIT MPIEXEC
plait=$1
mpiexec=$2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI leaks on its own account; a build with sanitizers is not to report it.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 MPIR_CVAR_POLLS_BEFORE_YIELD=1
"$mpiexec" -n 2 true >/dev/null 2>&1 || exit 77

text=$("$mpiexec" -n 4 "$plait" topo) || { echo "FAIL: plait topo exits $?"; exit 1; }
json=$("$mpiexec" -n 3 "$plait" topo --json) || { echo "FAIL: plait topo --json exits $?"; exit 1; }
other=$("$mpiexec" -n 2 "$plait" topo --synthetic "core:4 pu:1") || { echo "FAIL: --synthetic exits $?"; exit 1; }

failures=0
# has TEXT WORDS: the words stand in the text.
has() {
  case $1 in
    *"$2"*) ;;
    *) echo "FAIL: no '$2' in: $1"; failures=1 ;;
  esac
}
has "$text" "job: 4 ranks on 1 node"
has "$text" "MPI: "
has "$json" '"mpi": "'
has "$text" "place order: ranks 0-3"
has "$text" "machine of node 0"
has "$json" '"ranks": 3'
has "$json" '"place_order"'
[ "$(printf '%s\n' "$text" | grep -c '^job:')" -eq 1 ] || { echo "FAIL: not one report: $text"; failures=1; }
[ "$(printf '%s\n' "$other" | grep -c '^Machine')" -eq 1 ] || { echo "FAIL: not one machine: $other"; failures=1; }
[ "$failures" -eq 0 ] && echo "ok"
exit "$failures"

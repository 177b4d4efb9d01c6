#!/bin/sh
# mix_replay on one node, and what it refuses. Exits 77 (skipped) where mpirun cannot start two ranks.
# usage: mix_replay.sh MIX_REPLAY MPIEXEC MIXES
mix_replay=$1
mpiexec=$2
mixes=$3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
"$mpiexec" -n 2 true >/dev/null 2>&1 || exit 77
start() { "$mpiexec" -n 2 "$@"; }
program=$mix_replay
. "$(dirname "$0")/checks.sh"

refuses "cannot be read" "$folder/none"
echo "5 frob 8" >"$folder/bad"
refuses 'line 1: "frob": expected a collective' "$folder/bad"
refuses "expected a positive number" "$mixes/training.mix" --seconds 0
refuses "from 1 on" "$mixes/training.mix" --shorten 0

printf 'name all\nseed 1\n3 barrier\n5 bcast 100\n4 reduce 12\n9 allreduce 13\n2 allgather 7\n3 alltoall 33\n2 alltoallv 50\n' \
  >"$folder/all"
for ranks in 2 3; do
  json=$("$mpiexec" -n "$ranks" "$mix_replay" "$folder/all" --seconds 0.01 --json) || fail "$ranks ranks: exit code $?"
  for words in '"mix":"all"' "\"ranks\":$ranks" '"calls":28' '"ratio":' '"kind":"alltoallv of 50 B"'; do
    case $json in
      *"$words"*) ;;
      *) fail "no '$words' in: $json" ;;
    esac
  done
done

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

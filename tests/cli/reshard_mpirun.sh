#!/bin/sh
# plait reshard in a job: every strategy is measured, and bad input is told once.
# usage: reshard_mpirun.sh PLAIT MPIRUN
plait=$1
launch="$2 -n 4"
case $2 in *mpich*) ;; *) launch="$2 --allow-run-as-root --oversubscribe -n 4" ;; esac
. "$(dirname "$0")/common.sh"

found=$($launch "$plait" reshard --json --seconds 0.05 --src-mesh 2 --dst-mesh 2 --src-spec S0R --dst-spec RS0 --shape 60,50) ||
  fail "a job of four ranks: exit status $?"
[ "$(echo "$found" | grep -c measured_seconds)" -eq 12 ] || fail "not every row is measured: $found"
$launch "$plait" reshard --src-mesh 2x2 --dst-mesh 2 --src-spec R --dst-spec R --shape 60 >/dev/null 2>&1 &&
  fail "more ranks than the job has are not refused"
said=$($launch "$plait" reshard --src-mesh 2 --dst-mesh 2 --src-spec S1 --dst-spec R --shape 60 2>&1 | grep -c "no dimension 1")
[ "$said" -ge 1 ] || fail "a wrong spec is not told"

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

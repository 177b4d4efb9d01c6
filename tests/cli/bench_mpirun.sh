#!/bin/sh
# plait bench as a user calls it. Exits 77 (skipped) where mpirun cannot start two ranks.
# usage: bench_mpirun.sh PLAIT MPIEXEC WRONG_SUM [another]   another: what is the same with every MPI has been looked at with one
plait=$1
wrong_sum=$3
another=$4
. "$(dirname "$0")/common.sh"
jobs_or_skip "$2"

alone=$("$plait" bench 2>&1)
[ $? -eq 2 ] || fail "outside a job it does not exit 2"
has "$alone" "mpirun -n 2"

ends 2 "two or more ranks" 1 bench
if [ -z "$another" ]; then
  ends 2 "--frob" 2 bench --frob
  ends 2 "expected all, or some of barrier, bcast" 2 bench --collectives allreduce,frob
  ends 2 "expected a whole number" 2 bench --sizes 8,x
  ends 2 "at least one byte" 2 bench --sizes 0
  ends 2 "at most 1073741823 bytes" 2 bench --collectives alltoall --sizes 2G
  ends 2 "expected a positive number" 2 bench --seconds nan
  ends 2 "0 to 1" 2 bench --root 2
  ends 2 "expected a positive rate" 2 bench --rate fast
  ends 2 "divides the 3 ranks" 3 bench --nodes 2
  ends 2 "--rate as well" 2 bench --min-share 0.5
  ends 2 "two or more nodes" 2 bench --min-share 0.5 --rate 1gbit
  ends 2 "table, markdown or json" 2 bench --format xml
  ends 2 "expected private or shared" 2 bench --buffers frob
  ends 2 "all ranks on one node" 2 bench --limits --nodes 2
  ends 2 "two or more ranks" 1 bench --limits
fi
ends 3 "has a ratio of" 2 bench --collectives bcast,allreduce --sizes 64 --seconds 0.01 --min-ratio 1e6
ends 3 "share of the NIC bound" 2 bench --collectives bcast --sizes 64 --seconds 0.01 --nodes 2 --rate 1tbit --min-share 9

# Every collective, sizes that fit no element and no number of ranks, another root: each result is checked.
for job in 2:1,1000 3:1,13,1000,100K 4:13,100K; do
  ranks=${job%%:*}
  table=$("$mpiexec" -n "$ranks" "$plait" bench --sizes "${job#*:}" --seconds 0.01 --root 1) ||
    fail "$ranks ranks: exit code $?"
  for collective in barrier bcast reduce allreduce allgather allgatherv gather scatter alltoall reduce_scatter_block \
    reduce_scatter alltoallv alltoallw gatherv scatterv scan exscan; do
    has "$table" "
$collective "
  done
done

# The same with buffers of MPI_Alloc_mem, as lines of JSON.
lines=$("$mpiexec" -n 3 "$plait" bench --sizes 13,100K --seconds 0.01 --buffers shared --format lines) ||
  fail "--buffers shared: exit code $?"
[ "$(printf '%s\n' "$lines" | grep -c '^{"collective":')" -eq 33 ] || fail "not 33 rows: $lines"
has "$lines" '"buffers":"shared"'
has "$lines" '"collective":"reduce_scatter","bytes":102400'

if [ -z "$another" ]; then
  limits=$("$mpiexec" -n 2 "$plait" bench --limits --seconds 0.01) || fail "--limits: exit code $?"
  has "$limits" "copy, all"
  has "$limits" "64 MiB"
  has "$limits" "yielding on one core"
fi
limits=$("$mpiexec" -n 3 "$plait" bench --limits --json --seconds 0.01) || fail "--limits --json: exit code $?"
for words in '"ranks": 3' '"yield_round_trip_us": ' '"copy_all": [' '"pull_one": ['; do
  has "$limits" "$words"
done

export PLAIT_RAILS=1
json=$("$mpiexec" -n 4 "$plait" bench --json --collectives allreduce --sizes 64K --seconds 0.01 --nodes 2 --rate 1gbit) ||
  fail "--json: exit code $?"
for words in '"ranks": 4' '"nodes": 2' '"mapping": "slot"' '"collective": "allreduce"' '"bytes": 65536' '"host_us": ' \
  '"plait_us": ' '"ratio": ' '"bound_us": 524.288' '"bound_share": ' '"plan": "' '"channels": [' '"rails": 1' '"on_trial": '; do
  has "$json" "$words"
done
json=$(PLAIT_TRIAL=0 "$mpiexec" -n 4 "$plait" bench --json --collectives allreduce --sizes 64K --seconds 0.01 --nodes 2 \
  --rate 1gbit,1gbit) || fail "--rate of two rails: exit code $?"
for words in '"rails": 2' '"bound_us": 262.144' '"on_trial": false'; do
  has "$json" "$words"
done

if [ -n "$wrong_sum" ]; then
  broken=$("$mpiexec" -n 2 env LD_PRELOAD="$wrong_sum" "$plait" bench --collectives allreduce --sizes 8,1K \
    --seconds 0.01 2>&1)
  [ $? -eq 1 ] || fail "a wrong result does not exit 1"
  has "$broken" "wrong result of allreduce of 1 KiB by the host: on rank 1 from byte 8 on"
fi

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

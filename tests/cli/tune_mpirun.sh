#!/bin/sh
# plait tune --measure as a user calls it, and the next job with its table. Exits 77 (skipped) where mpirun cannot start
# two ranks.
# usage: tune_mpirun.sh PLAIT MPIEXEC
plait=$1
. "$(dirname "$0")/common.sh"
jobs_or_skip "$2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
table=$folder/table.json

# refuses CODE WORDS RANKS ARGUMENT...: as ends, and writes no file.
refuses() {
  code=$1
  words=$2
  ranks=$3
  shift 3
  ends "$code" "$words" "$ranks" tune --measure -o "$table" --quiet "$@"
  [ ! -e "$table" ] || fail "$*: a file was written"
}

alone=$("$plait" tune --measure -o "$table" 2>&1)
[ $? -eq 2 ] || fail "outside a job it does not exit 2"
has "$alone" "mpirun -n 2"
refuses 2 "mpirun -n 2 or more" 1
refuses 2 "expected all, or some of barrier, bcast" 2 --collectives allreduce,alltoallv
refuses 2 "absent.json" 2 --machine "$folder/absent.json"
message=$(PLAIT_DISABLE=1 "$mpiexec" -n 2 "$plait" tune --measure -o "$table" 2>&1)
[ $? -eq 1 ] || fail "PLAIT_DISABLE=1 does not exit 1"
has "$message" "plait tune: Plait is turned off"
"$mpiexec" -n 2 "$plait" tune --measure --quiet --collectives barrier --seconds 0.1 -o "$folder/absent/table.json" \
  >/dev/null 2>&1
[ $? -eq 1 ] || fail "a table that cannot be written does not exit 1"

text=$("$mpiexec" -n 2 "$plait" tune --measure --collectives barrier,bcast,allreduce,reduce_scatter_block --min 1K \
  --max 16K --seconds 1 -o "$table" 2>"$folder/progress") || fail "exit code $?"
for words in "shape 1x2, 2 ranks, measured in" "model: at " "one of its first three" "the host was faster"; do
  has "$text" "$words"
done
has "$(cat "$folder/progress")" "%  allreduce"
for words in '"plait_table": 1' '"fingerprint"' '"mpi"' '"hardware"' '"channels"' '"shape": "1x2"' '"allreduce"'; do
  has "$(cat "$table")" "$words"
done

# The next job takes its plans from it, without a word.
next=$("$mpiexec" -n 2 env PLAIT_TABLE="$table" "$plait" bench --collectives allreduce,bcast --sizes 1K --seconds 0.02 \
  2>"$folder/error") || fail "with PLAIT_TABLE: exit code $?"
case $(cat "$folder/error") in
  *PLAIT_TABLE*) fail "the table is not taken: $(cat "$folder/error")" ;;
esac
for collective in allreduce bcast; do
  choice=$("$plait" explain "$collective" 1K --shape 1x2 --table "$table") || fail "plait explain: exit code $?"
  has "$choice" ": the table has it"
  choice=${choice#*choice: }
  choice=${choice%%: the table*}
  has "$(printf '%s\n' "$next" | grep "^$collective ")" "  ${choice% x1}"
done

# A size for which there is no time is left out, and said to be.
json=$("$mpiexec" -n 3 "$plait" tune --measure --quiet --collectives allgather --min 1K --max 16M --seconds 0.05 --json) ||
  fail "--json: exit code $?"
for words in '"left_out": [' '"bytes": 16777216' '"host_seconds"' '"first_three"' '"of_model": true'; do
  has "$json" "$words"
done

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

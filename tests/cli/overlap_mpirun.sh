#!/bin/sh
# plait overlap measure as a user calls it, and a plan from what it wrote. Exits 77 (skipped) where mpirun cannot start
# two ranks.
# usage: overlap_mpirun.sh PLAIT MPIEXEC MODELS
plait=$1
models=$3
. "$(dirname "$0")/common.sh"
jobs_or_skip "$2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
contention=$folder/contention.json

# refuses CODE WORDS RANKS ARGUMENT...: as ends, and writes no file.
refuses() {
  code=$1
  words=$2
  ranks=$3
  shift 3
  ends "$code" "$words" "$ranks" overlap measure -o "$contention" --quiet "$@"
  [ ! -e "$contention" ] || fail "$*: a file was written"
}

alone=$("$plait" overlap measure -o "$contention" 2>&1)
[ $? -eq 2 ] || fail "outside a job it does not exit 2"
has "$alone" "mpirun -n 2"
refuses 2 "mpirun -n 2 or more" 1
refuses 2 "expected threads x duty" 2 --shares 0x1
refuses 2 "absent.json" 2 --machine "$folder/absent.json"
message=$(PLAIT_DISABLE=1 "$mpiexec" -n 2 "$plait" overlap measure -o "$contention" --quiet 2>&1)
[ $? -eq 1 ] || fail "PLAIT_DISABLE=1 does not exit 1: $message"

first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
message=$("$mpiexec" -n 2 taskset -c "$first" "$plait" overlap measure -o "$contention" --shares 1x1,2x0.5 --quiet 2>&1)
[ $? -eq 2 ] || fail "two threads on one processing unit do not exit 2: $message"
has "$message" "2 x 0.5: expected at most 1 thread"

for kernel in memory compute mixed; do
  text=$("$mpiexec" -n 2 "$plait" overlap measure --kernel $kernel --shares 1x0.5,1x1 --bytes 1M --repeats 1 --table \
    -o "$contention" 2>"$folder/progress") || fail "$kernel: exit code $?: $(cat "$folder/progress")"
  for words in "1 x 0.5" "computation beside communication" "communication alone" "mean error"; do
    has "$text" "$words"
  done
done
has "$(cat "$folder/progress")" "1 MiB, share 1 x 0.5"
for words in '"plait_contention": 1' '"hardware"' '"shape": "1x2"' '"samples"' '"table"' '"reductions"' '"AR.1'; do
  has "$(cat "$contention")" "$words"
done
prints "within 1.100 times the best of all" "$plait" overlap plan --layers "$models/vgg16.json" \
  --contention "$contention" -o "$folder/overlap.json"
has "$(cat "$folder/overlap.json")" '"plait_overlap": 1'
prints "LIBRA over the best" "$plait" simulate train --layers "$models/vgg16.json" --contention "$contention" --nodes 16,32

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

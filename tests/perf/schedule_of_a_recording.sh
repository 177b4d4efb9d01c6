#!/bin/sh
# From a program's recording to its schedule, and back to the program, whose calls are kept to it and all right; and the
# same by the job itself (PLAIT_SCHEDULE=auto). Exits 77 (skipped) where no two ranks can be started.
# usage: schedule_of_a_recording.sh LAUNCH STEP_PROGRAM LIBRARY PLAIT
launch=$1
program=$2
library=$3
plait=$4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$launch" 2 -- /bin/true >/dev/null 2>&1 || exit 77
start() { "$launch" 2 -- "$@"; }
. "$(dirname "$0")/checks.sh"

cat >"$folder/step" <<'STEP'
{"plait_step": 1, "name": "four", "tasks": [
  {"name": "alltoall", "collective": "alltoall", "bytes": 120000},
  {"name": "gather", "collective": "allgather", "bytes": 70000},
  {"name": "first", "seconds": 0.003, "after": ["alltoall"], "after_previous": ["sum"]},
  {"name": "sum", "collective": "allreduce", "bytes": 300000, "after": ["first"]},
  {"name": "second", "seconds": 0.002, "after": ["gather"]},
  {"name": "bcast", "collective": "bcast", "bytes": 50000, "after": ["second"]},
  {"name": "third", "seconds": 0.001, "after": ["bcast"]}]}
STEP

plays() { "$launch" 4 LD_PRELOAD="$library" PLAIT_REPORT=1 "$@" -- "$program" "$folder/step" $form --check --iterations "$iterations" 2>&1; }
# says PATTERN TEXT
says() { echo "$2" | grep -Eq "$1" || fail "expected $1 in: $2"; }

# Posted operations, and persistent ones.
for form in "" "--persistent"; do
  iterations=30
  plays PLAIT_RECORD="$folder/recording" >/dev/null || fail "recording $form: exit code $?"
  for only in "" "--only=schedule" "--only=execution"; do
    "$plait" schedule --trace "$folder/recording" --system 1,4 --seconds 1 $only -o "$folder/plan" >/dev/null ||
      fail "plait schedule $only $form: exit code $?"
    said=$(plays PLAIT_SCHEDULE="$folder/plan") || fail "by the schedule $only $form: exit code $?"
    says 'schedule "[^"]*": [0-9]+ iterations, [1-9][0-9]* calls by it' "$said"
  done

  # Whatever it comes to: it says so, and results are right.
  iterations=500
  said=$(plays PLAIT_SCHEDULE=auto) || fail "auto $form: exit code $?"
  says 'schedule: (none is kept to: |an iteration takes |dropped, as )' "$said"
done

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

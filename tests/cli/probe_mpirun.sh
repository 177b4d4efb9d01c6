#!/bin/sh
# plait probe as a user calls it. Exits 77 (skipped) where mpirun cannot start two ranks.
# usage: probe_mpirun.sh PLAIT MPIEXEC
plait=$1
mpiexec=$2
export PLAIT_TRIAL=0 PLAIT_CACHE=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 MPIR_CVAR_POLLS_BEFORE_YIELD=1
"$mpiexec" -n 2 true >/dev/null 2>&1 || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

has() {
  case $1 in
    *"$2"*) ;;
    *) fail "no '$2' in: $1" ;;
  esac
}

# ends CODE WORDS RANKS ARGUMENT...: exits so, with one line of its own that has the words, and writes no file.
ends() {
  code=$1
  words=$2
  ranks=$3
  shift 3
  message=$("$mpiexec" -n "$ranks" "$plait" probe -o "$folder/none.json" --quiet "$@" 2>&1 >/dev/null)
  found=$?
  [ "$found" -eq "$code" ] || fail "$*: exit code $found, expected $code"
  lines=$(printf '%s\n' "$message" | grep '^plait probe: ')
  has "$lines" "$words"
  [ "$(printf '%s\n' "$lines" | wc -l)" -eq 1 ] || fail "$*: not one line: $lines"
  [ ! -e "$folder/none.json" ] || fail "$*: a file was written"
}

alone=$("$plait" probe -o "$folder/none.json" 2>&1)
[ $? -eq 2 ] || fail "outside a job it does not exit 2"
has "$alone" "mpirun -n 2"
ends 2 "mpirun -n 2 or more" 1
ends 2 "--seconds" 2 --seconds nan
ends 2 "--most-noise" 2 --most-noise -1
ends 1 "too noisy" 2 --seconds 0.5 --most-noise 1e-9

text=$("$mpiexec" -n 3 "$plait" probe -o "$folder/machine.json" --seconds 1 --most-noise 100 2>"$folder/progress") ||
  fail "exit code $?"
for words in "latency (alpha)" "overhead of a message" "(beta)" "(gamma)" "residuals of the fit" "over shm" "noise "; do
  has "$text" "$words"
done
has "$(cat "$folder/progress")" "one way"
machine=$(cat "$folder/machine.json")
for words in '"plait_machine": 1' '"fingerprint"' '"mpi"' '"hardware"' '"shape": "1x3"' '"allreduce"'; do
  has "$machine" "$words"
done
# What was written can be read.
"$plait" synth --machine "$folder/machine.json" --system 2,2 --axes 4 --reduce 0 >/dev/null 2>"$folder/error" ||
  fail "plait synth refuses it: $(cat "$folder/error")"

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

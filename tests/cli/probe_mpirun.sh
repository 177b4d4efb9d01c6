#!/bin/sh
# plait probe as a user calls it. Exits 77 (skipped) where mpirun cannot start two ranks.
# usage: probe_mpirun.sh PLAIT MPIEXEC DRIVER    (the tests' own, which has a GPU that copies at the rates that it is told)
plait=$1
. "$(dirname "$0")/common.sh"
jobs_or_skip "$2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# refuses CODE WORDS RANKS ARGUMENT...: as ends, and writes no file.
refuses() {
  code=$1
  words=$2
  ranks=$3
  shift 3
  ends "$code" "$words" "$ranks" probe -o "$folder/none.json" --quiet "$@"
  [ ! -e "$folder/none.json" ] || fail "$*: a file was written"
}

alone=$("$plait" probe -o "$folder/none.json" 2>&1)
[ $? -eq 2 ] || fail "outside a job it does not exit 2"
has "$alone" "mpirun -n 2"
refuses 2 "mpirun -n 2 or more" 1
refuses 2 "--seconds" 2 --seconds nan
refuses 2 "--most-noise" 2 --most-noise -1
refuses 1 "too noisy" 2 --seconds 0.5 --most-noise 1e-9

export FAKE_CUDA_RATE=2e8 FAKE_CUDA_PEER_RATE=8e8 FAKE_CUDA_LATENCY=100
text=$("$mpiexec" -n 3 "$plait" probe -o "$folder/machine.json" --driver "$3" --seconds 1 --most-noise 100 2>"$folder/progress") ||
  fail "exit code $?"
for words in "latency (alpha)" "overhead of a message" "(beta)" "(gamma)" "residuals of the fit" "over shm" "over shm alone" "over mpi alone" "noise "; do
  has "$text" "$words"
done
has "$(cat "$folder/progress")" "one way"
machine=$(cat "$folder/machine.json")
for words in '"plait_machine": 1' '"fingerprint"' '"mpi"' '"hardware"' '"shape": "1x3"' '"allreduce"' '"channel": "mpi"'; do
  has "$machine" "$words"
done
# Its GPUs copy at these rates and no faster; on a busy machine the processor is late to see the end.
for words in "to a device" "from a device" "over cuda, by "; do
  has "$text" "$words"
done
python3 - "$folder/machine.json" <<'END' || fail "the copies of devices"
import json, sys
machine = json.load(open(sys.argv[1]))
found = machine["devices"]["to"], machine["devices"]["from"], machine["levels"][-1]["devices"]
for link, rate in zip(found, (2e8, 2e8, 8e8)):
    assert 0.5 * rate < link["bytes_per_second"] < 1.1 * rate, f"{link}: expected {rate}"
    assert link["latency_seconds"] > 90e-6, f"{link}: expected 100 us"
END
has "$("$plait" explain allreduce 16M --shape 1x3 --machine "$folder/machine.json")" "data on devices: over cuda "
# Where cuda is taken away, or there is no driver, no device is measured.
without=$(PLAIT_CHANNELS=shm,mpi "$mpiexec" -n 2 "$plait" probe -o "$folder/without.json" --driver "$3" --seconds 0.1 --most-noise 100 2>&1) ||
  fail "exit code $?: $without"
case $without in *device*) fail "devices without cuda: $without" ;; esac
# What was written can be read.
"$plait" synth --machine "$folder/machine.json" --system 2,2 --axes 4 --reduce 0 >/dev/null 2>"$folder/error" ||
  fail "plait synth refuses it: $(cat "$folder/error")"

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

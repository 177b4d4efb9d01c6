#!/usr/bin/env bash
# plait probe on a network of 4 ms and 250 Mbit/s: the machine file has these figures, and the gap of a message is no part of
# the latency. A job's own set-up finds the way as well. Exits 77 (skipped) where clusters cannot be made.
# usage: probe_delay.sh PLAIT DELAY_LINE
set -euo pipefail
((EUID == 0)) && [[ -c /dev/net/tun ]] && chrt --rr 1 true 2>/dev/null || exit 77
plait=$1
export CLUSTER_DELAY_LINE=$2
name=probe-delay-$$
. "$(dirname "${BASH_SOURCE[0]}")/cluster_common.sh"

"$cluster" up --name "$name" --nodes 2 --rate 250mbit --delay 4ms
file=/tmp/$name.json
trap 'rm -f "$file" "$file.log"; "$cluster" down --name "$name" 2>/dev/null || true' EXIT
PLAIT_VERBOSE=3 "$cluster" run --name "$name" --per-node 1 -- "$plait" probe -o "$file" --seconds 2 --most-noise 100 --quiet \
  2>"$file.log" || fail "exit status $?: $(tail -3 "$file.log")"

# A busy machine makes all of it slower: the way has no upper bound here, and the gap is measured against it.
python3 - "$file" <<'END'
import json, sys
node = json.load(open(sys.argv[1]))["levels"][0]
way, gap, rate = node["latency_seconds"], node["overhead_seconds"], node["port_bytes_per_second"]
assert way > 3.9e-3, f"latency {way}, expected 4 ms"
assert gap < way / 8, f"overhead {gap} of latency {way}: a part of it"
assert 0.5 * 31.25e6 < rate < 1.2 * 31.25e6, f"rate {rate}, expected 31.25 MB/s"
assert node["channels"], "no channel alone"
for channel in node["channels"]:
    assert channel["overhead_seconds"] < channel["latency_seconds"] / 8, f"{channel}: its gap is a part of the latency"
END
# To a power of two, as the planner takes it: 2^-8 s, or twice as much on a busy machine.
grep -Eq "between nodes a message takes (3.91|7.81) ms" "$file.log" ||
  fail "the set-up: $(grep -m1 "between nodes" "$file.log")"
echo "passed"

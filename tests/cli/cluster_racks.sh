#!/usr/bin/env bash
# scripts/cluster with racks: what the nodes' processes see, that the racks' links are slower than the nodes', and that
# `down` leaves nothing, after an `up` that was killed as well. Exits 77 (skipped) where clusters cannot be made.
# usage: cluster_racks.sh PLAIT
set -euo pipefail
((EUID == 0)) || exit 77
plait=$1
name=racks-$$
. "$(dirname "${BASH_SOURCE[0]}")/cluster_common.sh"

refused() { # WORDS UP-OPTIONS...
  local words=$1 message status=0
  shift
  message=$("$cluster" up --name "$name" "$@" 2>&1) || status=$?
  ((status == 2)) || fail "up $*: exit status $status, expected 2"
  [[ $message == *"$words"* ]] || fail "up $*: '$message' does not say '$words'"
}

# Seconds that 2 MiB take from node 0 to the given node at the given address.
seconds_to() { # node address
  "$cluster" exec --name "$name" --node "$1" -- python3 -c '
import socket
server = socket.create_server(("", 7000))
server.settimeout(20)
peer = server.accept()[0]
while peer.recv(1 << 16): pass
peer.sendall(b"!")' &
  "$cluster" exec --name "$name" --node 0 -- python3 -c '
import socket, sys, time
deadline = time.monotonic() + 10
while True:
    try:
        peer = socket.create_connection((sys.argv[1], 7000), 2)
        break
    except OSError:
        if time.monotonic() > deadline: raise
        time.sleep(0.05)
begin = time.monotonic()
peer.sendall(bytes(2 << 20))
peer.shutdown(socket.SHUT_WR)
peer.settimeout(20)
assert peer.recv(1) == b"!"
print(time.monotonic() - begin)' "$2"
  wait $!
}

refused "from 1 to 4" --nodes 4 --racks 5
refused "evenly" --nodes 4 --racks 3
refused "needs --racks" --nodes 4 --rack-rate 50mbit
refused "takes a rate" --nodes 4 --racks 2 --rack-rate fast

"$cluster" up --name "$name" --nodes 4 --racks 2 --rails 2 --rate 250mbit --rack-rate 50mbit
for node in 0 1 2 3; do
  seen=$("$cluster" exec --name "$name" --node "$node" -- env | grep '^SLURM_TOPOLOGY' | sort | tr '\n' ' ')
  [[ $seen == "SLURM_TOPOLOGY_ADDR=switch$((node / 2)).node$node SLURM_TOPOLOGY_ADDR_PATTERN=switch.node " ]] ||
    fail "exec on node $node sees '$seen'"
done
seen=$("$cluster" run --name "$name" --per-node 2 --timeout 60 -- "$plait" topo 2>/dev/null)
[[ $seen == *"hierarchy [2 switch, 2 node, 2 rank], uniform"* ]] || fail "another hierarchy: $seen"
[[ $seen == *"8 ranks on 4 nodes"* ]] || fail "another number of nodes: $seen"
seen=$("$cluster" run --name "$name" --per-node 2 --timeout 60 --env PLAIT_SWITCH=same -- "$plait" topo 2>/dev/null)
[[ $seen == *"hierarchy [4 node, 2 rank], uniform"* ]] || fail "PLAIT_SWITCH does not win: $seen"

index=$("$cluster" exec --name "$name" --node 0 -- sed -n 's/^10\.\([0-9]*\)\..*node0$/\1/p' /etc/hosts)
for rail in 0 1; do
  near=$(seconds_to 1 "10.$index.$rail.2") far=$(seconds_to 2 "10.$index.$rail.3")
  echo "rail $rail: $near s within the rack, $far s to the other"
  # 2 MiB less the burst take 0.06 s at 250 Mbit/s and 0.29 s at 50 Mbit/s.
  awk -v near="$near" -v far="$far" 'BEGIN { exit !(far > 2 * near && far > 0.2 && near < 0.2) }' ||
    fail "rail $rail: $near s within the rack, $far s to the other"
done
"$cluster" down --name "$name"
nothing_left "down"

# Killed while it sets the racks up, then later while it furnishes nodes.
for milliseconds in 60 150 400; do
  "$cluster" up --name "$name" --nodes 8 --racks 4 --rate 250mbit --rack-rate 50mbit &
  up=$!
  sleep "0.$(printf '%03d' "$milliseconds")"
  kill -KILL "$up" 2>/dev/null || true
  wait "$up" 2>/dev/null || true
  sleep 0.3 # a command that it had started may still be at work
  "$cluster" down --name "$name" 2>/dev/null || true # refused where nothing had been made yet
  nothing_left "killed after $milliseconds ms"
done
echo ok

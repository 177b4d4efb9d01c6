#!/usr/bin/env bash
# scripts/cluster with a delay: that messages take it, that large ones keep the links' rate, that a delay line which died
# is told, and that `down` leaves nothing, after an `up` that was killed as well. Exits 77 (skipped) where clusters
# cannot be made.
# usage: cluster_delay.sh DELAY_LINE
set -euo pipefail
((EUID == 0)) && [[ -c /dev/net/tun ]] && chrt --rr 1 true 2>/dev/null || exit 77
export CLUSTER_DELAY_LINE=$1
name=delay-$$
. "$(dirname "${BASH_SOURCE[0]}")/cluster_common.sh"

refused() { # DELAY
  local message status=0
  message=$("$cluster" up --name "$name" --nodes 2 --delay "$1" 2>&1) || status=$?
  ((status == 2)) || fail "up --delay $1: exit status $status, expected 2"
  [[ $message == *"--delay takes a time such as 500us or 2ms"* ]] || fail "up --delay $1: '$message'"
}

# Milliseconds of the quickest of ten round trips from node 0 to node 1, and seconds that 4 MiB take.
measure() {
  "$cluster" exec --name "$name" --node 1 -- python3 -c '
import socket
server = socket.create_server(("", 7000))
server.settimeout(20)
peer = server.accept()[0]
peer.settimeout(20)
for _ in range(10): peer.sendall(peer.recv(1))
left = 4 << 20
while left > 0: left -= len(peer.recv(1 << 16))
peer.sendall(b"!")' &
  "$cluster" exec --name "$name" --node 0 -- python3 -c '
import socket, time
deadline = time.monotonic() + 10
while True:
    try:
        peer = socket.create_connection(("node1", 7000), 2)
        break
    except OSError:
        if time.monotonic() > deadline: raise
        time.sleep(0.05)
peer.settimeout(20)
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
trips = []
for _ in range(10):
    begin = time.monotonic()
    peer.sendall(b"x")
    assert peer.recv(1) == b"x"
    trips.append(time.monotonic() - begin)
begin = time.monotonic()
peer.sendall(bytes(4 << 20))
assert peer.recv(1) == b"!"
print(round(min(trips) * 1e3), time.monotonic() - begin)'
  wait $!
}

for delay in 5 0ms 2s 1.5ms -1ms 10000ms; do refused "$delay"; done

"$cluster" up --name "$name" --nodes 2 --rate 250mbit --delay 20ms
grep -Eq "^$name .* 20ms " <<<"$("$cluster" list)" || fail "list does not show the delay"
read -r trip_ms seconds <<<"$(measure)"
((trip_ms >= 40 && trip_ms <= 60)) || fail "a round trip took $trip_ms ms, expected 40 to 60"
# 4 MiB at 250 Mbit/s take 0.134 s; a window that opens adds some round trips.
awk -v s="$seconds" 'BEGIN { exit !(s > 0.12 && s < 1) }' || fail "4 MiB took $seconds s, expected 0.12 to 1"

kill -KILL "$(pgrep -f "delay_line .*plait-$name-")"
message=$("$cluster" exec --name "$name" --node 0 -- true 2>&1) && fail "exec works without the delay line"
[[ $message == *"delay line of cluster '$name' has died"* ]] || fail "a dead delay line: '$message'"
"$cluster" down --name "$name"
nothing_left down

for wait_s in 0.02 0.05 0.1; do
  "$cluster" up --name "$name" --nodes 8 --delay 1ms &
  sleep "$wait_s"
  kill -KILL $! 2>/dev/null || true
  wait $! 2>/dev/null || true
  sleep 0.3 # a command that it had started may still be at work
  "$cluster" down --name "$name" 2>/dev/null || true
  nothing_left "down after up was killed"
done
echo "passed"

#!/bin/bash
# A measuring script that is ended leaves no cluster and no process. Exits 77 (skipped) where clusters cannot be made.
# usage: killed.sh SOURCE_FOLDER
cd "$1" || exit 1
((EUID == 0)) && [ -x build/release/plait ] || exit 77
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
perf/peers --where cluster2x1 --peers tuned --collectives allreduce --sizes 1M --seconds 60 >/dev/null 2>"$errors" &
script=$!
trap 'kill "$script" 2>/dev/null; rm -f "$errors"' EXIT
running() { scripts/cluster list | awk -v name="lab$script" '$1 == name { print $6 }'; }
for ((tenth = 0; tenth < 300; tenth++)); do
  [[ $(running) -gt 2 ]] && break
  kill -0 "$script" 2>/dev/null || break
  sleep 0.1
done
if [[ -z $(running) ]]; then
  cat "$errors"
  exit 77
fi
kill -TERM "$script"
wait "$script"
code=$?
((code == 143)) || { echo "FAIL: exit code $code, expected 143"; exit 1; }
[[ -z $(running) ]] || { echo "FAIL: its cluster is still there"; exit 1; }
echo ok

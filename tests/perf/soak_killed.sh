#!/bin/bash
# perf/soak that is killed leaves no cluster, no job and no file. Exits 77 (skipped) where clusters cannot be made.
# usage: soak_killed.sh SOURCE_FOLDER BUILD_FOLDER
cd "$1" || exit 1
((EUID == 0)) && [ -x "$2/soak_job" ] && scripts/cluster list >/dev/null || exit 77
export TMPDIR
TMPDIR=$(mktemp -d)
trap 'kill -KILL "$script" 2>/dev/null; rm -rf "$TMPDIR"' EXIT

# Clusters of the script, and processes that run in them beside their nodes' holders.
clusters() { scripts/cluster list | awk -v name="soak$script-" 'index($1, name) == 1 { clusters++; jobs += $6 } END { print clusters + 0, jobs + 0 }'; }

perf/soak --build "$2" --jobs 1 --runs 1000 --seed killed --results "$TMPDIR/results.jsonl" >"$TMPDIR/output" 2>&1 &
script=$!
for ((tenth = 0; tenth < 600; tenth++)); do
  read -r made jobs < <(clusters)
  ((made > 0 && jobs > 2)) && break
  kill -0 "$script" 2>/dev/null || break
  sleep 0.1
done
if ((jobs <= 2)); then
  cat "$TMPDIR/output"
  echo "FAIL: there was no job to be seen"
  exit 1
fi
kill -KILL "$script"
wait "$script" 2>/dev/null
for ((tenth = 0; tenth < 300; tenth++)); do
  read -r made jobs < <(clusters)
  ((made == 0)) && ! compgen -G "$TMPDIR/soak.*" >/dev/null && break
  sleep 0.1
done
((made == 0)) || { echo "FAIL: its cluster is still there"; exit 1; }
! compgen -G "$TMPDIR/soak.*" || { echo "FAIL: its folder is still there"; exit 1; }
echo ok

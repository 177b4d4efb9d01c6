#!/usr/bin/env bash
# random_jobs finds what is wrong, says how to make it again, and leaves no cluster behind, killed or not.
#
#   random_jobs_test.sh BUILD_FOLDER WRONG_PLAN_LIBRARY
set -euo pipefail
build=$1 wrong=$2
here=$(dirname "${BASH_SOURCE[0]}")
cluster=$here/../../scripts/cluster
kept=''
trap 'rm -rf ${kept:+"$kept"}' EXIT

fail() {
  echo "FAILED: $*"
  exit 1
}

# fails WORDS OPTION...: exits with 1, says the words and how to make the job again.
fails() {
  local words=$1 output status=0
  shift
  output=$("$here/random_jobs" --build "$build" "$@" 2>&1) || status=$?
  kept=$(sed -nE 's/.* learned before are in (.*)\/[0-9]+$/\1/p' <<<"$output" | tail -n 1)
  ((status == 1)) || fail "status $status: $output"
  [[ $output == *"$words"* && $output == *"random_jobs: again: "* ]] || fail "no '$words' in: $output"
  [[ -n $kept ]] && rm -rf "$kept"
}

fails "status 1" --only 172 --where node --budget 3 --with-library "$wrong"
# However far the limit is stretched on a busy machine.
fails "no end" --only 1 --where node --limit 0.005
((EUID == 0)) || exit 0

"$here/random_jobs" --build "$build" --where cluster --jobs 100 >/dev/null 2>&1 &
soak=$!
for ((i = 0; i < 300; i++)); do
  [[ $("$cluster" list) != *"jobs$soak-"*ready* ]] || break
  sleep 0.1
done
((i < 300)) || fail "no cluster"
kill -KILL $soak
for ((i = 0; i < 300; i++)); do
  [[ $("$cluster" list) == *"jobs$soak-"* ]] || break
  sleep 0.1
done
((i < 300)) || fail "the cluster is still there"

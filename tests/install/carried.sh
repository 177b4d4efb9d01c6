#!/usr/bin/env bash
# What scripts/device-pack makes, run by itself as on a machine that has no MPI: unpacked elsewhere, and, by root, with the folders
# of the build, the sources, the MPIs and UCX hidden. On the processors alone, briefly.
#
#   carried.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail

build=$1 source=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

fail() {
  echo "FAILED: $*"
  exit 1
}

"$source/scripts/device-pack" --build "$build" "$place/pack.tar"
mkdir "$place/elsewhere"
tar --extract --file "$place/pack.tar" --directory "$place/elsewhere"
pack=$place/elsewhere/plait-device

alone() { # command...
  if ((EUID == 0)); then
    # shellcheck disable=SC2016
    unshare --mount bash -c '
      cd /
      for folder in "$1" "$2" /etc/openmpi /usr/share/openmpi /usr/lib/x86_64-linux-gnu/{openmpi,pmix2,ucx}; do
        mount -t tmpfs none "$folder"
      done
      shift 2
      exec "$@"' - "$build" "$source" "$@"
  else
    "$@"
  fi
}

alone "$pack/device-check" "$place/found" --short --minutes 9 >"$place/output" || fail "$(cat "$place/output" "$place"/found/*.txt)"
cat "$place/output"
(($(find "$place/found" -type f | wc -l) <= 8)) || fail "more than 8 files: $(ls "$place/found")"
python3 - "$place/found/results.json" <<'END' || fail "results.json says otherwise"
import json, sys
found = json.load(open(sys.argv[1]))
stages = {stage["stage"]: stage for stage in found["stages"]}
for name in ("facts", "tests", "peers", "fused"):
    assert stages[name]["right"] > 0 and not stages[name]["wrong"], stages[name]
assert found["machine"]["gpus"] or stages["device tests"]["remark"], stages
assert any(row["collective"] == "allreduce" for rows in found["measured"]["peers"].values() for peer in rows.values() for row in peer)
assert found["measured"]["fused 2"][0]["same"], found["measured"]
END
grep -q '^| allreduce | 64 KiB |' "$place/output" || fail "no table of the peers"

# By the C library of the pack, as on a machine whose own is too old.
alone "$pack/device-check" "$place/by_loader" --short --stages peers,fused --own-c-library >"$place/output" || fail "$(cat "$place/output" "$place"/by_loader/*.txt)"
grep -q 'the pack has its own' "$place/output" || fail "$(cat "$place/output")"

# It must be able to fail, and say no.
refused() { # pattern, arguments...
  local said
  said=$("$pack/device-check" "${@:2}" --own-c-library 2>&1) && fail "device-check ${*:2}: not refused"
  [[ $said == *$1* ]] || fail "device-check ${*:2} said: $said"
}
refused "expected an empty folder" "$place/found"
refused "expected some of facts" "$place/other" --stages frob
refused "expected a positive number" "$place/other" --minutes 0
rm "$pack"/build/release/libplait-{openmpi,mpich}.so
refused "1 wrong" "$place/other" --short --stages peers

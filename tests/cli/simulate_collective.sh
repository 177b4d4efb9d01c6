#!/bin/sh
# plait simulate collective from a user's side: a small job on a machine that is shipped, what it prints and writes, and bad input.
# usage: simulate_collective.sh PLAIT
plait=$1
. "$(dirname "$0")/common.sh"

[ -e "$(dirname "$plait")/plait-simgrid" ] || { echo "plait-simgrid is not built"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Every row has times of both, is no faster than the network lets it be, and the bytes that cross between groups are counted.
cat >"$folder/check.py" <<'END'
import json, sys
table = json.load(open(sys.argv[1]))
assert table["nodes"] == int(sys.argv[2]) and table["ranks_per_node"] == 2, table
assert len(table["rows"]) == 4, len(table["rows"])
for row in table["rows"]:
    assert "problem" not in row, row
    for who in ("ompi", "mpich", "plait"):
        assert row["seconds"][who] > 0, row
        assert row["seconds"][who] >= 0.999 * row["least_seconds"], (who, row)
    if row["bytes"] >= 65536: assert row["global_bytes"]["plait"] > 0.5 * row["bytes"] / table["nodes"], row
END
# On the others plans send from each node to all of a group at once, which SimGrid takes a minute for: test_platform reads them.
for platform in torus:32; do
  nodes=${platform#*:}
  "$plait" simulate collective --platform "${platform%:*}" --nodes "$nodes" --ppn 2 --collectives allreduce,bcast --sizes 8,64K --selectors ompi,mpich \
    --json --svg "$folder/picture.svg" >"$folder/table.json" 2>"$folder/errors" || fail "$platform: $(cat "$folder/errors")"
  python3 "$folder/check.py" "$folder/table.json" "$nodes" 2>"$folder/errors" || fail "$platform: $(cat "$folder/errors")"
  [ -s "$folder/errors" ] && fail "$platform: $(cat "$folder/errors")"
  python3 -c "import xml.dom.minidom as x; x.parse('$folder/picture.svg')" || fail "$platform: the picture is no XML"
done
# Of one sender's messages some are short and some long, which SMPI keeps apart.
prints "Geometric mean of best / Plait" "$plait" simulate collective --platform fat-tree --nodes 64 --ppn 4 --collectives bcast --sizes 1M --selectors ompi
prints "Geometric mean of best / Plait" "$plait" simulate collective --platform torus --nodes 4 --collectives bcast --sizes 1K
# Plait alone: beside binomial trees, without the others.
prints '| collective | size | binomial | Plait |' "$plait" simulate collective --alone --platform torus --nodes 16 --collectives bcast --sizes 1K
# 65,536 ranks take a second: a rank's lowering must not look at all others, which takes minutes.
prints 'BC.1(' timeout 60 "$plait" simulate collective --alone --platform torus --nodes 4096 --ppn 16 --collectives bcast,reduce --sizes 8

# An ended command leaves nothing behind that works on.
rank="$(realpath "$(dirname "$plait")")/plait-simgrid"
"$plait" simulate collective --alone --platform torus --nodes 4096 --ppn 16 --collectives allreduce --sizes 64K >"$folder/killed" 2>&1 &
command=$!
tries=0
until pgrep -f "smpimain $rank" >/dev/null || [ "$tries" -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
[ "$tries" -lt 100 ] || fail "nothing was simulated: $(cat "$folder/killed")"
kill -KILL "$command"
tries=0
while pgrep -f "smpimain $rank" >/dev/null && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
[ "$tries" -lt 100 ] || fail "smpirun outlived its command"

refused "expected fat-tree, dragonfly, torus or a file" "$plait" simulate collective --platform "$folder/none.xml"
refused "has 4096" "$plait" simulate collective --nodes 5000
refused "2 to 65536 ranks" "$plait" simulate collective --nodes 1 --ppn 1
refused "expected some of ompi" "$plait" simulate collective --selectors lam
refused "expected some of allreduce" "$plait" simulate collective --collectives scan
printf '<cluster id="x"/>' >"$folder/broken.xml"
refused "radical" "$plait" simulate collective --platform "$folder/broken.xml"

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

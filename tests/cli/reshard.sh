#!/bin/sh
# plait reshard from a user's side: exit codes, one line on bad input, what it prints.
# usage: reshard.sh PLAIT
plait=$1
. "$(dirname "$0")/common.sh"

right="--src-mesh 2x4 --dst-mesh 2x4 --shape 1024,1024,512"
refused "--src-mesh is required" "$plait" reshard
refused "--src-spec: \"S0S0R\": mesh dimension 0 is used twice" "$plait" reshard $right --src-spec S0S0R --dst-spec RRR
refused "--src-spec: \"S2RR\": the mesh has no dimension 2" "$plait" reshard $right --src-spec S2RR --dst-spec RRR
refused "--dst-spec: \"S0R\" has 2 entries" "$plait" reshard $right --src-spec S0RR --dst-spec S0R
refused "--dst-spec: " "$plait" reshard $right --src-spec S0RR --dst-spec XRR
refused "--shape: " "$plait" reshard --src-mesh 2 --dst-mesh 2 --shape 0 --src-spec R --dst-spec R
refused "--shape: the tensor has too many bytes" "$plait" reshard --src-mesh 2 --dst-mesh 2 --src-spec RR --dst-spec RR \
        --shape 4294967296,4294967296
refused "--src-mesh: " "$plait" reshard --src-mesh 2y4 --dst-mesh 2 --shape 8 --src-spec R --dst-spec R
refused "--src-mesh: " "$plait" reshard --src-mesh 99999x99999 --dst-mesh 2 --shape 8 --src-spec R --dst-spec R
refused "--type: \"f31\"" "$plait" reshard $right --src-spec S0RR --dst-spec RS1R --type f31
refused "--hosts: " "$plait" reshard $right --src-spec S0RR --dst-spec RS1R --hosts 4,4,4
refused "--strategy: " "$plait" reshard $right --src-spec S0RR --dst-spec RS1R --strategy magic
refused "--scheduler: " "$plait" reshard $right --src-spec S0RR --dst-spec RS1R --scheduler magic
refused "--rate: " "$plait" reshard $right --src-spec S0RR --dst-spec RS1R --rate fast
refused "one of default, a100, v100" "$plait" reshard $right --src-spec S0RR --dst-spec RS1R --machine abacus

prints "8 unit tasks" "$plait" reshard $right --src-spec S0RR --dst-spec RS1R
prints '"unit_tasks": 64' "$plait" reshard $right --src-spec S01RR --dst-spec RS01R --json
prints '"planning_seconds": ' "$plait" reshard $right --src-spec S0RR --dst-spec RS1R --json --hosts 4,4,8

picture=$(mktemp)
"$plait" reshard $right --src-spec S0RR --dst-spec RS1R --svg "$picture" >/dev/null || fail "--svg"
prints "host 2 receives" cat "$picture"
rm -f "$picture"
"$plait" reshard $right --src-spec S0RR --dst-spec RS1R --svg /nonexistent/picture.svg >/dev/null 2>&1
[ $? -eq 0 ] && fail "a picture that cannot be written is not noticed"

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

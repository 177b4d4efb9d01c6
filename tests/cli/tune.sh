#!/bin/sh
# plait tune from a user's side: exit codes, one line on bad input, nothing written then.
# usage: tune.sh PLAIT
plait=$1
. "$(dirname "$0")/common.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
table=$folder/table.json

refused "plait tune: shape \"4x\"" "$plait" tune --shape 4x -o "$table"
refused "plait tune: expected --shape" "$plait" tune -o "$table"
refused "--frob" "$plait" tune --shape 4x2 --frob
refused "No such file" "$plait" tune --machine "$folder/absent.json" --shape 4x2 -o "$table"
printf '{"plait_machine":1,"name":"m","levels":[{"name":"node","latency_seconds":-1}]}' >"$folder/machine.json"
refused "levels[0].latency_seconds: expected" "$plait" tune --machine "$folder/machine.json" --shape 4x2 -o "$table"
truncate -s 1G "$folder/machine.json"
refused "larger than" "$plait" tune --machine "$folder/machine.json" --shape 4x2 -o "$table"
refused "regular file" "$plait" tune --shape 4x2 -o "$folder"
[ -e "$table" ] && fail "a table was written from bad input"

prints "shape 4x2, 8 ranks" "$plait" tune --shape 4x2 -o "$table"
prints '"elapsed_seconds"' "$plait" tune --shape 4x2 --json
grep -q '"plait_table": 1' "$table" || fail "no table was written"
[ "$(ls "$folder" | wc -l)" -eq 2 ] || fail "files are left behind: $(ls "$folder")"

"$plait" tune --shape 4x2 -o /nonexistent/table.json >/dev/null 2>&1
[ $? -eq 1 ] || fail "a table that cannot be written does not exit 1"

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

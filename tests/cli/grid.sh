#!/bin/sh
# plait synth and plait place from a user's side: exit codes, and one line on bad input.
# usage: grid.sh PLAIT
plait=$1
. "$(dirname "$0")/common.sh"

refused "--axes is required" "$plait" synth --system 4,16
refused "plait synth: " "$plait" synth --system 4,16 --axes 4,15 --reduce 0
refused "plait synth: " "$plait" synth --system 4,0 --axes 4,0 --reduce 0
refused "plait synth: " "$plait" synth --system 4,16 --axes 4,16 --reduce 2
refused "--frob" "$plait" synth --system 4,16 --axes 4,16 --reduce 0 --frob
refused "plait place: expected --reduce or --weights" "$plait" place --system 4,16 --axes 4,16
refused "expected one of default, a100, v100" "$plait" place --system 4,16 --axes 4,16 --reduce 0 --machine abacus
refused "--hosts: b has 8 slots" "$plait" place --system 2,16 --axes 32 --reduce 0 --hosts a:16,b:8

broken=$(mktemp)
printf '{"plait_machine":1,\n"name":' >"$broken"
refused "machine file: expected JSON" "$plait" synth --system 4,16 --axes 64 --reduce 0 --machine "$broken"
chmod 000 "$broken"
[ -r "$broken" ] || refused "Permission denied" "$plait" synth --system 4,16 --axes 64 --reduce 0 --machine "$broken"
rm -f "$broken"

"$plait" synth --system 4 --axes 4 --reduce 0 --save /nonexistent/plan.json >/dev/null 2>&1
[ $? -eq 1 ] || fail "a plan that cannot be written does not exit 1"
"$plait" place --system 4 --axes 4 --reduce 0 --hosts a:1,b:1,c:1,d:1 --rankfile /nonexistent/ranks >/dev/null 2>&1
[ $? -eq 1 ] || fail "a rankfile that cannot be written does not exit 1"

prints "47 programs" "$plait" synth --system 4,16 --axes 64 --reduce 0
prints '"total": 47' "$plait" synth --system 4,16 --axes 64 --reduce 0 --json
prints "[[4 1] [1 16]]" "$plait" place --system 4,16 --axes 4,16 --reduce 0
prints "mpirun --map-by slot" "$plait" place --system 4,16 --axes 64 --reduce 0 --map-by

if [ -w /dev/full ]; then
  "$plait" synth --system 4,16 --axes 64 --reduce 0 >/dev/full 2>/dev/null
  [ $? -eq 1 ] || fail "a full disk is not noticed"
fi

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

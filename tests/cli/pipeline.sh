#!/bin/sh
# plait pipeline from a user's side: exit codes, one line on bad input, nothing written then.
# usage: pipeline.sh PLAIT
plait=$1
. "$(dirname "$0")/common.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

refused "--stages is required" "$plait" pipeline --micro-batches 8
refused "plait pipeline: --stages, --micro-batches: stages: expected 1 to" "$plait" pipeline --stages 0 --micro-batches 8
refused "--frob" "$plait" pipeline --stages 4 --micro-batches 8 --frob
refused "expected one of 1f1b-blocking" "$plait" pipeline --stages 4 --micro-batches 8 --schedule gpipe --svg "$folder/p.svg"
refused "No such file" "$plait" pipeline --stages 4 --micro-batches 8 --bytes 1M --machine "$folder/absent.json"
refused "regular file" "$plait" pipeline --stages 4 --micro-batches 8 --svg "$folder"
[ ! -e "$folder/p.svg" ] || fail "a file was written"
"$plait" pipeline --stages 4 --micro-batches 8 --svg /nonexistent/p.svg >/dev/null 2>&1
[ $? -eq 1 ] || fail "a picture that cannot be written does not exit 1"

prints "eager-1f1b-delayed" "$plait" pipeline --stages 4 --micro-batches 8 --svg "$folder/p.svg"
prints '"of_one_byte"' "$plait" pipeline --stages 4 --micro-batches 8 --json
[ -s "$folder/p.svg" ] || fail "no picture"
if [ -w /dev/full ]; then
  "$plait" pipeline --stages 4 --micro-batches 8 >/dev/full 2>/dev/null
  [ $? -eq 1 ] || fail "a full disk is not noticed"
fi

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

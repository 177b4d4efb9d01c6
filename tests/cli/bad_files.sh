#!/bin/sh
# Whatever is wrong with a file that a user names, every command that reads it exits 2 with one line that says which file
# and where in it, and writes nothing.
# usage: bad_files.sh PLAIT
plait=$1
. "$(dirname "$0")/common.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
output=$folder/output

# expect PLACE FILE COMMAND...
expect() {
  place=$1
  file=$2
  shift 2
  message=$(timeout 10 "$plait" "$@" 2>&1 >"$folder/printed")
  code=$?
  [ "$code" -eq 2 ] || fail "$*: exit code $code, expected 2"
  [ "$(printf '%s\n' "$message" | wc -l)" -eq 1 ] || fail "$*: more than one line: $message"
  has "$message" "plait $1: "
  has "$message" "$file"
  has "$message" "$place"
  [ ! -s "$folder/printed" ] || fail "$*: wrote to standard output"
  [ ! -e "$output" ] || fail "$*: a file was written"
  rm -f "$output"
}

# machine PLACE FILE, table PLACE FILE: every command that reads one.
machine() {
  expect "$1" "$2" tune --machine "$2" --shape 4x2 -o "$output"
  expect "$1" "$2" explain allreduce 4K --machine "$2" --shape 4x2
  expect "$1" "$2" synth --machine "$2" --system 4,2 --axes 8 --reduce 0 --save "$output"
  expect "$1" "$2" pipeline --stages 4 --micro-batches 8 --bytes 1M --machine "$2" --svg "$output"
  expect "$1" "$2" place --machine "$2" --system 4,2 --axes 8 --reduce 0 --hosts a:2,b:2,c:2,d:2 --rankfile "$output"
}
table() {
  expect "$1" "$2" explain allreduce 4K --shape 4x2 --table "$2"
}

report() {
  expect "$1" "$2" advise "$2"
}
trace() {
  expect "$1" "$2" trace show "$2" --svg "$output"
  expect "$1" "$2" trace convert "$2" --to step -o "$output"
}

# layers PLACE FILE, contention PLACE FILE: beside a good file of the other kind.
layers() {
  expect "$1" "$2" overlap plan --layers "$2" --contention "$folder/good_contention.json" -o "$output"
  expect "$1" "$2" simulate train --layers "$2" --contention "$folder/good_contention.json" --svg "$output"
}
contention() {
  expect "$1" "$2" overlap plan --layers "$folder/good_layers.json" --contention "$2" -o "$output"
  expect "$1" "$2" simulate train --layers "$folder/good_layers.json" --contention "$2" --svg "$output"
}

# broken TEXT EDIT: a file of the text, edited by sed; its name.
broken() {
  printf '%s\n' "$1" | sed -e "$2" >"$folder/broken.json"
  printf '%s' "$folder/broken.json"
}

good_machine='{"plait_machine": 1, "name": "m", "levels": [{"name": "node", "latency_seconds": 1e-5, "network": true},
 {"name": "rank", "latency_seconds": 1e-6}], "ranks_per_core": 1,
 "host": {"allreduce": [{"bytes": 8, "seconds": 1e-6}]}, "fingerprint": {"shape": "4x2"}}'
good_table='{"plait_table": 1, "machine": "m", "shapes": [{"shape": "4x2", "collectives": [{"collective": "allreduce",
 "ranges": [{"from": 1, "to": 65536, "plan": "AR.12(ring)", "seconds_from": 1e-6, "seconds_to": 1e-5}]}]}]}'

for kind in machine table report trace; do
  "$kind" "No such file" "$folder/absent.json"
  "$kind" "regular file" "$folder"
  mkfifo "$folder/pipe.json"
  "$kind" "regular file" "$folder/pipe.json"
  rm "$folder/pipe.json"
  truncate -s 1G "$folder/large.json"
  "$kind" "larger than" "$folder/large.json"
  rm "$folder/large.json"
  : >"$folder/empty.json"
  "$kind" "expected JSON" "$folder/empty.json"
  head -c 4096 /dev/zero | tr '\0' '[' >"$folder/deep.json"
  "$kind" "levels deep" "$folder/deep.json"
done

machine "expected JSON" "$(broken "$good_machine" '2,$d')"
machine "plait_machine: expected 1" "$(broken "$good_machine" 's/"plait_machine": 1/"plait_machine": 2/')"
machine "expected JSON" "$(broken "$good_machine" 's/1e-6}\]/NaN}]/')"
machine "expected JSON" "$(broken "$good_machine" 's/1e-5/1e999/')"
machine "levels[0].latency_seconds" "$(broken "$good_machine" 's/1e-5/-1e-5/')"
machine "host.allreduce[0].bytes" "$(broken "$good_machine" 's/"bytes": 8/"bytes": -8/')"
machine "ranks_per_core" "$(broken "$good_machine" 's/"ranks_per_core": 1/"ranks_per_core": 0/')"
machine "levels[1]" "$(broken "$good_machine" 's/{"name": "rank"/{"nom": "rank"/')"
table "expected JSON" "$(broken "$good_table" '2,$d')"
table "plait_table: expected 1" "$(broken "$good_table" 's/"plait_table": 1/"plait_table": "1"/')"
table "expected JSON" "$(broken "$good_table" 's/1e-6/NaN/')"
table "ranges[0].seconds_from" "$(broken "$good_table" 's/1e-6/-1e-6/')"
table "ranges[0].from" "$(broken "$good_table" 's/"from": 1/"from": -1/')"
table "ranges[0].to" "$(broken "$good_table" 's/65536/1/')"
table "shapes[0].shape" "$(broken "$good_table" 's/4x2/4x1x2/')"

good_report='{"mpi": "MPICH", "ranks": 1, "rows": [{"plan": "host"}], "placement": {"network_seconds_per_byte": 0,
 "ranks_per_core": 1, "ranks": [[0, 0, 0, 0, 0, 1]], "rows": []}}'
report "expected JSON" "$(broken "$good_report" '2,$d')"
report "ranks: expected" "$(broken "$good_report" 's/"ranks": 1/"ranks": 1e9/')"
report "placement: expected an object" "$(broken "$good_report" 's/"placement"/"place"/')"
report "placement.ranks[0]" "$(broken "$good_report" 's/\[\[0/[["0"/')"

good_layers='{"plait_layers": 1, "model": "net", "layers": [{"name": "fc", "bytes": 4000000, "seconds": 0.5}]}'
good_contention='{"plait_contention": 1, "machine": "m", "kernel": "mixed", "nodes": 2, "ranks": 2,
 "table": [{"threads": 1, "duty": 0.5, "slowdown": 1.1, "overlapped_rate": 1e9, "alone_rate": 2e9}]}'
printf '%s\n' "$good_layers" >"$folder/good_layers.json"
printf '%s\n' "$good_contention" >"$folder/good_contention.json"
layers "absent.json" "$folder/absent.json"
layers "expected JSON" "$(broken "$good_layers" 's/0.5/NaN/')"
layers "layers[0].seconds" "$(broken "$good_layers" 's/0.5/-0.5/')"
layers "layers: expected a list" "$(broken "$good_layers" 's/\[.*\]/[]/')"
contention "absent.json" "$folder/absent.json"
contention "table[0].duty" "$(broken "$good_contention" 's/0.5/2/')"
contention "another machine" "$(broken "$good_contention" 's/"kernel"/"fingerprint": {"hardware": "an abacus"}, "kernel"/')"
"$plait" overlap plan --layers "$folder/good_layers.json" --contention "$folder/good_contention.json" >/dev/null ||
  fail "the good layers are refused"

# What cannot be written is told as well: a folder is no file.
expect "regular file" "$folder" tune --shape 4x2 -o "$folder"
expect "regular file" "$folder" synth --system 4,2 --axes 8 --reduce 0 --save "$folder"
# The texts that were broken here are good.
"$plait" tune --machine "$(broken "$good_machine" '')" -o "$output" >/dev/null || fail "the good machine is refused"
"$plait" explain allreduce 4K --shape 4x2 --table "$(broken "$good_table" '')" >/dev/null || fail "the good table is refused"
"$plait" advise "$(broken "$good_report" '')" >/dev/null || fail "the good report is refused"

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

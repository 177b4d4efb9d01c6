#!/bin/sh
# plait topo and plait config from a user's side: output, exit codes, one line on bad input.
# usage: topo.sh PLAIT DATA_DIRECTORY FAKE_IBVERBS
plait=$1
data=$2
fake=$(dirname "$3")
. "$(dirname "$0")/common.sh"

refused "expected a subcommand" "$plait"
refused "found 'frob'" "$plait" frob
refused "--frob" "$plait" topo --frob
refused "plait topo --help" "$plait" topo extra
refused "expected one such as" "$plait" topo --synthetic "two packages"
refused "expected one such as" "$plait" topo --synthetic "$(printf 'two\nlines')"
refused "at most 4096" "$plait" topo --synthetic "core:100000 pu:1"
refused "missing" "$plait" topo --synthetic
refused "No such file" "$plait" topo --xml /nonexistent/machine.xml
refused "is a directory" "$plait" topo --xml "$data"
refused "not an hwloc XML file" "$plait" topo --xml "$0"
refused "expected --xml or --synthetic as well" "$plait" topo --gpus "$data/pcie4.gpus.json"
refused "No such file" "$plait" topo --xml "$data/pcie4.xml" --gpus /nonexistent/gpus.json
refused "or its member gpus" "$plait" topo --xml "$data/pcie4.xml" --gpus "$0"
refused "excludes" "$plait" topo --xml "$data/irregular.xml" --synthetic core:2
refused "--frob" "$plait" config --frob

unreadable=$(mktemp) && chmod 000 "$unreadable"
[ -r "$unreadable" ] || refused "Permission denied" "$plait" topo --xml "$unreadable"
rm -f "$unreadable"

prints "2 x Package 0-1" "$plait" topo --synthetic "package:2 core:4 pu:2"
prints "4 x Core 0-3, 1 PU each" "$plait" topo --xml "$data/irregular.xml"
prints "processing unit" "$plait" topo
prints "HCA" "$plait" topo
prints "HCA fake_0 port 1: active, InfiniBand, 100 GB/s, LID 1, GID ::1" env LD_LIBRARY_PATH="$fake" "$plait" topo
prints "HCA fake_0 port 2: down, InfiniBand, LID 2" env LD_LIBRARY_PATH="$fake" "$plait" topo
prints "near mlx5_11 (by one PCIe switch)" "$plait" topo --xml "$data/dgx_h100.xml" --gpus "$data/dgx_h100.gpus.json"
prints "island 1: GPUs 4 5 6 7, from GPU to GPU" "$plait" topo --xml "$data/islands2.xml" --gpus "$data/islands2.gpus.json"
prints '"nearness": "host_bridge"' "$plait" topo --json --xml "$data/pcie4.xml" --gpus "$data/pcie4.gpus.json"
prints "GPU" "$plait" topo
prints "GPU 1: Fake GPU, 16 GiB, 0000:a1:00.0, 4 links to 1 GPU, 100 GB/s" env LD_LIBRARY_PATH="$fake" "$plait" topo
prints "island 0: GPUs 0 1, from GPU to GPU" env LD_LIBRARY_PATH="$fake" "$plait" topo
prints "GPU 1, island 0; may use" env LD_LIBRARY_PATH="$fake" CUDA_VISIBLE_DEVICES=1 "$plait" topo
recorded=$(mktemp)
LD_LIBRARY_PATH="$fake" "$plait" topo --json >"$recorded"
prints "GPU 0: Fake GPU" "$plait" topo --synthetic "core:2 pu:1" --gpus "$recorded"
rm -f "$recorded"
prints '"cores": 16' "$plait" topo --json --xml "$data/two_packages.xml"
prints '"job": null' "$plait" topo --json
prints "PLAIT_DISABLE" "$plait" config
prints '"origin": "environment"' env PLAIT_DISABLE=1 "$plait" config --json
prints "plait 0" "$plait" --version
prints "topo" "$plait" --help

if [ -w /dev/full ]; then
  "$plait" topo >/dev/full 2>/dev/null
  [ $? -eq 1 ] || fail "a full disk is not noticed"
fi

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"

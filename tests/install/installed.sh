#!/usr/bin/env bash
# Plait as it is installed, used by somebody who is not root and has never seen the build folder: `cmake --install` into an
# empty prefix, then jobs with the preloaded library and with the component, the `plait` command, the reports, the cache in the
# user's folder, and programs made with the installed headers.
#
#   installed.sh BUILD_FOLDER SOURCE_FOLDER LIBRARY_FOLDER COMPONENT_FOLDER MPI...    folders below the prefix; "" where there is none
#
# Run by root, everything after the installation is done by a user without rights, for whom the build and source folders are
# empty; by somebody else, by that user.
set -euo pipefail

build=$1 source=$2 libraries=$3 components=$4
shift 4
mpis=("$@")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly nobody=65534

if [[ ${INSTALLED_STAGE:-} != user ]]; then
  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT
  chmod 755 "$place"
  mkdir "$place/prefix" "$place/home"
  (umask 022 && cmake --install "$build" --prefix "$place/prefix" >"$place/log") || { cat "$place/log"; exit 1; }
  cp "$here"/*.c "$here/installed.sh" "$place/home"
  user=(env -i "PATH=$place/prefix/bin:$PATH" "HOME=$place/home" INSTALLED_STAGE=user)
  self=("$place/home/installed.sh" "$build" "$source" "$libraries" "$components" "${mpis[@]}")
  if ((EUID == 0)); then
    chown -R $nobody:$nobody "$place/home"
    # shellcheck disable=SC2016
    unshare --mount bash -c 'cd / && mount -t tmpfs none "$1" && mount -t tmpfs none "$2" && shift 2 && exec "$@"' - \
      "$build" "$source" setpriv --reuid $nobody --regid $nobody --clear-groups "${user[@]}" "${self[@]}"
  else
    "${user[@]}" "${self[@]}"
  fi
  exit
fi

cd "$HOME"
prefix=$(dirname "$(dirname "$(command -v plait)")")
library=$prefix/$libraries/libplait.so
component=${components:+$prefix/$components}

fail() {
  echo "FAILED: $*"
  exit 1
}

# ---- Nothing leads back to where it was built ----

while read -r file; do
  [[ $(head -c 4 "$file") == $'\x7fELF' ]] || continue
  paths=$(readelf -d "$file" | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\2/p')
  [[ :$paths: != *"$build"* && :$paths: != *::* || -z $paths ]] || fail "$file looks for libraries in '$paths'"
  strip -g -o stripped "$file"
  ! grep -qF -e "$build" -e "$source" stripped || fail "$file knows the build or the source folder"
  if grep -q 'not found' <<<"$(ldd "$file")"; then fail "$file lacks: $(ldd "$file" | grep 'not found')"; fi
done < <(find "$prefix" -type f)
rm -f stripped

# ---- Jobs ----

job() { # MPI RANKS [K=V]... [--mca KEY VALUE]... -- program argument...
  local mpi=$1 command
  command=("mpiexec.$1" -n "$2")
  shift 2
  if [[ $mpi == openmpi ]]; then command+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1); fi
  while [[ $1 != -- ]]; do
    case $1 in
      --mca)
        command+=("$1" "$2" "$3")
        shift 2
        ;;
      *)
        [[ $mpi == openmpi ]] && command+=(-x "$1") || command+=(-genv "${1%%=*}" "${1#*=}")
        ;;
    esac
    shift
  done
  shift
  echo "== ${command[*]} $*"
  local status=0
  MPIR_CVAR_POLLS_BEFORE_YIELD=1 timeout 100 "${command[@]}" "$@" 2>errors || status=$?
  cat errors >&2
  ((status == 0)) || fail "status $status"
  ! grep 'plait: warning' errors || fail "a user without rights is warned"
}

# The report says that plans ran, and belongs to this user.
require_report() { # file
  [[ -O $1 ]] || fail "no report $1"
  python3 - "$1" <<'END' || fail "nothing was accelerated: $(cat "$1")"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
sys.exit(not any(row["collective"] == "allreduce" and row["plan"] != "host" for row in rows))
END
}

plait --version
plait topo >topology
grep -q PLAIT_CACHE <<<"$(plait config)" || fail "plait config says nothing of PLAIT_CACHE"
for mpi in "${mpis[@]}"; do
  "mpicc.$mpi" -O1 sums.c -o "sums_$mpi"
  "mpicc.$mpi" -O1 -Wall -Wextra -Werror "-I$prefix/include" api.c "-L$prefix/$libraries" -lplait "-Wl,-rpath,$prefix/$libraries" \
    -o "api_$mpi"
  printf '#include "plait/reshard.hpp"\n' | "mpicxx.$mpi" -std=c++17 -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX \
    "-I$prefix/include" -x c++ -fsyntax-only -
  printf '#include "plait/plait_fused.h"\n' | "mpicc.$mpi" -std=c99 -Wall -Wextra -Werror -pedantic "-I$prefix/include" -x c -fsyntax-only -
  # Without trials: on a busy machine the host may well turn out faster, and nothing is to be seen of a plan.
  job "$mpi" 3 "LD_PRELOAD=$library" PLAIT_TRIAL_AFTER=0 "PLAIT_REPORT=$HOME/$mpi.json" -- "$HOME/sums_$mpi"
  require_report "$mpi.json"
  job "$mpi" 2 "LD_PRELOAD=$library" "PLAIT_REPORT=$HOME/$mpi.html" -- "$HOME/sums_$mpi"
  grep -q '</html>' "$mpi.html" || fail "no page"
  job "$mpi" 3 -- "$HOME/api_$mpi"
  job "$mpi" 2 -- plait bench --collectives allreduce --sizes 8,64K --seconds 0.05 >bench || fail "plait bench: $(cat bench)"
  [[ -n $(find .cache/plait -name 'trials-*.json' -user "$(id -u)" -newer "sums_$mpi") ]] || fail "nothing in the user's cache"
done
if [[ -n $component ]]; then
  job openmpi 3 --mca mca_base_component_path "SYSTEM_DEFAULT:$component" --mca coll_plait_priority 90 \
    --mca coll_plait_trial_after 0 --mca coll_plait_report "$HOME/component.json" -- "$HOME/sums_openmpi"
  require_report component.json
fi
((UID != nobody)) || [[ -z $(find /dev/shm -user "$UID") ]] || fail "left in /dev/shm: $(find /dev/shm -user "$UID")"

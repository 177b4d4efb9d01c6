# shellcheck shell=bash disable=SC2034,SC2154
# What the fault tests share. Sourced, after `library` is set.

fail() {
  echo "FAILED: $*"
  [[ -z ${output:-} || ! -f $output ]] || sed 's/^/  | /' "$output"
  exit 1
}

# 77 tells ctest that the test was skipped.
require_namespaces() {
  ((EUID == 0)) && unshare --mount true 2>/dev/null || exit 77
}

output=$(mktemp)
# Every process of a job started here carries this in its environment.
mark=FAULT_TEST=$$.$RANDOM
trap 'rm -f "$output"' EXIT

# Runs `job RANKS [K=V]... -- program...` with Plait, its output in $output.
job() {
  local ranks=$1
  shift
  local arguments=()
  while [[ $1 != -- ]]; do
    arguments+=("$1")
    shift
  done
  shift
  # Open MPI's own files stay out of /dev/shm, which is the test's.
  env "$mark" timeout --kill-after=5 "${limit_s:-60}" "$(dirname "${BASH_SOURCE[0]}")/../launch" "$ranks" \
    --mca btl_vader_backing_directory /tmp --mca btl_vader_single_copy_mechanism none \
    "LD_PRELOAD=${preload:-$library}" PLAIT_SETUP_CALLS=1 PLAIT_HOST=0 "${arguments[@]}" -- "$@" >"$output" 2>&1
}

job_processes() { grep -lszxF -- "$mark" /proc/[0-9]*/environ | awk -F/ '{print $3}' || true; }

require_no_process() {
  local deadline=$((SECONDS + 5))
  while [[ -n $(job_processes) ]]; do
    ((SECONDS < deadline)) || fail "processes are left: $(job_processes | tr '\n' ' ')"
    sleep 0.1
  done
}

# Of what is ours: MPICH makes files of its own (mpich_shar_tmp*) there and unlinks them once all ranks have them; a rank that dies in
# between leaves one behind (without Plait 11 of 40 jobs did, in which a rank was killed once such a file stood there).
require_empty_shm() {
  local left
  left=$(find /dev/shm -mindepth 1 ! -name 'mpich_shar_tmp*' -printf '%f ')
  [[ -z $left ]] || fail "/dev/shm holds $left"
}

require_line() { grep -q -- "$1" "$output" || fail "no '$1' in the output"; }

# Seconds and hundredths as hundredths.
now() { local t=${EPOCHREALTIME/./}; echo $((t / 10000)); }

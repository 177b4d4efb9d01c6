# What the tests of the command line say and count. Sourced; `failures` is the number of what went wrong.
failures=0

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

# has TEXT WORDS: the words stand in the text.
has() {
  case $1 in
    *"$2"*) ;;
    *) fail "no '$2' in: $1" ;;
  esac
}

# jobs_or_skip MPIEXEC: sets what jobs of tests need; exits 77 (skipped) where it cannot start two ranks. `plait` is set.
jobs_or_skip() {
  mpiexec=$1
  # More ranks than cores: MPICH's do not give theirs away of themselves.
  case $("$mpiexec" --version 2>&1) in *HYDRA*) export LD_PRELOAD="$(dirname "$plait")/yield_in_ucx.so" ;; esac
  export PLAIT_TRIAL=0 PLAIT_CACHE=0
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # Open MPI waits a second for ranks that it has told to end.
  export OMPI_MCA_odls_base_sigkill_timeout=0
  # Open MPI leaks on its own account; a build with sanitizers is not to report it.
  export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:verify_asan_link_order=0"
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 MPIR_CVAR_POLLS_BEFORE_YIELD=1
  # MPICH's launcher fails once in fifty times with a program that ends at once.
  for _ in 1 2 3; do
    "$mpiexec" -n 2 true >/dev/null 2>&1 && return
  done
  exit 77
}

# ends CODE WORDS RANKS SUBCOMMAND ARGUMENT...: a job of `plait SUBCOMMAND` exits with the code, and exactly one of its
# own lines on standard error has the words. `plait` and `mpiexec` are set.
ends() {
  code=$1
  words=$2
  ranks=$3
  shift 3
  message=$("$mpiexec" -n "$ranks" "$plait" "$@" 2>&1 >/dev/null)
  found=$?
  [ "$found" -eq "$code" ] || fail "$*: exit code $found, expected $code"
  lines=$(printf '%s\n' "$message" | grep "^plait $1: ")
  has "$lines" "$words"
  [ "$(printf '%s\n' "$lines" | wc -l)" -eq 1 ] || fail "$*: not one line: $lines"
}

# refused WORDS COMMAND...: exits 2 with nothing on standard output and one line on standard error that has WORDS.
refused() {
  words=$1
  shift
  message=$("$@" 2>&1 >/dev/null)
  code=$?
  [ "$code" -eq 2 ] || fail "$*: exit code $code, expected 2"
  [ "$(printf '%s\n' "$message" | wc -l)" -eq 1 ] || fail "$*: more than one line: $message"
  has "$message" "$words"
  [ -z "$("$@" 2>/dev/null)" ] || fail "$*: wrote to standard output"
}

# prints WORDS COMMAND...: exits 0 and its output has WORDS.
prints() {
  words=$1
  shift
  output=$("$@" 2>&1) || fail "$*: exit code $?"
  has "$output" "$words"
}

# What the tests of the command line say and count. Sourced; `failures` is the number of what went wrong.
failures=0

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

# refused WORDS COMMAND...: exits 2 with nothing on standard output and one line on standard error that has WORDS.
refused() {
  words=$1
  shift
  message=$("$@" 2>&1 >/dev/null)
  code=$?
  [ "$code" -eq 2 ] || fail "$*: exit code $code, expected 2"
  [ "$(printf '%s\n' "$message" | wc -l)" -eq 1 ] || fail "$*: more than one line: $message"
  case $message in
    *"$words"*) ;;
    *) fail "$*: '$message' does not say '$words'" ;;
  esac
  [ -z "$("$@" 2>/dev/null)" ] || fail "$*: wrote to standard output"
}

# prints WORDS COMMAND...: exits 0 and its output has WORDS.
prints() {
  words=$1
  shift
  output=$("$@" 2>&1) || fail "$*: exit code $?"
  case $output in
    *"$words"*) ;;
    *) fail "$*: no '$words' in: $output" ;;
  esac
}

# For scripts that check a program in jobs of two ranks: sourced. Needs `start` (a function: starts two ranks of its
# arguments) and `program`. Makes the folder `folder`, which goes with the script, and counts `failures`.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

# refuses WORDS ARGUMENT...: exits 2 with one line of its own that has the words.
refuses() {
  words=$1
  shift
  message=$(start "$program" "$@" 2>&1 >/dev/null)
  found=$?
  [ "$found" -eq 2 ] || fail "$*: exit code $found, expected 2"
  lines=$(printf '%s\n' "$message" | grep "^${program##*/}: ")
  case $lines in
    *"$words"*) ;;
    *) fail "$*: no '$words' in: $lines" ;;
  esac
}

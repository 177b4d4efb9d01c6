# What the tests of scripts/cluster share. Before it is read: `name`, that of the test's cluster, which vanishes with it.
cluster=$(dirname "${BASH_SOURCE[0]}")/../../scripts/cluster
trap '"$cluster" down --name "$name" 2>/dev/null || true' EXIT
trap 'exit 143' TERM INT HUP

fail() {
  echo "FAIL: $*"
  exit 1
}

nothing_left() { # WHEN
  [[ ! -e /run/plait-cluster/$name ]] || fail "$1: the cluster's folder is left"
  ! compgen -G "/run/netns/plait-$name-*" >/dev/null || fail "$1: namespaces are left"
  ! pgrep -f "delay_line .*plait-$name-" >/dev/null || fail "$1: its delay line is left"
}

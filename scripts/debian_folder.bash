# A newer Debian in a folder of its own, for scripts that build and test there: sourced by test-ompi5 and test-systems. As
# root; what cannot be done here ends the script with $skipped.
#
# Before: `root`, the folder; `release`, its suite; `packages`, an array; `self`, the script's name.

readonly skipped=77

skip() {
  echo "$self: skipped: $*" >&2
  exit "$skipped"
}

must_be_possible() {
  ((EUID == 0)) || skip "not root"
  command -v debootstrap >/dev/null || skip "debootstrap is not installed"
  unshare --mount true 2>/dev/null || skip "namespaces are not permitted"
}

# The first of Debian's mirrors that apt knows.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' | head -n 1
}

inside() { # command...: in the folder, with /proc, /dev and /sys, which go with the command
  unshare --mount --propagation private bash -c '
    mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" &&
    exec chroot "$0" "$@"' "$root" "$@"
}

# Kept once it is there. A suite whose Release file has gone out of date is taken all the same.
make_root() {
  if [[ ! -e $root/plait/made ]]; then
    local from
    from=$(mirror)
    [[ -n $from ]] || skip "apt knows no mirror of Debian"
    debootstrap --variant=minbase "$release" "$root" "$from" || skip "debootstrap failed: the mirror may lack $release"
    echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90plait"
    printf '%s %s %s main\n' deb "$from" "$release" deb-src "$from" "$release" >"$root/etc/apt/sources.list"
    inside apt-get -qq update
    mkdir -p "$root/plait"
    touch "$root/plait/made"
  fi
  inside env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install --yes --no-install-recommends "${packages[@]}" >/dev/null
}

# A file that has changed since the last copy has the time of this one, whenever it was changed: what was built from the last
# copy may be younger than that.
copy_sources() {
  local -r copy=$root/plait/source new=$root/plait/source.new
  rm -rf "$new"
  mkdir -p "$new" "$copy"
  git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read |
    tar --extract --touch --directory "$new"
  (cd "$new" && find . -type f -print0) | while IFS= read -r -d '' file; do
    ! cmp --silent "$copy/$file" "$new/$file" || touch --reference="$copy/$file" "$new/$file"
  done
  rm -rf "$copy"
  mv "$new" "$copy"
}

expect() { # patterns..., what it is about; reads the output of what was run
  local output
  output=$(cat)
  while (($# > 1)); do
    if ! grep -q -- "$1" <<<"$output"; then
      echo "$output"
      echo "$self: ${!#}: expected $1" >&2
      exit 1
    fi
    shift
  done
}

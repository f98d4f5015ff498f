#!/usr/bin/env bash
# debian.sh [SUITE...]: installs dist/*.deb in bare roots of Debian (bookworm and trixie unless told), starts the program,
# upgrades it, removes it; a changed sconce.conf stays. lintian looks at the packages where it is installed. ./dev deb makes
# them. Exit status 77: no roots can be made here.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packaging/roots.sh
. tests/packaging/roots.sh

packages=(dist/sconce_*.deb dist/libsconce0_*.deb dist/libsconce-dev_*.deb dist/sconce-grpc_*.deb)
for package in "${packages[@]}"; do [ -e "$package" ] || fail "there is no $package: ./dev deb makes it"; done
if command -v lintian > /dev/null; then
  lintian --allow-root --fail-on error "${packages[@]}" || fail "lintian finds errors"
fi
[ $# -gt 0 ] || set -- bookworm trixie

passed=0
for suite in "$@"; do
  root=$(make_root "$suite") || { echo "$root" && exit 77; }
  mkdir "$root/packages"
  cp "${packages[@]}" "$root/packages/"
  cp examples/digits/digits.pt2 "$root/root/"
  inside "$root" sh -c 'apt-get -q update && apt-get -q install -y --no-install-recommends /packages/*.deb' > "$scratch/log" 2>&1 ||
    fail "$suite: apt-get says $(tail -n 20 "$scratch/log")"
  inside "$root" sconce check /root/digits.pt2 > "$scratch/log" 2>&1 || fail "$suite: sconce check says $(cat "$scratch/log")"
  inside "$root" sconce run /root/digits.pt2 > "$scratch/log" 2>&1 || fail "$suite: sconce run says $(cat "$scratch/log")"
  [ -z "$(inside "$root" sh -c 'ldd /usr/bin/sconce | grep "not found"')" ] || fail "$suite: sconce lacks libraries"

  # Started with the unit's own command line.
  sed -i 's|^#serve =.*|serve = /root/digits.pt2|; s|^#http =.*|http = 127.0.0.1:0|; s|^#admin =.*|admin = off|; s|^#metrics =.*|metrics = off|; s|^#grpc =.*|grpc = 127.0.0.1:0|' \
    "$root/etc/sconce/sconce.conf"
  read -ra start <<< "$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/sconce.service")"
  ask_server "$root" "${start[@]}"
  grep -q 'by gRPC on' "$scratch/log" || fail "$suite: no gRPC: $(cat "$scratch/log")"
  status=0
  inside "$root" sconce compare digits.pt2 module:function > "$scratch/log" 2>&1 || status=$?
  if [ "$status" != 2 ] || ! grep -q 'python3 -m sconce.compare' "$scratch/log"; then
    fail "$suite: sconce compare, where Python has no Sconce: status $status, $(cat "$scratch/log")"
  fi

  for bill in sconce/sconce sconce-grpc/sconce-grpc; do
    python3 -m json.tool "$root/usr/share/doc/$bill.cdx.json" > /dev/null || fail "$suite: no bill of materials $bill.cdx.json"
  done
  for page in sconce sconce-serve sconce-compare sconce-verify sconce-weights-push; do
    [ -s "$root/usr/share/man/man1/$page.1.gz" ] || fail "$suite: no manual page $page"
  done
  inside "$root" bash -n /usr/share/bash-completion/completions/sconce

  # A later version keeps the settings that were changed.
  mkdir "$root/later"
  for package in "$root"/packages/*.deb; do
    dpkg-deb -R "$package" "$scratch/later"
    sed -i 's/^Version: .*/&+1/; s/(= \([0-9.]*\))/(= \1+1)/' "$scratch/later/DEBIAN/control"
    dpkg-deb -Zgzip -b "$scratch/later" "$root/later/$(basename "$package")" > /dev/null
    rm -rf "$scratch/later"
  done
  inside "$root" sh -c 'apt-get -q install -y /later/*.deb < /dev/null' > "$scratch/log" 2>&1 ||
    fail "$suite: the upgrade says $(tail -n 20 "$scratch/log")"
  grep -q '^serve = /root' "$root/etc/sconce/sconce.conf" || fail "$suite: the upgrade lost settings"
  inside "$root" sconce --version > /dev/null

  inside "$root" apt-get -q purge -y sconce sconce-grpc libsconce0 libsconce-dev > "$scratch/log" 2>&1 ||
    fail "$suite: purge says $(tail -n 20 "$scratch/log")"
  left=$(cd "$root" && find usr etc var/lib/systemd -iname '*sconce*' -not -path 'var/lib/dpkg/*' 2> /dev/null)
  [ -z "$left" ] || fail "$suite: after purge there is still $left"
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
